package images

import (
	"context"
	"errors"
	"regexp"
	"time"
)

// Source is a store that may be able to keep images of what it holds.
type Source interface {
	// Images are those of the store, which is open while they are used. ErrUnsupported
	// says why it has none.
	Images() (Images, error)
}

// ErrUnsupported says that a store cannot keep images.
var ErrUnsupported = errors.New("it can have no snapshots")

// ErrExists and ErrNone say whether there is an image of a name.
var (
	ErrExists = errors.New("there is a snapshot of this name already")
	ErrNone   = errors.New("there is no snapshot of this name")
	ErrUsed   = errors.New("somebody uses it")
)

// Images are kept of one store. Who makes, removes or restores one does it alone; the others
// may be called at any time.
type Images interface {
	// List tells of all, the oldest first.
	List() ([]Image, error)
	// Space is what an image takes. It looks at a bounded number of extents.
	Space(Image) (Space, error)
	// Begin makes ready for an image, and finds out whether there can be one.
	Begin(name string) (Draft, error)
	// Remove removes an image that nobody uses.
	Remove(name string) error
	// Clone makes a store of an image that can be written to, of the same file system, at
	// a path where nothing is. Nothing is at the paths with either, which whoever clones makes
	// once it is placed: undoing removes it.
	Clone(ctx context.Context, name, path string, with ...string) (Copy, error)
	// Restore makes ready to put an image, lengthened to size bytes, into the place of what
	// the store holds, and is used for meanwhile. That becomes an image named keep then, of what
	// is enciphered with a key; no name: it goes.
	Restore(ctx context.Context, name string, size int64, keep, key string) (Copy, error)
	// Tidy removes what a server that was killed has left half-made. serves says whether a
	// clone at a path has come into use.
	Tidy(serves func(path string) bool) error
}

// Image is what a store held at a moment.
type Image struct {
	Name string
	At   time.Time // of which it is, in whole seconds or better
	Size int64     // bytes
	Path string    // of the file that has it, for who serves it as it is
	Key  string    // tells with which key it is enciphered; empty: with none
}

// Range is a part of a store, in bytes.
type Range struct{ Off, Len int64 }

// Draft is an image that is being made. Whoever began it keeps or discards it.
type Draft interface {
	// Draw takes parts of the store, or all of it (nil), while it is written to, whom it hinders
	// for some milliseconds at a time. Take has less to do then.
	Draw(ctx context.Context, parts []Range) error
	// Take has the image be what the store holds now, while nobody writes to it. Parts are
	// all that was altered since all was drawn; nil: anything may have been. Key tells what
	// that is enciphered with; empty: with nothing.
	Take(ctx context.Context, parts []Range, key string) error
	// Keep gives the image its name, which it has after that whatever happens.
	Keep(at time.Time) error
	// Discard removes what there is of it, unless it is kept.
	Discard() error
}

// Copy is a copy of an image that takes a place. Whoever made it settles it at last, or undoes
// it before.
type Copy interface {
	// Place puts it there. Of Restore, the store is closed then.
	Place() error
	// Undo takes it away again. Of Restore, what the store held is back.
	Undo() error
	// Settle ends it. Nothing is left of what was not placed, or was undone, and of Restore
	// what the store held is an image, or goes.
	Settle() error
}

// Space is what an image takes of its file system.
type Space struct {
	Owned  int64 // bytes that nobody shares: they are free when it goes
	Shared int64 // bytes that it shares with the store, or with other images
	Part   bool  // it has more extents than were looked at: both are at least so much
}

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ValidName reports whether an image may be called so.
func ValidName(name string) bool { return validName.MatchString(name) }

// WantName says what ValidName takes.
const WantName = "a name of up to 64 letters, digits, '.', '_' and '-', which begins with a letter or digit"
