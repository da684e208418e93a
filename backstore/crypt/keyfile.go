package crypt

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"

	"lunar/internal/locked"
)

// keySize is the length of a wrapping key in bytes.
const keySize = 32

// Key is a wrapping key: that of a key file, in locked memory. It prints as ***.
type Key struct {
	bytes  *[keySize]byte // of memory, which lives as long as the Key
	memory *locked.Memory
}

func newKey() *Key {
	m := locked.New(keySize)
	return &Key{(*[keySize]byte)(m.Bytes()), m}
}

// Format hides the key under every verb.
func (Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "***") }

// Fingerprint tells keys apart without telling anything of them.
func (k *Key) Fingerprint() [8]byte {
	h := sha256.New()
	h.Write([]byte("lunar key file\x00"))
	h.Write(k.bytes[:])
	runtime.KeepAlive(k)
	defer locked.Wipe(h)
	return [8]byte(h.Sum(nil))
}

// maxKeyFile bounds what is read of a key file, in bytes.
const maxKeyFile = 256

// ReadKey reads a key file: 32 bytes as they are, in hexadecimal digits or in base64,
// the latter two with white space around. The file must belong to root or the user of
// the process, nobody else may be able to change it, and nobody but them and their
// group to read it.
func ReadKey(path string) (*Key, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		err = checkOwner(info, path)
	}
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	defer clear(text)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	k, ok := parseKey(text)
	if !ok {
		return nil, fmt.Errorf("key file %s: found %d bytes, expected %d random ones, as they are, as %d hexadecimal digits or in base64 (openssl rand -hex 32)",
			path, len(text), keySize, 2*keySize)
	}
	return k, nil
}

func checkOwner(info fs.FileInfo, path string) error {
	s, ok := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return errors.New("not a regular file")
	case mode.Perm()&0o037 != 0: // group may read: so show files with an access control list
		return fmt.Errorf("found mode %04o, expected 0400 or 0600: others must not read it, nor the group change it (chmod go= %s)", mode.Perm(), path)
	case ok && s.Uid != 0 && int(s.Uid) != os.Geteuid():
		return fmt.Errorf("found owner %d, expected 0 or %d, who runs the server", s.Uid, os.Geteuid())
	}
	return nil
}

// parseKey takes the forms that cannot be confused by their length.
func parseKey(text []byte) (*Key, bool) {
	k := newKey()
	if len(text) == keySize {
		copy(k.bytes[:], text)
		return k, *k.bytes != [keySize]byte{} && !printable(text)
	}
	word := bytes.TrimSpace(text)
	var raw [maxKeyFile]byte
	defer clear(raw[:])
	n, err := 0, error(nil)
	if len(word) == hex.EncodedLen(keySize) {
		n, err = hex.Decode(raw[:], word)
	} else {
		n, err = base64.StdEncoding.Decode(raw[:], word)
	}
	copy(k.bytes[:], raw[:])
	return k, err == nil && n == keySize && *k.bytes != [keySize]byte{}
}

// printable reports whether text is what somebody typed: one in 10^12 keys is taken
// for that.
func printable(text []byte) bool {
	for _, b := range text {
		if b >= 0x7f || b < ' ' && b != '\n' && b != '\r' && b != '\t' {
			return false
		}
	}
	return true
}
