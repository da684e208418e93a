package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lunar/daemon/offline"
	"lunar/internal/bulk"
	"lunar/internal/cli"
)

type encryptCommand struct {
	offline.Unencrypted `embed:"" set:"which=A volume with encryption that has no header file."`
	GiveUpData          bool `xor:"data" required:"" help:"Confirm that the present contents of the volume's file or device are given up."`
	KeepData            bool `xor:"data" required:"" help:"Encipher the present contents of the volume's file, which is kept as PATH.before. The server must not run. After a break the same command goes on."`
}

// Run makes the header file of a volume that may hold something.
func (k encryptCommand) Run(ctx context.Context, c cli.Console) error {
	if k.KeepData {
		return rewritten(c, "encrypted with %s and %s: keep copies of both; without either the data are lost", func(p *bulk.Progress) (offline.Rewritten, error) {
			return k.Encipher(ctx, p)
		})
	}
	e, err := k.MakeHeader()
	if err == nil {
		_, err = fmt.Fprintf(c.Out, "made %s: keep a copy of it and of %s; without either the data are lost\n", e.HeaderFile, e.KeyFile)
	}
	return err
}

type decryptCommand struct {
	offline.Unencrypted `embed:"" set:"which=A volume whose encryption was taken out of the configuration, and whose header file is still there."`
	KeyFile             string `required:"" type:"path" placeholder:"FILE" help:"The key file that the volume had."`
	HeaderFile          string `type:"path" placeholder:"FILE" help:"The header file that it had. Default: as in the configuration, PATH.header."`
}

// Run writes the data of an encrypted volume in clear.
func (k decryptCommand) Run(ctx context.Context, c cli.Console) error {
	return rewritten(c, "deciphered; the header is %s now, and belongs to the old file, as %s does", func(p *bulk.Progress) (offline.Rewritten, error) {
		return k.Decipher(ctx, k.KeyFile, k.HeaderFile, p)
	})
}

// rewritten tells meanwhile how far it is.
func rewritten(c cli.Console, done string, write func(*bulk.Progress) (offline.Rewritten, error)) error {
	p, ended := &bulk.Progress{}, make(chan struct{})
	go tellProgress(c, p, ended)
	r, err := write(p)
	close(ended)
	if err != nil {
		return errors.Join(err, errors.New("nothing was replaced; the same command goes on where it was"))
	}
	_, err = fmt.Fprintf(c.Out, "%s: "+done+".\nBlocks of 1 MiB: stored %d, there before %d; all were read again and are equal.\nWhat it was is %s: remove it when the volume is as it should be.\n",
		r.Path, r.Header, r.Key, r.Stored, r.Kept, r.Before)
	return err
}

// tellEvery is how often a person hears how far it is.
const tellEvery = 10 * time.Second

func tellProgress(c cli.Console, p *bulk.Progress, ended <-chan struct{}) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-ended:
			return
		case <-tick.C:
			what, percent := p.Now()
			fmt.Fprintf(c.Err, "%s (%d %%)\n", what, percent)
		}
	}
}
