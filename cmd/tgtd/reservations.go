package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"lunar/conf"
	"lunar/internal/durable"
	"lunar/target/scsi/reservation"
)

// reservationFile is where the persistent reservations of a volume are kept over
// a loss of power (APTPL). Its name has what the volume is known by, so that
// another volume of the same name does not inherit them.
type reservationFile struct{ path string }

func (a *assembly) reservationFile(v *conf.Volume) reservationFile {
	return reservationFile{a.besides("reservations", v) + ".json"}
}

// reservationKind is that of the sealed files.
const reservationKind = "reservations"

// load returns what was saved last; nil: nothing ever was. Damage is an error:
// without reservations, a host that was fenced off could write again.
func (f reservationFile) load() (*reservation.State, error) {
	text, sealed, err := durable.ReadSealed(f.path, reservationKind)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var s *reservation.State
	if err == nil {
		s, err = reservation.Unmarshal(text)
	}
	if err == nil && !sealed {
		err = f.save(s)
	}
	if err != nil {
		return nil, fmt.Errorf("reservations in %s: %w; once no host uses the volume that may not, move the file away", f.path, err)
	}
	return s, nil
}

// save makes a state stable, whole or not at all.
func (f reservationFile) save(s *reservation.State) error {
	text, err := s.Marshal()
	if err != nil {
		return err
	}
	if err := durable.MakeDir(filepath.Dir(f.path)); err != nil {
		return err
	}
	return durable.ReplaceSealed(f.path, reservationKind, append(text, '\n'))
}
