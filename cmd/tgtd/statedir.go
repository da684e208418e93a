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

	"lunar/conf"
	"lunar/internal/durable"
	"lunar/internal/trust"
)

// makeStateDir makes the state directory if it is missing, for its owner only.
func makeStateDir(dir string) error {
	err := trustStateDir(dir)
	if err == nil {
		err = durable.MakeDir(dir)
	}
	if err != nil {
		return fmt.Errorf("state directory: %w (--state-dir chooses another)", err)
	}
	return nil
}

// trustStateDir refuses a state directory that others may change, or in which they may
// change something of the server's. Administrators may have put a directory of it
// elsewhere, by a symbolic link.
func trustStateDir(dir string) error {
	if err := trust.Check(dir, nil); err != nil {
		return err
	}
	for _, name := range conf.StateNames {
		root := filepath.Join(dir, name)
		if info, err := os.Stat(root); err == nil && info.IsDir() {
			if err := trust.Check(root, nil); err != nil {
				return err
			}
			root += string(filepath.Separator) // what a link leads to
		}
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // missing, or told when it is used
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			return trust.Below(path, info)
		})
		if err != nil {
			return err
		}
	}
	return nil
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
	id, sealed, err := readIdentity(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		fresh := make([]byte, identityBytes)
		rand.Read(fresh)
		id = hex.EncodeToString(fresh)
	case err != nil:
		return "", err
	case sealed:
		return id, identityFile(dir).note()
	}
	if err := identityFile(dir).write([]byte(id + "\n")); err != nil {
		return "", fmt.Errorf("server identity: %w", err)
	}
	return id, nil
}

// newStateDir reports whether no server has used the directory yet.
func newStateDir(dir string) bool {
	_, err := os.Stat(identityFile(dir).path())
	return errors.Is(err, fs.ErrNotExist)
}

// identityKind is that of the sealed file.
const identityKind = "identity"

func identityFile(dir string) marked { return marked{identityKind, dir, "identity"} }

// readIdentity returns the identity of a state directory that has one, and whether
// its file is as this version writes it; else the error is fs.ErrNotExist.
func readIdentity(dir string) (id string, sealed bool, err error) {
	text, sealed, err := identityFile(dir).read()
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, fmt.Errorf("server identity: %w", err)
	}
	id = strings.TrimSpace(string(text))
	raw, odd := hex.DecodeString(id)
	if err == nil && (odd != nil || len(raw) != identityBytes) {
		err = fmt.Errorf("found %d characters that begin with %.40q, expected %d hexadecimal digits", len(id), id, 2*identityBytes)
	}
	if err != nil {
		return "", false, fmt.Errorf("server identity %s: %w; put a copy back. To have another identity made, %s: volumes without serial in the configuration become other disks for their initiators, and what the cache segment and the state directory keep of them is not found",
			identityFile(dir).path(), err, identityFile(dir).without())
	}
	return id, sealed, nil
}
