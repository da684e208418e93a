package volumes

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"lunar/backstore"
	"lunar/backstore/crypt"
	"lunar/backstore/evidence"
	"lunar/backstore/protect"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/internal/durable"
	"lunar/target/scsi"
)

// rehearse judges all volumes, what the cache has of them and what is kept of them, before
// the start changes anything: where one volume is refused, the others must not have been
// grown, completed and written, and the segment not sealed, by a start that never was. What
// only opening tells, such as a disk that fails, is found out by that.
func (a *Set) rehearse(o tier.Options) (err error) {
	r := &Set{Config: a.Config, left: a.left, owners: a.owners, Forgets: a.Forgets, Health: newHealth()}
	r.Log = slog.New(slog.DiscardHandler)
	if r.rehearsal, err = tier.Rehearse(o); err != nil {
		return err
	}
	if r.rehearsal != nil {
		defer func() { err = errors.Join(err, r.rehearsal.End()) }()
	}
	errs := []error{medium.StoredTwice(a.Conf)}
	for i := range a.Conf.Volumes {
		v := &a.Conf.Volumes[i]
		if err := r.try(v); err != nil {
			errs = append(errs, fmt.Errorf("volume %s: %w", v.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil || r.rehearsal == nil {
		return err
	}
	return errors.Join(r.strays(r.unconfigured())...)
}

// unconfigured are volumes of which the cache has unwritten data, and that no configured
// one will get.
func (a *Set) unconfigured() (left []tier.Orphan) {
	cached := map[uint64]bool{}
	for i := range a.Conf.Volumes {
		if v := &a.Conf.Volumes[i]; v.Cache != nil {
			cached[a.volumeID(v)] = true
		}
	}
	for _, o := range a.rehearsal.Unwritten() {
		if !cached[o.ID] {
			left = append(left, o)
		}
	}
	return left
}

// try judges a volume.
func (a *Set) try(v *conf.Volume) error {
	seen, err := a.place(v)
	if err != nil {
		return err
	}
	for _, look := range []func() error{
		func() error { _, err := a.reservationFile(v).peek(); return err },
		func() error { return a.tryStore(v, seen) },
		func() error { return a.tryEncryption(v, seen) },
		func() error { return a.tryShield(v, seen) },
		func() error { return a.tryKept(v) },
		func() error { return a.tryWindows(v) },
	} {
		if err := look(); err != nil {
			return err
		}
	}
	return nil
}

// errJudged ends the opening of a store that has been judged.
var errJudged = errors.New("judged")

// tryStore begins to open a volume's store.
func (a *Set) tryStore(v *conf.Volume, seen sighting) error {
	if v.Path == "" {
		return nil
	}
	if seen.Found.Missing && v.Type == conf.FileVolume && v.Size > 0 && !v.ReadOnly {
		_, err := os.Stat(filepath.Dir(v.Path)) // where it will be made
		return err
	}
	var found error
	size := max(seen.Found.Size, int64(v.Size))
	store, err := medium.Open(v, backstore.Intents{}, a.Log, func(w backstore.Watched) error {
		if a.rehearsal != nil && v.Cache != nil {
			found = a.rehearsal.Judge(tier.Prospect{
				ID: a.volumeID(v), Adopt: seen.Intention == evidence.Adopt, Enciphered: v.Encryption != nil, ReadOnly: v.ReadOnly, Size: size,
			}, w)
		}
		if c, ok := w.(backstore.Contestable); ok && found == nil {
			found = c.Contested(a.intentsOf(v, seen), v.ReadOnly, size)
		}
		return errJudged
	})
	switch {
	case err == nil: // Before was not asked: it is none of those that have it
		return store.Close()
	case !errors.Is(err, errJudged):
		return err
	case found == nil:
		return nil
	}
	return a.advise(v, fmt.Errorf("%s: %w", v.Path, found))
}

// tryEncryption looks at the keys and header of a volume.
func (a *Set) tryEncryption(v *conf.Volume, seen sighting) error {
	e := v.Encryption
	switch {
	case e == nil:
		return medium.NotEncrypted(v)
	case v.Clustered(): // other volumes can be served without its key, and other nodes may have it
		return nil
	}
	if durable.Absent(e.HeaderFile) {
		if _, err := crypt.ReadKey(e.KeyFile); err != nil || seen.Found.Missing {
			return err
		}
		return medium.MayHaveFirstHeader(v)
	}
	id, err := a.headerOf(v, seen)
	if err == nil {
		err = crypt.Recognise(e.HeaderFile, id)
	}
	if err != nil {
		return fmt.Errorf("encryption: header file %s: %w", e.HeaderFile, a.adviseHeader(v, err))
	}
	_, err = medium.CheckHeader(v)
	return err
}

// tryShield looks at a volume's protection information.
func (a *Set) tryShield(v *conf.Volume, seen sighting) error {
	if v.Protection == 0 || seen.Intention == evidence.Forget {
		return nil
	}
	file := a.shieldNote(v)
	note, err := file.Peek()
	var known protect.ID
	if err == nil {
		known, err = note.id()
	}
	if err != nil {
		return a.adviseShield(v, err)
	}
	if err := protect.Recognise(v.ProtectionFile, known); err != nil {
		return fmt.Errorf("protection information: %w", a.adviseShield(v, err))
	}
	return nil
}

// tryKept looks at what the state directory keeps of a volume besides.
func (a *Set) tryKept(v *conf.Volume) error {
	identifying, sanitizing := stateFileOf[scsi.Identifying](a, "identifying", v), stateFileOf[scsi.SanitizeNote](a, "sanitize", v)
	if _, err := identifying.Peek(); err != nil {
		return adviseIdentifying(identifying.Marked, err)
	}
	if v.Fleeting() {
		return nil
	}
	if _, err := sanitizing.Peek(); err != nil {
		return adviseSanitizing(sanitizing.Marked, err)
	}
	return nil
}
