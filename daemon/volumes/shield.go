package volumes

import (
	"encoding/hex"
	"errors"
	"fmt"

	"lunar/backstore"
	"lunar/backstore/images"
	"lunar/backstore/protect"
	"lunar/conf"
	"lunar/daemon/state"
)

// shieldNote is what the state directory keeps of the file with a volume's protection
// information: without the file, damage of the data would not be noticed.
type shieldNote struct {
	ID string `json:"id"` // of the file, in hexadecimal digits
}

func (n *shieldNote) id() (id protect.ID, err error) {
	if n == nil {
		return id, nil
	}
	raw, err := hex.DecodeString(n.ID)
	if err != nil || len(raw) != len(id) {
		return id, fmt.Errorf("found %q, expected %d hexadecimal digits", n.ID, 2*len(id))
	}
	return protect.ID(raw), nil
}

func (a *Set) shieldNote(v *conf.Volume) state.File[shieldNote] {
	return stateFileOf[shieldNote](a, "protection", v)
}

// forgetShield forgets which file has a volume's protection information.
func (a *Set) forgetShield(v *conf.Volume) error { return a.shieldNote(v).Remove() }

// shielded puts protection information around the store of a volume that is to
// have it. On error the store is closed.
func (a *Set) shielded(v *conf.Volume, store backstore.Store) (backstore.Store, error) {
	if v.Protection == 0 {
		return store, nil
	}
	file := a.shieldNote(v)
	s, known, err := a.openShield(v, file, store)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if id := s.ID(); id != known {
		if err := file.Save(&shieldNote{id.String()}); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// openShield opens the protection information that the volume had, known, or what
// there is for one that had none. On error the store stays open.
func (a *Set) openShield(v *conf.Volume, file state.File[shieldNote], store backstore.Store) (s *protect.Store, known protect.ID, err error) {
	note, err := file.Load()
	if err == nil {
		known, err = note.id()
	}
	if err != nil {
		return nil, known, a.adviseShield(v, err)
	}
	if v.Path != "" { // which may have been rolled back: its protection information has to be, too
		if err := images.Follow(v.Path, v.ProtectionFile); err != nil {
			return nil, known, fmt.Errorf("protection information after a rollback: %w", err)
		}
	}
	s, err = protect.Open(protect.Config{
		Data: store, Path: v.ProtectionFile, Type: protect.Type(v.Protection), Block: v.BlockSize, ID: known, Logger: a.Log.With("volume", v.Name),
	})
	if errors.Is(err, protect.ErrNotIts) {
		err = a.adviseShield(v, err)
	}
	return s, known, err
}

// adviseShield says what can be done about protection information that is not the
// volume's, or of which that is not known.
func (a *Set) adviseShield(v *conf.Volume, err error) error {
	file := a.shieldNote(v)
	if errors.Is(err, protect.ErrNotIts) {
		return fmt.Errorf("%w. Put the file back that the volume had; or, if the volume is to be served with the protection information that is there, or with none for all blocks until they are written, so that damage of them is not noticed: move the note %s and its mark %s away",
			err, file.Path(), file.Mark())
	}
	return fmt.Errorf("identity of its protection information: %w; put a copy back, or, if %s is the volume's, %s", err, v.ProtectionFile, file.Without())
}
