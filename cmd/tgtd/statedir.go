package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// openStateDir makes the state directory if it is missing, for its owner
// only, and returns its absolute path.
func openStateDir(dir string) (string, error) {
	dir, err := pathOfStateDir(dir)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("state directory: %w (--state-dir chooses another)", err)
	}
	return dir, nil
}

// pathOfStateDir returns the absolute path of the state directory that a flag
// names, or of the default one.
func pathOfStateDir(flag string) (dir string, err error) {
	if dir = flag; dir == "" {
		dir, err = defaultStateDir()
	}
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", fmt.Errorf("state directory: %w", err)
	}
	return dir, nil
}

// defaultStateDir follows the XDG base directory specification for everyone
// but root.
func defaultStateDir() (string, error) {
	if os.Geteuid() == 0 {
		return "/var/lib/lunar", nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "lunar"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("%w (--state-dir names one)", err)
	}
	return filepath.Join(home, ".local/state/lunar"), nil
}

// identityBytes is the length of a server's identity.
const identityBytes = 16

// serverIdentity returns the random name that this state directory got when
// it was first used. Volumes derive their serial numbers from it, so that two
// servers never offer different volumes under one identity, which a multipath
// initiator would mix up.
func serverIdentity(dir string) (string, error) {
	id, err := readIdentity(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	fresh := make([]byte, identityBytes)
	rand.Read(fresh)
	id = hex.EncodeToString(fresh)
	if err := writeNew(identityFile(dir), []byte(id+"\n")); err != nil {
		return "", fmt.Errorf("server identity: %w", err)
	}
	return id, nil
}

// newStateDir reports whether no server has used the directory yet.
func newStateDir(dir string) bool {
	_, err := os.Stat(identityFile(dir))
	return errors.Is(err, fs.ErrNotExist)
}

func identityFile(dir string) string { return filepath.Join(dir, "identity") }

// readIdentity returns the identity of a state directory that has one; else the
// error is fs.ErrNotExist.
func readIdentity(dir string) (string, error) {
	text, err := os.ReadFile(identityFile(dir))
	if err != nil {
		return "", fmt.Errorf("server identity: %w", err)
	}
	id := strings.TrimSpace(string(text))
	if raw, err := hex.DecodeString(id); err != nil || len(raw) != identityBytes {
		return "", fmt.Errorf("server identity %s: found %q, expected %d hexadecimal digits", identityFile(dir), id, 2*identityBytes)
	}
	return id, nil
}

// writeNew writes a file whole or not at all, and never over another.
func writeNew(path string, data []byte) error { return putFile(path, data, os.Link) }

// replaceFile writes a file whole or not at all, also over another.
func replaceFile(path string, data []byte) error { return putFile(path, data, os.Rename) }

// putFile writes under another name; put gives the file its own.
func putFile(path string, data []byte, put func(from, to string) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // it is gone after a rename
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return put(f.Name(), path)
}
