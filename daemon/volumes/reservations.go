package volumes

import (
	"errors"
	"fmt"
	"io/fs"

	"lunar/conf"
	"lunar/daemon/state"
	"lunar/target/scsi/reservation"
)

// ReservationFile is where the persistent reservations of a volume are kept over
// a loss of power (APTPL). Its name has what the volume is known by, so that
// another volume of the same name does not inherit them.
type ReservationFile struct{ state.Marked }

func (a *Set) reservationFile(v *conf.Volume) ReservationFile {
	return ReservationFile{a.stateFile(ReservationKind, v)}
}

// ReservationKind is that of the sealed files.
const ReservationKind = "reservations"

// Load returns what was saved last; nil: nothing ever was. Damage and loss are errors:
// without reservations, a host that was fenced off could write again.
func (f ReservationFile) Load() (*reservation.State, error) {
	return f.get(func(s *reservation.State, sealed bool) error {
		if !sealed {
			return f.save(s)
		}
		return f.Mark().Make()
	})
}

// peek is load that changes nothing.
func (f ReservationFile) peek() (*reservation.State, error) {
	return f.get(func(*reservation.State, bool) error { return nil })
}

func (f ReservationFile) get(settle func(s *reservation.State, sealed bool) error) (*reservation.State, error) {
	text, sealed, err := f.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var s *reservation.State
	if err == nil {
		s, err = reservation.Unmarshal(text)
	}
	if err == nil {
		err = settle(s, sealed)
	}
	if err != nil {
		return nil, fmt.Errorf("reservations in %s: %w; put a copy back, or, once no host uses the volume that may not, %s", f.Path(), err, f.Without())
	}
	return s, nil
}

// save makes a state stable, whole or not at all.
func (f ReservationFile) save(s *reservation.State) error {
	text, err := s.Marshal()
	if err != nil {
		return err
	}
	return f.Write(append(text, '\n'))
}
