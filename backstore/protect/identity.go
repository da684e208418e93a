package protect

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ID tells a sidecar file from those of other volumes and from one that was made
// later for the same volume.
type ID [16]byte

// String returns hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// ErrNotIts says that a sidecar file is not the one that the volume had.
var ErrNotIts = errors.New("not the protection information that the volume had")

// Where the header page has the identity.
const (
	idOffset = 64
	idSize   = len(ID{}) + 4
)

func (id ID) stored() []byte {
	return binary.LittleEndian.AppendUint32(id[:len(id):len(id)], crc32.Checksum(id[:], castagnoli))
}

// parseID returns the identity of a header page; zero: it has none yet.
func parseID(b []byte) (id ID, err error) {
	copy(id[:], b)
	if bytes.Equal(b, make([]byte, idSize)) {
		return id, nil
	}
	if !bytes.Equal(b, id.stored()) {
		return id, errors.New("found damage in its header, expected an identity that fits its checksum")
	}
	return id, nil
}

// Recognise looks for the sidecar file with an identity before anything is changed.
func Recognise(path string, want ID) error {
	if want == (ID{}) {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: found no file: %w", path, ErrNotIts)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var h [idOffset + idSize]byte
	if _, err := f.ReadAt(h[:], 0); err != nil && err != io.EOF {
		return err
	}
	if bytes.Equal(h[:headerSize], make([]byte, headerSize)) {
		return fmt.Errorf("%s: found an empty file: %w", path, ErrNotIts)
	}
	found, err := parseID(h[idOffset:])
	if err == nil && found != want {
		err = fmt.Errorf("found identity %v, expected %v: %w", found, want, ErrNotIts)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// identify returns the identity of the sidecar file, which gets one if it has none.
func (j *journal) identify(readOnly bool) (id ID, err error) {
	b := make([]byte, idSize)
	if _, err = unix.Pread(j.fd, b, idOffset); err == nil {
		id, err = parseID(b)
	}
	if err != nil || id != (ID{}) || readOnly {
		return id, err
	}
	_, _ = rand.Read(id[:]) // never fails
	return id, j.put(id.stored(), idOffset)
}
