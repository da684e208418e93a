package scsi

import (
	"bytes"
	"testing"

	"lunar/internal/buf"
)

// borrowed is what the test's medium has lent: a copy, which is spoilt when it
// is given back.
type borrowed struct {
	buf.Loan
	thread *thread
	data   []byte
}

// Lend implements backstore.Lender: sometimes, and sometimes less than asked for.
func (th *thread) Lend(off int64, n int) *buf.Ref {
	if !th.chance(th.lends) || th.medium.fail != nil {
		return nil
	}
	if end := (off + int64(1+th.rng.IntN(n)) + 4095) &^ 4095; end < off+int64(n) {
		n = int(end - off)
	}
	th.medium.mu.Lock()
	defer th.medium.mu.Unlock()
	b := &borrowed{thread: th, data: bytes.Clone(th.medium.mu.bytes[off : off+int64(n)])}
	th.lent++
	return th.pool.Lend(&b.Loan, b.data, b)
}

// Returned implements buf.Lender.
func (b *borrowed) Returned(*buf.Loan) {
	b.thread.lent--
	for i := range b.data {
		b.data[i] ^= 0xa5
	}
}

// TestReadOfLentMemory: what is lent goes to the initiator as it is, takes no
// buffer, and is given back.
func TestReadOfLentMemory(t *testing.T) {
	m := newMedium(2 * mib)
	for i := range m.mu.bytes {
		m.mu.bytes[i] = byte(i * 7 >> 3)
	}
	n := newUnit(t, m, LUConfig{})
	th := newThread(t, m, 1)
	th.lends = 100
	x := th.start(n, cdb10(0x28, 0, 16, 2048), nil, mib).finish()
	if x.ends != 1 || !bytes.Equal(x.in, m.mu.bytes[8192:8192+mib]) {
		t.Errorf("%d ends, %d bytes: expected 1 end and the medium's %d bytes", x.ends, len(x.in), mib)
	}
	if ops := len(m.ops()); ops != 0 || th.lent != 0 {
		t.Errorf("%d operations, %d loans left: expected none", ops, th.lent)
	}
}

// TestLentMemoryIsSentAtOnce: a command that has something to wait for keeps nothing
// that was lent. A write may wait for that, and the command for the write.
func TestLentMemoryIsSentAtOnce(t *testing.T) {
	m := newMedium(2 * mib)
	n := newUnit(t, m, LUConfig{})
	for seed := range uint64(20) {
		th := newThread(t, m, seed)
		th.lends, th.defers = 50, 100
		x := th.start(n, cdb10(0x28, 0, 16, 2048), nil, mib)
		for again := true; again; again = th.turn() {
			for i := x.c.head; i != x.c.tail; i++ {
				if ref := x.c.at(i).ref; ref != nil && ref.Lent() {
					t.Fatalf("seed %d: segment %d of %d is lent memory that waits", seed, i, x.c.tail)
				}
			}
		}
		x.finish()
	}
}
