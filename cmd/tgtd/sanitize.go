package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"lunar/conf"
	"lunar/internal/durable"
	"lunar/target/scsi"
)

// sanitizeFile is where it is kept over a restart that a sanitize operation of a
// volume has begun and not succeeded; "null": there is none. Its name is made like
// that of a reservationFile.
type sanitizeFile struct{ path string }

func (a *assembly) sanitizeFile(v *conf.Volume) sanitizeFile {
	return sanitizeFile{filepath.Join(a.stateDir, "sanitize", fmt.Sprintf("%s-%016x.json", v.Name, volumeID(v, a.identity)))}
}

// load returns what was saved last; nil: no operation. Damage is an error: the medium
// may be sanitized in part only.
func (f sanitizeFile) load() (n *scsi.SanitizeNote, err error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err != nil {
		return nil, fmt.Errorf("sanitize operation in %s: %w; if it does not matter whether the volume is sanitized, move the file away", f.path, err)
	}
	return n, nil
}

// save makes a note stable, whole or not at all.
func (f sanitizeFile) save(n *scsi.SanitizeNote) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := durable.MakeDir(filepath.Dir(f.path)); err != nil {
		return err
	}
	return durable.Replace(f.path, append(text, '\n'))
}

// sanitizing sets what is kept of sanitize operations, but of volumes in memory,
// which a restart empties.
func (a *assembly) sanitizing(v *conf.Volume, config *scsi.LUConfig) (err error) {
	if v.Path == "" {
		return nil
	}
	f := a.sanitizeFile(v)
	config.SaveSanitizing = f.save
	if config.Sanitizing, err = f.load(); err != nil {
		return fmt.Errorf("volume %s: %w", v.Name, err)
	}
	if config.Sanitizing != nil {
		a.log.Warn("a sanitize operation was not finished before: the volume is of no use until SANITIZE succeeds", "volume", v.Name)
	}
	return nil
}
