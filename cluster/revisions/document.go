package revisions

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"lunar/internal/packed"
)

// Document is a revision of the configuration that nodes have in common. It may have
// secrets.
type Document struct {
	Revision int64     `json:"revision"` // counts up from 1
	ID       string    `json:"id"`       // tells it from others that were to be the same revision
	At       time.Time `json:"at"`
	By       string    `json:"by"`               // who asked for it
	Node     string    `json:"node"`             // where
	Lunar    string    `json:"lunar"`            // version of that node
	What     string    `json:"what"`             // was asked for
	Shrink   []string  `json:"shrink,omitempty"` // volumes that may lose what is behind their new end
	Text     []byte    `json:"-"`
}

// Name is what messages call a revision.
func Name(revision int64) string {
	return fmt.Sprintf("revision %d of the cluster's configuration", revision)
}

// stored is the form of a Document in the state.
type stored struct {
	Version int `json:"version"`
	Document
	Compressed []byte `json:"text"`
}

// version is that of the form.
const version = 1

const (
	// MaxStored bounds a compressed text in bytes: etcd takes no more than 1.5 MiB at once.
	MaxStored = 512 << 10
	// MaxText bounds a text in bytes.
	MaxText = 8 << 20
)

// ErrUnreadable: the state has something that this version does not read.
var ErrUnreadable = errors.New("the cluster's configuration cannot be read")

// ErrTooLong: the text of a document is longer than the state takes.
var ErrTooLong = errors.New("the cluster's configuration is too long")

// CheckLength fails with ErrTooLong for a text that is longer than MaxText.
func CheckLength(text []byte) error {
	if len(text) > MaxText {
		return fmt.Errorf("%w: found %d bytes, expected at most %d", ErrTooLong, len(text), MaxText)
	}
	return nil
}

// Encode is the form in which the state has it. It fails with ErrTooLong.
func (d *Document) Encode() ([]byte, error) {
	if err := CheckLength(d.Text); err != nil {
		return nil, err
	}
	text := packed.Of(d.Text)
	if len(text) > MaxStored {
		return nil, fmt.Errorf("%w: found %d bytes compressed, expected at most %d", ErrTooLong, len(text), MaxStored)
	}
	return json.Marshal(stored{version, *d, text})
}

// Decode reads what Encode has written. It fails with ErrUnreadable.
func Decode(value []byte) (*Document, error) {
	var s stored
	if err := json.Unmarshal(value, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if s.Version != version || s.Revision < 1 {
		return nil, fmt.Errorf("%w: found version %d of its form, expected %d, which this version of Lunar reads", ErrUnreadable, s.Version, version)
	}
	var err error
	if s.Text, err = packed.Text(s.Compressed, MaxText); err != nil {
		return nil, fmt.Errorf("%w: revision %d: %w", ErrUnreadable, s.Revision, err)
	}
	return &s.Document, nil
}
