package seal

import (
	"context"
	"encoding/json"
	"fmt"

	"lunar/internal/durable"
)

// copyKind and copyVersion tell the copy of a header from other sealed files.
const (
	copyKind    = "volume-header"
	copyVersion = 1
)

// copied is a copy of a header in a file.
type copied struct {
	Version int    `json:"version"`
	Volume  string `json:"volume"`
	Seal
}

// Save writes a copy of the header to a file.
func (o Of) Save(ctx context.Context, file string) error {
	now, err := o.look(ctx)
	switch {
	case err != nil:
		return err
	case now.Header == nil:
		return ErrNone
	}
	text, err := json.Marshal(copied{copyVersion, o.Volume, now.Seal})
	if err != nil {
		return err
	}
	return durable.ReplaceSealed(file, copyKind, text)
}

// Restore stores a copy that Save has written where there is no header, of this volume or of another one whose
// image this volume's is a clone of. The image has to name the header.
func (o Of) Restore(ctx context.Context, file string) error {
	text, sealed, err := durable.ReadSealed(file, copyKind)
	if err != nil {
		return err
	}
	var c copied
	if !sealed || json.Unmarshal(text, &c) != nil || c.Version != copyVersion || len(c.Header) == 0 {
		return fmt.Errorf("found another file, expected the copy of a volume's header, of version %d", copyVersion)
	}
	return o.restore(ctx, Seal{Header: c.Header})
}
