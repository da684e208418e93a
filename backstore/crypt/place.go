package crypt

import "errors"

// Place is where the header of a volume is kept: a header file, or the state of a cluster. Its
// methods do not overlap.
type Place interface {
	// Load returns the header that counts. Nothing is changed.
	Load() ([]byte, error)
	// Settle ends what a change has left unfinished. The header is known to be the volume's.
	Settle() error
	// Store has another header count, and returns when it is stable. mark tells its master key
	// (Store.Mark). After an error the one before counts still, unless the error is ErrDoubt, or
	// says that the one before could not be overwritten.
	Store(next []byte, mark string) error
	// Close gives up what it takes to be there.
	Close() error
}

// ErrDoubt says that nobody knows which master key a volume will have when it is opened again.
var ErrDoubt = errors.New("it is not known which key the header has now")

// errRemains says that a new key is in force and the old one may still be there.
var errRemains = errors.New("the old key could not be overwritten")
