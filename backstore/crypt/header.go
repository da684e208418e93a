package crypt

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime"

	"lunar/internal/locked"
)

// A header has the volume's master key, wrapped.
//
//	0    8  magic
//	8    4  version
//	12   4  size of a data unit in bytes
//	16   8  generation
//	24  16  identity of the volume, random
//	40   8  fingerprint of the wrapping key
//	48  12  nonce
//	60  80  the master key, wrapped with its tag
//	140  4  CRC32C of the bytes before
//
// The master key is wrapped with AES-256-GCM, whose additional data are the 48 bytes
// in front; the key for that is HKDF-SHA256 of the wrapping key with the identity as
// salt, so that volumes may share a key file. All numbers are little endian.
const (
	magic       = "LUNARKY1"
	version     = 1
	boundSize   = 48
	nonceSize   = 12
	wrappedSize = MasterSize + 16
	wrappedAt   = boundSize + nonceSize
	sumAt       = wrappedAt + wrappedSize
	headerSize  = sumAt + 4
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is a header that is open. Its methods must not overlap.
type header struct {
	place      Place
	key        *Key
	unit       uint32
	generation uint64
	identity   ID
}

// newHeader describes a volume that has no header yet.
func newHeader(key *Key, unit int) *header {
	h := &header{key: key, unit: uint32(unit), generation: 1}
	_, _ = rand.Read(h.identity[:])
	return h
}

// First makes the header of a volume that has none, with data units of unit bytes. Its master
// key is random, and mark tells it.
func First(key *Key, unit int) (b []byte, mark string) {
	master := freshMaster()
	defer clear(master[:])
	return newHeader(key, unit).encode(master), markText(markOf(master))
}

// openHeader reads a header and its master key. If the key does not open it and old does, the
// header is wrapped with key from now on, unless it must not be written. What a change left
// unfinished is finished. want is the identity that it must have; zero: any.
func openHeader(at Place, key, old *Key, unit int, want ID, readOnly bool) (h *header, master *[MasterSize]byte, err error) {
	b, err := at.Load()
	if err != nil {
		return nil, nil, err
	}
	h = &header{place: at, key: key}
	by, master, err := h.read(b, old, unit, want)
	switch {
	case err != nil:
		return nil, nil, err
	case readOnly:
	case by != key:
		err = h.replace(master)
	default:
		err = at.Settle()
	}
	return h, master, err
}

// read decodes a header for blocks of unit bytes, and unwraps its master key with the key or with
// old (nil: there is none).
func (h *header) read(b []byte, old *Key, unit int, want ID) (by *Key, master *[MasterSize]byte, err error) {
	if err := valid(b); err != nil {
		return nil, nil, err
	}
	h.decode(b)
	if want != (ID{}) && h.identity != want {
		return nil, nil, notIts(h.identity, want)
	}
	if int(h.unit) != unit {
		return nil, nil, fmt.Errorf("it is for blocks of %d bytes, the volume has blocks of %d", h.unit, unit)
	}
	by = h.key
	if print := h.fingerprint(b); print != by.Fingerprint() {
		if old == nil || print != old.Fingerprint() {
			return nil, nil, fmt.Errorf("the key file is another one: found fingerprint %x, expected %x (if the key was changed, name the one before as old-key-file)", by.Fingerprint(), print)
		}
		by = old
	}
	master, err = h.unwrap(by, b)
	return by, master, err
}

// Unwrap reports what is wrong with a header, or with the keys for it (old may be nil), and
// returns what tells its master key.
func Unwrap(b []byte, key, old *Key, unit int) (id ID, mark string, err error) {
	h := &header{key: key}
	_, master, err := h.read(b, old, unit, ID{})
	if err != nil {
		return id, "", err
	}
	defer clear(master[:])
	return h.identity, markText(markOf(master)), nil
}

// errNone says that something is no header.
var errNone = errors.New("found no header in it: it is damaged, or something else")

// valid reports whether b begins with a header of this version.
func valid(b []byte) error {
	le := binary.LittleEndian
	if len(b) < headerSize || string(b[:8]) != magic || le.Uint32(b[sumAt:]) != crc32.Checksum(b[:sumAt], castagnoli) {
		return errNone
	}
	if v := le.Uint32(b[8:]); v != version {
		return fmt.Errorf("found version %d, expected %d", v, version)
	}
	return nil
}

// generationOf is that of a valid header.
func generationOf(b []byte) uint64 { return binary.LittleEndian.Uint64(b[16:]) }

func (h *header) decode(b []byte) {
	le := binary.LittleEndian
	h.unit, h.generation = le.Uint32(b[12:]), generationOf(b)
	copy(h.identity[:], b[24:])
}

func (h *header) fingerprint(b []byte) [8]byte { return [8]byte(b[40:48]) }

// encode makes the header with a master key.
func (h *header) encode(master *[MasterSize]byte) []byte {
	b, le := make([]byte, headerSize), binary.LittleEndian
	copy(b, magic)
	le.PutUint32(b[8:], version)
	le.PutUint32(b[12:], h.unit)
	le.PutUint64(b[16:], h.generation)
	copy(b[24:], h.identity[:])
	print := h.key.Fingerprint()
	copy(b[40:], print[:])
	nonce := b[boundSize:wrappedAt]
	_, _ = rand.Read(nonce)
	by := h.wrapping(h.key)
	defer locked.Wipe(by)
	by.Seal(b[wrappedAt:wrappedAt], nonce, master[:], b[:boundSize])
	putSum(b)
	return b
}

func putSum(b []byte) {
	binary.LittleEndian.PutUint32(b[sumAt:], crc32.Checksum(b[:sumAt], castagnoli))
}

// unwrap returns a header's master key.
func (h *header) unwrap(key *Key, b []byte) (*[MasterSize]byte, error) {
	master := new([MasterSize]byte)
	by := h.wrapping(key)
	defer locked.Wipe(by)
	_, err := by.Open(master[:0], b[boundSize:wrappedAt], b[wrappedAt:sumAt], b[:boundSize])
	if err != nil {
		return nil, errors.New("its key cannot be unwrapped: somebody has changed the header; put its copy back")
	}
	return master, nil
}

// wrapping is the cipher that wraps the volume's master key. The caller wipes it.
func (h *header) wrapping(key *Key) cipher.AEAD {
	derived, err := hkdf.Key(sha256.New, key.bytes[:], h.identity[:], "lunar volume key 1", keySize)
	if err != nil {
		panic(err) // the length is right
	}
	runtime.KeepAlive(key)
	defer clear(derived)
	block, err := aes.NewCipher(derived)
	if err != nil {
		panic(err)
	}
	defer locked.Wipe(block) // GCM has a copy
	g, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return g
}

// replace makes another master key, or the same one wrapped anew, that of the header. Errors
// are those of Place.Store.
func (h *header) replace(master *[MasterSize]byte) error {
	h.generation++
	return h.place.Store(h.encode(master), markText(markOf(master)))
}

// rewrap wraps the master key with another key. After an error but errRemains the one
// before counts still.
func (h *header) rewrap(key *Key) error {
	b, err := h.place.Load()
	if err != nil {
		return err
	}
	master, err := h.unwrap(h.key, b)
	if err != nil {
		return err
	}
	defer clear(master[:])
	was := h.key
	h.key = key
	if err = h.replace(master); err != nil && !errors.Is(err, errRemains) {
		h.key = was
	}
	return err
}
