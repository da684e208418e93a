package admin

import (
	"fmt"

	"lunar/daemon/offline"
	"lunar/internal/cli"
)

type encryptCommand struct {
	offline.Unencrypted `embed:""`
	GiveUpData          bool `required:"" help:"Confirm that the present contents of the volume's file or device are given up."`
}

// Run makes the header file of a volume that may hold something.
func (k encryptCommand) Run(c cli.Console) error {
	e, err := k.MakeHeader()
	if err == nil {
		_, err = fmt.Fprintf(c.Out, "made %s: keep a copy of it and of %s; without either the data are lost\n", e.HeaderFile, e.KeyFile)
	}
	return err
}
