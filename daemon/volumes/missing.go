package volumes

import (
	"lunar/conf"
	"lunar/daemon/medium"
)

// MissingOf returns what takes back the files that opening a volume makes, with the
// note of its protection information.
func (a *Set) MissingOf(v *conf.Volume) (restore func() error) {
	m, note := medium.MissingOf(v), a.shieldNote(v)
	noted := !medium.Absent(note.Path()) || !medium.Absent(note.Mark())
	return func() error {
		if err := m.Restore(); err != nil || noted || !medium.Absent(v.ProtectionFile) {
			return err
		}
		return note.Remove()
	}
}
