package volumes

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"lunar/backstore"
	"lunar/backstore/windows"
	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/daemon/state"
)

// windowsNote is what the state directory keeps of the map of a mirror, or of the device
// with writes in excess: without it, older data would be served.
type windowsNote struct {
	ID   string `json:"id"`   // in hexadecimal digits
	Path string `json:"path"` // for messages
}

// identity returns the one that is noted; zero: none is.
func (n *windowsNote) identity() (id [16]byte, err error) {
	if n == nil {
		return id, nil
	}
	raw, err := hex.DecodeString(n.ID)
	if err != nil || len(raw) != len(id) {
		return id, fmt.Errorf("found %q, expected %d hexadecimal digits", n.ID, 2*len(id))
	}
	return [16]byte(raw), nil
}

func (a *Set) mirrorNote(v *conf.Volume) state.File[windowsNote] {
	return stateFileOf[windowsNote](a, "mirror", v)
}

func (a *Set) excessNote(v *conf.Volume) state.File[windowsNote] {
	return stateFileOf[windowsNote](a, "excess", v)
}

// advise says what can be done about a map or device that is not the volume's, or of
// which that is not known.
func adviseWindows(file state.File[windowsNote], path string, err error) error {
	if errors.Is(err, windows.ErrNotIts) {
		return fmt.Errorf("%s: %w. Put back the one that the volume had; only if it is lost for good, and older data are better than none, move the note %s and its mark %s away", path, err, file.Path(), file.Mark())
	}
	return err
}

// loadNote returns what is noted.
func loadNote(file state.File[windowsNote]) (id [16]byte, note *windowsNote, err error) {
	if note, err = file.Load(); err == nil {
		id, err = note.identity()
	}
	if err != nil {
		err = fmt.Errorf("note of %s: %w; put a copy back", file.Path(), err)
	}
	return id, note, err
}

// mirror opens a volume's members and map.
func (a *Set) mirror(v *conf.Volume) (backstore.Store, error) {
	file := a.mirrorNote(v)
	known, _, err := loadNote(file)
	if err != nil {
		return nil, err
	}
	chart, err := medium.OpenBeside(v.Map, windows.MapSize, false, a.Log)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	c := windows.MirrorConfig{
		Name: v.Name, Map: chart, Identity: known, Size: int64(v.Size), Held: int64(v.Held), Window: v.Window, Logger: a.Log,
	}
	member := *v
	if known != [16]byte{} {
		member.Size = 0 // a member that is missing is none to be made
	}
	for i, path := range v.Members {
		c.Members[i] = windows.Member{
			Name: path, Size: func() (int64, error) { return medium.SizeAt(path) },
			Open: func() (backstore.Store, error) { return medium.OpenMember(&member, path, a.Log) },
		}
	}
	m, err := windows.OpenMirror(c)
	if err != nil {
		return nil, adviseWindows(file, v.Map, err)
	}
	if id := m.Identity(); id != known {
		if err := file.Save(&windowsNote{hex.EncodeToString(id[:]), v.Map}); err != nil {
			return nil, errors.Join(err, m.Close())
		}
	}
	return m, nil
}

// excessWindow is that of volumes with writes in excess.
const excessWindow = 10 * time.Millisecond

// excess puts the device for writes in excess before a volume's store. A volume that has
// writes there, and no such device any more, is not served. On error the store is closed.
func (a *Set) excess(v *conf.Volume, slow backstore.Store) (backstore.Store, error) {
	if v.Path == "" {
		return slow, nil
	}
	file := a.excessNote(v)
	known, note, err := loadNote(file)
	if err == nil && v.Excess == "" {
		if note == nil {
			return slow, nil
		}
		err = fmt.Errorf("%s has writes of this volume that were not written back: put the key excess back and stop the server in order; only if that device is lost for good, and older data are better than none, move the note %s and its mark %s away", note.Path, file.Path(), file.Mark())
	}
	var fast backstore.Store
	if err == nil {
		if fast, err = medium.OpenBeside(v.Excess, int64(v.ExcessSize), true, a.Log); err != nil {
			err = fmt.Errorf("excess: %w", err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, slow.Close())
	}
	x, err := windows.OpenExcess(windows.ExcessConfig{
		Name: v.Name, Slow: slow, Fast: fast, Identity: known, Window: excessWindow,
		Writes: perWindow(v.ExcessWrites), Logger: a.Log,
	})
	if err != nil {
		return nil, adviseWindows(file, v.Excess, err)
	}
	id := x.Identity()
	if err := file.Save(&windowsNote{hex.EncodeToString(id[:]), v.Excess}); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return &excessStore{x, file.Remove}, nil
}

// perWindow is a rate per second in writes per window: at least one, unless there is none.
func perWindow(rate int) int64 {
	if rate == 0 {
		return 0
	}
	return max(1, int64(rate)*int64(excessWindow)/int64(time.Second))
}

// excessStore forgets its device once that has nothing any more.
type excessStore struct {
	*windows.Excess
	forget func() error
}

// Close implements backstore.Store.
func (s *excessStore) Close() error {
	if err := s.Excess.Close(); err != nil || !s.Empty() {
		return err
	}
	return s.forget()
}

// tryWindows looks at what a mirror, or a volume with writes in excess, needs besides.
func (a *Set) tryWindows(v *conf.Volume) error {
	if _, err := a.mirrorNote(v).Peek(); err != nil {
		return err
	}
	note, err := a.excessNote(v).Peek()
	if err != nil {
		return err
	}
	if note != nil && v.Excess == "" {
		return fmt.Errorf("%s has writes of this volume that were not written back: it needs the key excess", note.Path)
	}
	if note != nil {
		_, err = os.Stat(v.Excess)
	}
	return err
}
