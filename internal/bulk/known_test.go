package bulk

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"lunar/backstore"
)

// cut is a file that can lose power: of what was written since the last Sync, any sectors
// arrive.
type cut struct {
	stable, now []byte
	closed      bool
	fuse        int // operations until one fails, and all after it; 0: none does
}

var errCut = errors.New("the power is gone")

func (f *cut) burn() error {
	if f.fuse == 1 {
		return errCut
	}
	f.fuse = max(f.fuse-1, 0)
	return nil
}

func (f *cut) ReadAt(b []byte, off int64) (int, error) {
	if off >= int64(len(f.now)) {
		return 0, io.EOF
	}
	n := copy(b, f.now[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *cut) WriteAt(b []byte, off int64) (int, error) {
	if f.closed {
		return 0, errors.New("found it closed")
	}
	if err := f.burn(); err != nil {
		return 0, err
	}
	f.now = grown(f.now, int(off)+len(b))
	return copy(f.now[off:], b), nil
}

func (f *cut) Truncate(size int64) error {
	f.now = grown(f.now, int(size))[:size:size]
	return nil
}

func (f *cut) Sync() error {
	if err := f.burn(); err != nil {
		return err
	}
	f.stable = slices.Clone(f.now)
	return nil
}

func (f *cut) Close() error {
	f.closed = true
	return nil
}

func grown(b []byte, size int) []byte {
	if len(b) < size {
		b = append(b, make([]byte, size-len(b))...)
	}
	return b
}

// lose is the power cut.
func (f *cut) lose(random *rand.Rand) {
	size := len(f.stable)
	if random.IntN(2) == 0 {
		size = len(f.now)
	}
	after := grown(slices.Clone(f.stable), size)[:size]
	for at := 0; at < size; at += 512 {
		if random.IntN(2) == 0 && at < len(f.now) {
			copy(after[at:min(at+512, size)], f.now[at:])
		}
	}
	f.now, f.stable = after, slices.Clone(after)
}

// known is a model of a volume and of what is known of it: the contents of a block are a
// number.
type known struct {
	*testing.T
	random   *rand.Rand
	file     *cut
	k        *Known
	blocks   []uint64 // as they are read
	stable   []uint64 // as they are after a power cut, at least
	writes   uint64   // the file's time
	expected int      // blocks that are known for sure
}

const knownBlocks = 40

func (m *known) sum(n int) (s Sum) {
	binary.BigEndian.PutUint64(s[:], m.blocks[n])
	s[31] = 1
	return s
}

func (m *known) mark() Mark { return Mark{1, knownBlocks * BlockSize, m.writes, 1} }

func (m *known) open() {
	m.file.closed = false
	var err error
	if m.k, err = openKnown(m.file, knownBlocks*BlockSize, m.mark()); err != nil {
		m.Fatal(err)
	}
}

// write writes blocks, of which those that end are noted as by a Slot.
func (m *known) write(noted bool) {
	for range m.random.IntN(4) {
		n := m.random.IntN(knownBlocks)
		m.writes++
		m.blocks[n] = m.writes
		if noted {
			m.k.Changes.Note(&backstore.Op{Kind: backstore.Discard, Off: int64(n) * BlockSize, Len: BlockSize})
			m.expected--
		}
	}
}

// judge: what is known is true.
func (m *known) judge(sums []Sum) (count int) {
	for n, s := range sums {
		if s == (Sum{}) {
			continue
		}
		count++
		if s != m.sum(n) {
			m.Fatalf("block %d: found %x, expected %x", n, s[:8], m.sum(n))
		}
	}
	return count
}

// move is an incremental move, which may be broken off.
func (m *known) move() {
	sums, err := m.k.Sums()
	if err != nil {
		m.Fatal(err)
	}
	if found := m.judge(sums); found < m.expected {
		m.Fatalf("found %d blocks known, expected %d", found, m.expected)
	}
	m.expected = 0
	for n := range sums {
		sums[n] = m.sum(n)
	}
	m.write(true)
	if m.random.IntN(3) == 0 {
		return
	}
	for _, n := range m.k.Changed() {
		sums[n] = m.sum(int(n))
	}
	if err := m.k.Learn(sums); err != nil {
		m.Fatal(err)
	}
}

// TestKnownIsTrue: whatever is written, whoever writes while the server is down, and however
// it ends, no block is known by a sum that it has no more. After an end in order what was not
// written is known.
func TestKnownIsTrue(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		m := &known{T: t, random: random, file: &cut{}, blocks: make([]uint64, knownBlocks), stable: make([]uint64, knownBlocks)}
		m.open()
		for range 60 {
			switch random.IntN(8) {
			case 0, 1, 2:
				m.write(true)
			case 3, 4:
				m.move()
			case 5: // an end in order, after which somebody else may write
				sums, err := m.k.Sums()
				if err != nil {
					t.Fatal(err)
				}
				m.expected = m.judge(sums)
				copy(m.stable, m.blocks)
				if err := m.k.Settle(m.mark()); err != nil {
					t.Fatal(err)
				}
				if random.IntN(3) == 0 {
					before := m.writes
					if m.write(false); m.writes != before {
						m.expected = 0
					}
				}
				if random.IntN(3) == 0 {
					m.file.lose(random)
				}
				m.open()
			case 6: // a kill
				if err := m.k.Close(); err != nil {
					t.Fatal(err)
				}
				m.open()
				m.expected = 0
			case 7: // a power cut, after which the volume's file may have any time
				if random.IntN(2) == 0 { // amid an end in order
					copy(m.stable, m.blocks)
					m.file.fuse = 1 + random.IntN(4)
					_ = m.k.Settle(m.mark()) // it may be done before
					m.file.fuse = 0
				}
				m.file.lose(random)
				for n := range m.blocks {
					if random.IntN(2) == 0 {
						m.blocks[n] = m.stable[n]
					}
				}
				copy(m.stable, m.blocks)
				m.open()
				m.expected = 0
			}
		}
	}
}

// TestKnownOfAnother: the file of a volume of another size, or with another mark, or that was
// altered, says nothing.
func TestKnownOfAnother(t *testing.T) {
	path, sums := filepath.Join(t.TempDir(), "digests"), []Sum{{1}, {2}, {3}}
	for _, c := range []struct {
		name  string
		size  int64
		mark  Mark
		alter bool
		knows bool
	}{
		{"the same", 3 * BlockSize, Mark{1, 2, 3, 4}, false, true},
		{"another size", 4 * BlockSize, Mark{1, 2, 3, 4}, false, false},
		{"another mark", 3 * BlockSize, Mark{1, 2, 3, 5}, false, false},
		{"a volume that has no mark", 3 * BlockSize, Mark{}, false, false},
		{"altered", 3 * BlockSize, Mark{1, 2, 3, 4}, true, false},
	} {
		k, err := OpenKnown(path, 3*BlockSize, Mark{})
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Learn(sums); err != nil {
			t.Fatal(err)
		}
		k.Changed()
		if c.alter {
			defer func(k *Known) { _ = k.Close() }(k)
			if err := k.head(1, c.mark, Sum{9}); err != nil {
				t.Fatal(err)
			}
		} else if err := k.Settle(Mark{1, 2, 3, 4}); err != nil {
			t.Fatal(err)
		}
		again, err := OpenKnown(path, c.size, c.mark)
		if err != nil {
			t.Fatal(err)
		}
		found, err := again.Sums()
		if err != nil || (found[0] == sums[0]) != c.knows {
			t.Errorf("%s: found %x, %v", c.name, found[0][:4], err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}
