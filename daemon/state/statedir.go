package state

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

// Make makes the state directory if it is missing, for its owner only.
func Make(dir string) error {
	err := Trust(dir)
	if err == nil {
		err = durable.MakeDir(dir)
	}
	if err != nil {
		return fmt.Errorf("state directory: %w (--state-dir chooses another)", err)
	}
	return nil
}

// Trust refuses a state directory that others may change, or in which they may
// change something of the server's. Administrators may have put a directory of it
// elsewhere, by a symbolic link.
func Trust(dir string) error {
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

// identityBytes is the length of a server's identity.
const identityBytes = 16

// ServerIdentity returns the random name that this state directory got when
// it was first used. Volumes derive their serial numbers from it, so that two
// servers never offer different volumes under one identity, which a multipath
// initiator would mix up.
func ServerIdentity(dir string) (string, error) {
	id, sealed, err := ReadIdentity(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		fresh := make([]byte, identityBytes)
		rand.Read(fresh)
		id = hex.EncodeToString(fresh)
	case err != nil:
		return "", err
	case sealed:
		return id, IdentityFile(dir).Mark().Make()
	}
	if err := IdentityFile(dir).Write([]byte(id + "\n")); err != nil {
		return "", fmt.Errorf("server identity: %w", err)
	}
	return id, nil
}

// Unused reports whether no server has used the directory yet.
func Unused(dir string) bool {
	_, err := os.Stat(IdentityFile(dir).Path())
	return errors.Is(err, fs.ErrNotExist)
}

// IdentityKind is that of the sealed file.
const IdentityKind = "identity"

// IdentityFile is where the identity of a state directory's server is.
func IdentityFile(dir string) Marked { return Marked{IdentityKind, dir, "identity"} }

// ReadIdentity returns the identity of a state directory that has one, and whether
// its file is as this version writes it; else the error is fs.ErrNotExist.
func ReadIdentity(dir string) (id string, sealed bool, err error) {
	text, sealed, err := IdentityFile(dir).Read()
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
			IdentityFile(dir).Path(), err, IdentityFile(dir).Without())
	}
	return id, sealed, nil
}
