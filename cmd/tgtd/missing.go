package main

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"lunar/backstore/crypt"
	"lunar/conf"
)

// missing says which files of a volume were not there before it was opened.
type missing struct {
	volume                *conf.Volume
	store, shield, header bool
}

func missingOf(v *conf.Volume) missing {
	return missing{
		volume: v,
		store:  v.Path != "" && absent(v.Path),
		shield: v.ProtectionFile != "" && absent(v.ProtectionFile),
		header: v.Encryption != nil && absent(v.Encryption.HeaderFile),
	}
}

// restore removes the files of a volume that opening it has made. It is closed. What
// has been written to meanwhile stays, with all that belongs to it.
func (m missing) restore() error {
	v := m.volume
	if m.store {
		if gone, err := removeUnused(v.Path, crypt.Blank); err != nil || !gone {
			return err
		}
	}
	var errs []error
	if m.shield {
		_, err := removeUnused(v.ProtectionFile, nil)
		errs = append(errs, err)
	}
	if m.header {
		errs = append(errs, removeHeader(v))
	}
	return errors.Join(errs...)
}

// removeHeader removes the header of a volume with which nothing was enciphered.
func removeHeader(v *conf.Volume) error {
	blank, err := crypt.Blank(v.Path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && blank {
		return removed(v.Encryption.HeaderFile)
	}
	return err
}

// missingOf returns what takes back the files that opening a volume makes, with the
// note of its protection information.
func (a *assembly) missingOf(v *conf.Volume) (restore func() error) {
	m, note := missingOf(v), a.shieldNote(v)
	noted := !absent(note.path()) || !absent(note.mark())
	return func() error {
		if err := m.restore(); err != nil || noted || !absent(v.ProtectionFile) {
			return err
		}
		return note.remove()
	}
}

// removeUnused removes a file that nobody has locked and that may go, if there is one,
// and reports whether there is none now.
func removeUnused(path string, may func(path string) (bool, error)) (gone bool, err error) {
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

// removed removes a file that may be there.
func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
