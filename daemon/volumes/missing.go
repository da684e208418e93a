package volumes

import (
	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/internal/durable"
)

// MissingOf returns what takes back the files that opening a volume makes, with the
// note of its protection information.
func (a *Set) MissingOf(v *conf.Volume) (restore func() error) {
	m, note := medium.MissingOf(v), a.shieldNote(v)
	noted := !durable.Absent(note.Path()) || note.Mark().There()
	return func() error {
		if err := m.Restore(); err != nil || noted || !durable.Absent(v.ProtectionFile) {
			return err
		}
		return note.Remove()
	}
}
