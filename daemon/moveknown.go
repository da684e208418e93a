package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"lunar/conf"
	"lunar/internal/bulk"
	"lunar/internal/durable"
)

// knownDir, in the state directory, has a file with the digests of each volume whose moves are
// incremental.
const knownDir = "move-digests"

func (a *applier) knownPath(volume string) string { return filepath.Join(a.dir, knownDir, volume) }

// knownOf returns what is known of a volume that is about to be sent; nil: nothing, and
// nothing is noted any more, because nobody wants it.
func (a *applier) knownOf(r *reading, incremental bool) (*bulk.Known, error) {
	volume, s := r.origin.Name, &a.moves
	ctx, cancel := context.WithTimeout(r.ctx, heldMost)
	defer cancel()
	s.mu.Lock()
	k := s.known[volume]
	s.mu.Unlock()
	if k != nil && incremental && k.Size() == r.origin.Size {
		return k, nil
	}
	if k != nil {
		if err := r.slot.Untrack(ctx, k.Changes); err != nil {
			return nil, err
		}
	}
	if err := a.forgetKnown(volume); err != nil || !incremental {
		return nil, err
	}
	path := a.knownPath(volume)
	err := durable.MakeDir(filepath.Dir(path))
	if err == nil {
		k, err = bulk.OpenKnown(path, r.origin.Size, bulk.Mark{})
	}
	if err != nil { // a move needs no notes: the disk may be full for which it makes room
		a.log.Warn("what is sent cannot be noted: the next incremental move reads all", "volume", volume, "err", err)
		return nil, nil
	}
	if err := r.slot.Track(ctx, k.Changes); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	s.keep(volume, k)
	return k, nil
}

func (s *moves) keep(volume string, k *bulk.Known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]*bulk.Known{}
	}
	s.known[volume] = k
}

// forgetKnown forgets what is known of a volume.
func (a *applier) forgetKnown(volume string) error {
	a.moves.mu.Lock()
	k := a.moves.known[volume]
	delete(a.moves.known, volume)
	a.moves.mu.Unlock()
	if k == nil {
		return nil
	}
	return errors.Join(k.Close(), durable.Remove(a.knownPath(volume)))
}

// mark tells the file of a volume at the next start from what it is after anybody has written
// to it. Zero: it cannot be told of this one.
func mark(v *conf.Volume) bulk.Mark {
	if v.Type != conf.FileVolume || v.Write == conf.WriteBack || v.Excess != "" {
		return bulk.Mark{}
	}
	m, err := bulk.MarkOf(v.Path)
	if err != nil {
		return bulk.Mark{}
	}
	return m
}

// marks are those of the volumes of which something is known, before they are opened: that
// may change their times.
func marks(dir string, cfg *conf.Config) map[string]bulk.Mark {
	entries, err := os.ReadDir(filepath.Join(dir, knownDir))
	if err != nil {
		return nil // mostly, for there are none
	}
	all := map[string]bulk.Mark{}
	for _, e := range entries {
		all[e.Name()] = bulk.Mark{}
		if v := cfg.Volume(e.Name()); v != nil {
			all[e.Name()] = mark(v)
		}
	}
	return all
}

// recall finds what was known when the server before this one ended in order. Nobody uses the
// volumes yet.
func (a *applier) recall(all map[string]bulk.Mark) {
	for name, m := range all {
		if err := a.recallOne(name, m); err != nil {
			a.log.Warn("what is known of a volume for incremental moves cannot be used: the next one reads all", "volume", name, "err", err)
		}
	}
}

func (a *applier) recallOne(name string, m bulk.Mark) error {
	open := a.daemon.assembly.Open[name]
	if open == nil {
		return durable.Remove(a.knownPath(name))
	}
	k, err := bulk.OpenKnown(a.knownPath(name), open.Slot.Info().Size, m)
	if err != nil {
		return err
	}
	if err := open.Slot.Track(a.life, k.Changes); err != nil {
		return errors.Join(err, k.Close())
	}
	a.moves.keep(name, k)
	return nil
}

// settle has what is known last until the next start, if everything that was acknowledged is
// stable. All volumes are closed.
func (s *moves) settle(cfg *conf.Config, stable bool) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, k := range s.known {
		if v := cfg.Volume(name); stable && v != nil {
			err = errors.Join(err, k.Settle(mark(v)))
		} else {
			err = errors.Join(err, k.Close())
		}
	}
	s.known = nil
	return err
}

// untrack has nothing noted of a volume any more that is being closed.
func (a *applier) untrack(volume string) {
	a.moves.cancel(volume)
	if err := a.forgetKnown(volume); err != nil {
		a.log.Warn("what is known of a volume for incremental moves is still there", "volume", volume, "err", err)
	}
}
