package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"lunar/backstore"
	"lunar/backstore/images"
)

// taking is snapshots that are being taken of several volumes at one moment. To share the
// blocks of a file takes time by the number of its extents. So most of it is done while
// commands go on: all is drawn once, then what was written meanwhile, again and again, until
// that is little. Commands are held for the rest alone.
type taking struct {
	*freeze
	drafts  []images.Draft
	slots   []*backstore.Slot
	altered []*backstore.Changes // since what was drawn last, of those that are noted
}

// take freezes volumes for as long as it takes to take all drafts.
func (a *applier) take(f *freeze, drafts []images.Draft) (held time.Duration, err error) {
	t := &taking{freeze: f, drafts: drafts}
	for _, name := range f.Volumes {
		t.slots = append(t.slots, a.daemon.assembly.Open[name].Slot)
	}
	f.prepare = func() error { return t.draw(a.life) }
	defer func() { err = errors.Join(err, t.untrack()) }()
	if err := a.hold(f); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithDeadline(a.life, f.Until)
	defer cancel()
	for i, d := range drafts {
		if err = d.Take(ctx, t.parts(i), a.daemon.assembly.Open[f.Volumes[i]].Key()); err != nil {
			break
		}
	}
	first := f.end("a snapshot was made")
	<-f.ended
	held = time.Since(f.began)
	if err == nil && !first {
		err = fmt.Errorf("commands could be held for no longer: %s", f.why)
	}
	return held, err
}

// draw does what can be done while the volumes are written to. What the cache alone had is on
// the files by then, and what initiators write goes there before it is acknowledged.
func (t *taking) draw(ctx context.Context) error {
	for i, s := range t.slots {
		size := s.Info().Size
		c := backstore.NewChanges(size, noteUnit(size))
		if err := s.Track(ctx, c); err != nil {
			return err
		}
		t.altered = append(t.altered, c)
		if err := t.drafts[i].Draw(ctx, nil); err != nil {
			return err
		}
	}
	for before, pass := 0, 0; ; pass++ {
		now := 0
		for i, d := range t.drafts {
			parts := t.parts(i)
			now += len(parts)
			if err := d.Draw(ctx, parts); err != nil {
				return err
			}
		}
		if drawn(before, now, pass) {
			return nil
		}
		before = now
	}
}

// drawn reports whether a further pass is not worth it after one that had some parts, and the
// one before it: there is little left, or it does not get less.
func drawn(before, now, pass int) bool {
	const little, most = 8, 10
	return now <= little || pass >= most || pass > 0 && now > before/2
}

// noteUnit is how finely it is noted what is written to a volume: by blocks of 4 KiB, of large
// ones by as many as take 8 MiB of memory.
func noteUnit(size int64) int64 {
	const most = 8 << 20 << 3
	unit := int64(4096)
	for size/unit > most {
		unit *= 2
	}
	return unit
}

// parts are what was altered of a volume since they were asked for last.
func (t *taking) parts(volume int) []images.Range {
	size := t.slots[volume].Info().Size
	unit := noteUnit(size)
	out := []images.Range{}
	for _, n := range t.altered[volume].Take() {
		if last := len(out) - 1; last >= 0 && out[last].Off+out[last].Len == n*unit {
			out[last].Len += unit
			continue
		}
		out = append(out, images.Range{Off: n * unit, Len: unit})
	}
	return out
}

// untrack has nothing noted any more.
func (t *taking) untrack() (err error) {
	for i, c := range t.altered {
		err = errors.Join(err, t.slots[i].Untrack(context.Background(), c))
	}
	return err
}
