package images

import (
	"context"
	"errors"
	"fmt"
)

// Restore implements Images. Two files cannot change places at one moment: the first one does,
// and the second follows it before anybody opens both (Follow).
func (p *pair) Restore(ctx context.Context, name string, size int64, keep, key string) (Copy, error) {
	data, ok := p.Images.(*files)
	proofs, too := p.second.(*files)
	if !ok || !too {
		return nil, fmt.Errorf("%w rolled back: it is not on files", ErrUnsupported)
	}
	second, err := proofs.restore(ctx, name, 0, keep, "")
	if err != nil {
		return nil, err
	}
	r := &following{second: second}
	if err = p.clean(second.made.Name()); err == nil {
		err = second.made.Sync()
	}
	if err == nil {
		r.restoration, err = data.restore(ctx, name, size, keep, key)
	}
	if err != nil {
		return nil, errors.Join(err, second.Settle())
	}
	if err = r.noteBoth(); err != nil {
		return nil, errors.Join(err, r.Settle())
	}
	return r, nil
}

// following is a rollback of two files.
type following struct {
	*restoration // of the first
	second       *restoration
}

func (r *following) noteBoth() error {
	made, err := inodeOf(int(r.made.Fd()))
	if err == nil {
		err = r.second.note(made)
	}
	if err == nil && r.keep != "" {
		err = r.note(0)
	}
	return err
}

// Place implements Copy.
func (r *following) Place() error {
	if err := r.second.ready(); err != nil {
		return err
	}
	return r.restoration.Place()
}

// Settle implements Copy. While the second does not fit the first, its note is left to Follow.
func (r *following) Settle() error {
	n, err := r.second.noted()
	if err == nil && n != nil {
		r.second.placed, err = r.second.isPlaced(n)
	}
	r.second.undone = r.undone
	if err != nil || r.second.placed != r.placed {
		return errors.Join(err, r.second.made.Close(), r.restoration.Settle())
	}
	return errors.Join(r.second.Settle(), r.restoration.Settle())
}

// isPlaced reports whether the file is the one that was made by a rollback.
func (f *files) isPlaced(n *restoring) (bool, error) {
	now, err := f.now()
	return now.Ino == n.made, err
}

// Follow has the file at path, second of a pair, be the one that fits the first of them, after
// a rollback has had that change places. Nobody has it open. Whoever opens both calls it before:
// wherever a server was killed, both are of before the rollback then, or both of after it.
func Follow(first, path string) error {
	f, err := filesOf(path, -1)
	if err != nil {
		return nil // there is none yet
	}
	n, err := f.noted()
	if err != nil || n == nil || n.first == 0 {
		return err
	}
	of, err := filesOf(first, -1)
	if err != nil {
		return err
	}
	there, err := of.now()
	if err != nil {
		return err
	}
	placed, err := f.isPlaced(n)
	if err != nil || placed == (there.Ino == n.first) {
		return err
	}
	if err := f.exchange(); err != nil {
		return err
	}
	return f.syncPlaces()
}
