package crypt

import (
	"bytes"
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

// A header file has two slots, each with a page of its own. The valid one with the
// higher generation counts. A change writes the other slot, makes it stable and then
// overwrites the old one with zeroes: whatever happens in between, there is the old
// master key or the new one, and in the end no copy of the old one.
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
	slotSize    = 4096
	fileSize    = 2 * slotSize
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// file is where a header lies.
type file interface {
	// ReadAt fills b from off on.
	ReadAt(b []byte, off int64) error
	// WriteStable writes b and makes it stable.
	WriteStable(b []byte, off int64) error
}

// header is an open header file. Its methods must not overlap.
type header struct {
	file       file
	key        *Key
	unit       uint32
	generation uint64
	identity   ID
	slot       int // that counts
}

// errDoubt says that nobody knows which master key a header will have when it is
// opened again.
var errDoubt = errors.New("it is not known which key the header file has now")

// newHeader describes a volume that has no header yet.
func newHeader(key *Key, unit int) *header {
	h := &header{key: key, unit: uint32(unit), generation: 1}
	_, _ = rand.Read(h.identity[:])
	return h
}

// contents are those of a header file of the first generation.
func (h *header) contents(master *[MasterSize]byte) []byte {
	return append(h.encode(master), make([]byte, slotSize)...)
}

// openHeader reads a header file and its master key. If the key does not open it and
// old does, the header is wrapped with key from now on, unless it must not be written.
// What a change left unfinished is finished.
func openHeader(f file, key, old *Key, unit int, readOnly bool) (h *header, master *[MasterSize]byte, err error) {
	slots, err := readSlots(f)
	if err != nil {
		return nil, nil, err
	}
	slot, err := newest(slots)
	if err != nil {
		return nil, nil, err
	}
	h = &header{file: f, key: key, slot: slot}
	h.decode(slots[slot])
	if int(h.unit) != unit {
		return nil, nil, fmt.Errorf("it is for blocks of %d bytes, the volume has blocks of %d", h.unit, unit)
	}
	by := key
	if print := h.fingerprint(slots[slot]); print != key.Fingerprint() {
		if old == nil || print != old.Fingerprint() {
			return nil, nil, fmt.Errorf("the key file is another one: found fingerprint %x, expected %x (if the key was changed, name the one before as old-key-file)", key.Fingerprint(), print)
		}
		by = old
	}
	if master, err = h.unwrap(by, slots[slot]); err != nil {
		return nil, nil, err
	}
	return h, master, h.settle(slots[1-slot], master, by != key, readOnly)
}

func readSlots(f file) (slots [2][]byte, err error) {
	for i := range slots {
		slots[i] = make([]byte, slotSize)
		if err := f.ReadAt(slots[i], int64(i)*slotSize); err != nil {
			return slots, err
		}
	}
	return slots, nil
}

// settle overwrites what is in the slot that does not count, and wraps the master key
// anew if it has to be.
func (h *header) settle(other []byte, master *[MasterSize]byte, rewrap, readOnly bool) error {
	switch {
	case readOnly:
		return nil
	case rewrap:
		return h.replace(master)
	case !bytes.Equal(other, make([]byte, slotSize)):
		return h.wipe(1 - h.slot)
	}
	return nil
}

// newest returns the slot that counts.
func newest(slots [2][]byte) (int, error) {
	best, generation := -1, uint64(0)
	for i, b := range slots {
		le := binary.LittleEndian
		if string(b[:8]) != magic || le.Uint32(b[sumAt:]) != crc32.Checksum(b[:sumAt], castagnoli) {
			continue
		}
		if v := le.Uint32(b[8:]); v != version {
			return 0, fmt.Errorf("found version %d, expected %d", v, version)
		}
		if g := le.Uint64(b[16:]); best < 0 || g > generation {
			best, generation = i, g
		}
	}
	if best < 0 {
		return 0, errors.New("found no header in it: it is damaged, or something else")
	}
	return best, nil
}

func (h *header) decode(b []byte) {
	le := binary.LittleEndian
	h.unit, h.generation = le.Uint32(b[12:]), le.Uint64(b[16:])
	copy(h.identity[:], b[24:])
}

func (h *header) fingerprint(b []byte) [8]byte { return [8]byte(b[40:48]) }

// encode makes a slot with a master key.
func (h *header) encode(master *[MasterSize]byte) []byte {
	b, le := make([]byte, slotSize), binary.LittleEndian
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

func putSum(slot []byte) {
	binary.LittleEndian.PutUint32(slot[sumAt:], crc32.Checksum(slot[:sumAt], castagnoli))
}

// unwrap returns a slot's master key.
func (h *header) unwrap(key *Key, b []byte) (*[MasterSize]byte, error) {
	master := new([MasterSize]byte)
	by := h.wrapping(key)
	defer locked.Wipe(by)
	_, err := by.Open(master[:0], b[boundSize:wrappedAt], b[wrappedAt:sumAt], b[:boundSize])
	if err != nil {
		return nil, errors.New("its key cannot be unwrapped: somebody has changed the header file; put its copy back")
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

// replace makes another master key, or the same one wrapped anew, that of the header,
// and overwrites the one before. After an error the one before counts still, unless
// the error is errDoubt or errRemains.
func (h *header) replace(master *[MasterSize]byte) error {
	h.generation++
	other := 1 - h.slot
	if err := h.file.WriteStable(h.encode(master), int64(other)*slotSize); err != nil {
		if again := h.wipe(other); again != nil {
			return errors.Join(errDoubt, err, again)
		}
		return err
	}
	h.slot = other
	if err := h.wipe(1 - other); err != nil {
		return errors.Join(errRemains, err)
	}
	return nil
}

// rewrap wraps the master key with another key. After an error but errRemains the one
// before counts still.
func (h *header) rewrap(key *Key) error {
	b := make([]byte, slotSize)
	if err := h.file.ReadAt(b, int64(h.slot)*slotSize); err != nil {
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

// errRemains says that a new key is in force and the old one may still be there.
var errRemains = errors.New("the old key could not be overwritten")

// wipe overwrites a slot.
func (h *header) wipe(slot int) error {
	return h.file.WriteStable(make([]byte, slotSize), int64(slot)*slotSize)
}
