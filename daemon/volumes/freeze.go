package volumes

import (
	"context"
	"errors"
	"time"

	"lunar/backstore"
	"lunar/conf"
	"lunar/internal/evloop"
)

// Freezing is a volume that is frozen, or about to be.
type Freezing struct{ r *reopening }

// BeginFreeze has all written that is in the cache alone, while commands go on. End
// follows it, and the volume is changed by nobody before.
func (a *Set) BeginFreeze(loop *evloop.Loop, v *conf.Volume) (*Freezing, error) {
	r := &reopening{Set: a, open: a.Open[v.Name], from: *v, to: *v, loop: loop}
	if r.open == nil || r.open.Slot.Empty() {
		return nil, errors.New("found no file or device that serves it now")
	}
	if err := r.writeDirty(); err != nil {
		return nil, errors.Join(err, r.restore())
	}
	return &Freezing{r}, nil
}

// Hold holds all operations until thaw is closed. Once those under way have ended and
// everything is stable, it calls frozen. If ctx ends before, or the file or device
// cannot be made stable, it returns the error without having called frozen.
func (f *Freezing) Hold(ctx context.Context, frozen func(), thaw <-chan struct{}) error {
	return f.r.open.Slot.Exchange(ctx, func(store backstore.Store) (backstore.Store, error) {
		within := reopenWait
		if late, ok := ctx.Deadline(); ok {
			within = min(within, time.Until(late))
		}
		if within <= 0 {
			return store, errors.New("what was under way has ended too late")
		}
		if err := f.r.flush(store, within); err != nil {
			return store, err
		}
		frozen()
		<-thaw
		return store, nil
	})
}

// End has the cache used again as the configuration says. Nothing is held any more.
func (f *Freezing) End() error { return f.r.restore() }
