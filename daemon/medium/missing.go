package medium

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"lunar/backstore/crypt"
	"lunar/conf"
	"lunar/internal/durable"
)

// MissingFiles says which files of a volume were not there before it was opened.
type MissingFiles struct {
	volume                *conf.Volume
	Store, Shield, Header bool
}

// MissingOf looks which of a volume's files are not there.
func MissingOf(v *conf.Volume) MissingFiles {
	return MissingFiles{
		volume: v,
		Store:  v.Path != "" && durable.Absent(v.Path),
		Shield: v.ProtectionFile != "" && durable.Absent(v.ProtectionFile),
		Header: v.Encryption != nil && !v.Clustered() && durable.Absent(v.Encryption.HeaderFile),
	}
}

// Restore removes the files of a volume that opening it has made. It is closed. What
// has been written to meanwhile stays, with all that belongs to it.
func (m MissingFiles) Restore() error {
	v := m.volume
	if m.Store {
		if gone, err := RemoveUnused(v.Path, crypt.Blank); err != nil || !gone {
			return err
		}
	}
	var errs []error
	if m.Shield {
		_, err := RemoveUnused(v.ProtectionFile, nil)
		errs = append(errs, err)
	}
	if m.Header {
		errs = append(errs, removeHeader(v))
	}
	return errors.Join(errs...)
}

// removeHeader removes the header of a volume with which nothing was enciphered.
func removeHeader(v *conf.Volume) error {
	unused, err := blank(v)
	if err == nil && unused {
		return Removed(v.Encryption.HeaderFile)
	}
	return err
}

// RemoveUnused removes a file that nobody has locked and that may go, if there is one,
// and reports whether there is none now.
func RemoveUnused(path string, may func(path string) (bool, error)) (gone bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false, nil
	}
	if may != nil {
		if ok, err := may(path); err != nil || !ok {
			return false, err
		}
	}
	return true, os.Remove(path)
}

// Removed removes a file that may be there.
func Removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
