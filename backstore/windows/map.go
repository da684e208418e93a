package windows

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"lunar/backstore"
)

// MapSize is the size in bytes of the file that a Mirror keeps its map in.
const MapSize = 2 * slotSize

// The map has two slots, of which the newer one that is whole counts. All numbers are
// little-endian.
const (
	slotSize  = 8 << 10
	mapMagic  = "LUNARMIR"
	mapFormat = 1

	magicAt, formatAt, sequenceAt, sizeAt = 0, 8, 16, 24
	leaderAt, lostAt                      = 32, 33
	identityAt                            = 64 // of the members, three words each
	mapIdentityAt                         = 128
	bitsAt                                = 4096
	sumAt                                 = bitsAt - 4 // CRC-32C of all else
)

// medium says which file or device a member is; zero: it cannot tell.
type medium [3]uint64

// note is what the map says.
type note struct {
	identity [16]byte // of the map
	sequence uint64
	size     int64     // of the volume, in bytes
	leader   int       // the member that has all data
	lost     [2]bool   // members that are not written to
	media    [2]medium // of the members
	differ   regions   // that the other member may lack
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (n *note) encode(b []byte) {
	clear(b)
	copy(b[magicAt:], mapMagic)
	binary.LittleEndian.PutUint32(b[formatAt:], mapFormat)
	binary.LittleEndian.PutUint64(b[sequenceAt:], n.sequence)
	binary.LittleEndian.PutUint64(b[sizeAt:], uint64(n.size))
	b[leaderAt] = byte(n.leader)
	copy(b[mapIdentityAt:], n.identity[:])
	for i := range n.lost {
		if n.lost[i] {
			b[lostAt] |= 1 << i
		}
		for k, w := range n.media[i] {
			binary.LittleEndian.PutUint64(b[identityAt+(i*len(n.media[i])+k)*8:], w)
		}
	}
	n.differ.encode(b[bitsAt:])
	binary.LittleEndian.PutUint32(b[sumAt:], slotSum(b))
}

func slotSum(b []byte) uint32 {
	return crc32.Update(crc32.Checksum(b[:sumAt], castagnoli), castagnoli, b[sumAt+4:slotSize])
}

// decode reports whether a slot is whole.
func (n *note) decode(b []byte) bool {
	if string(b[magicAt:formatAt]) != mapMagic || binary.LittleEndian.Uint32(b[formatAt:]) != mapFormat ||
		binary.LittleEndian.Uint32(b[sumAt:]) != slotSum(b) || b[leaderAt] > 1 {
		return false
	}
	n.sequence = binary.LittleEndian.Uint64(b[sequenceAt:])
	n.size = int64(binary.LittleEndian.Uint64(b[sizeAt:]))
	n.leader = int(b[leaderAt])
	copy(n.identity[:], b[mapIdentityAt:])
	for i := range n.lost {
		n.lost[i] = b[lostAt]>>i&1 != 0
		for k := range n.media[i] {
			n.media[i][k] = binary.LittleEndian.Uint64(b[identityAt+(i*len(n.media[i])+k)*8:])
		}
	}
	n.differ.decode(b[bitsAt:])
	return true
}

// errNoMap says that a map has never been written.
var errNoMap = errors.New("the map is empty")

// chart is a map on its medium.
type chart struct {
	disk *disk
	page []byte // to write from: a slot
}

// load returns what the map says, errNoMap if it is a fresh one.
func (c *chart) load() (n note, err error) {
	var found bool
	blank := true
	for i := range int64(2) {
		if err := c.disk.read(i*slotSize, c.page); err != nil {
			return n, fmt.Errorf("read the map: %w", err)
		}
		blank = blank && bytes.Equal(c.page, make([]byte, slotSize))
		var one note
		if one.decode(c.page) && (!found || one.sequence > n.sequence) {
			n, found = one, true
		}
	}
	switch {
	case found:
		return n, nil
	case blank:
		return n, errNoMap
	}
	return n, errors.New("found a map that is damaged, or something else")
}

// save makes a note stable: in the slot that has the older one, so that there is always
// one that is whole.
func (c *chart) save(n *note) error {
	n.sequence++
	n.encode(c.page)
	if err := c.disk.write(int64(n.sequence%2)*slotSize, c.page, true); err != nil {
		return fmt.Errorf("write the map: %w", err)
	}
	return nil
}

// mediumOf says which file or device a store is.
func mediumOf(s backstore.Store) medium {
	if k, ok := s.(interface{ Medium() [3]uint64 }); ok {
		return k.Medium()
	}
	return medium{}
}
