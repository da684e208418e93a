package main

import (
	"errors"
	"fmt"
	"io/fs"

	"lunar/conf"
	"lunar/target/scsi/reservation"
)

// reservationFile is where the persistent reservations of a volume are kept over
// a loss of power (APTPL). Its name has what the volume is known by, so that
// another volume of the same name does not inherit them.
type reservationFile struct{ marked }

func (a *assembly) reservationFile(v *conf.Volume) reservationFile {
	return reservationFile{a.besides(reservationKind, v)}
}

// reservationKind is that of the sealed files.
const reservationKind = "reservations"

// load returns what was saved last; nil: nothing ever was. Damage and loss are errors:
// without reservations, a host that was fenced off could write again.
func (f reservationFile) load() (*reservation.State, error) {
	return f.get(func(s *reservation.State, sealed bool) error {
		if !sealed {
			return f.save(s)
		}
		return f.note()
	})
}

// peek is load that changes nothing.
func (f reservationFile) peek() (*reservation.State, error) {
	return f.get(func(*reservation.State, bool) error { return nil })
}

func (f reservationFile) get(settle func(s *reservation.State, sealed bool) error) (*reservation.State, error) {
	text, sealed, err := f.read()
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
		return nil, fmt.Errorf("reservations in %s: %w; put a copy back, or, once no host uses the volume that may not, %s", f.path(), err, f.without())
	}
	return s, nil
}

// save makes a state stable, whole or not at all.
func (f reservationFile) save(s *reservation.State) error {
	text, err := s.Marshal()
	if err != nil {
		return err
	}
	return f.write(append(text, '\n'))
}
