package isertest

import (
	"encoding/binary"
	"sync"

	"golang.org/x/sys/unix"

	"lunar/iser/verbs"
	"lunar/iser/verbs/fake"
)

// fetched is what a write knows of its data.
type fetched struct {
	there int             // bytes from the start that have come or were asked for
	parts []part          // R2Ts that are to be made, as far as MaxOutstandingR2T allows
	open  map[uint32]part // those that were made, by tag
}

// fetch is an RDMA Read that the target has begun.
type fetch struct {
	addr  uint64
	n     uint32
	lacks int // bytes that are not there
}

// part is what one R2T asks for.
type part struct {
	off, n int
	of     *fetch
}

// begun keeps the RDMA Reads that the fabric tells of until the Wire looks.
type begun struct {
	mu   sync.Mutex
	list []func(w *Wire)
	fd   int // eventfd
}

func (b *begun) add(t *task, addr uint64, n uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.list = append(b.list, func(w *Wire) { w.fetch(t, &fetch{addr: addr, n: n}) })
	_, _ = unix.Write(b.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

func (b *begun) take() []func(w *Wire) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.list
	b.list = nil
	if len(list) > 0 {
		var count [8]byte
		_, _ = unix.Read(b.fd, count[:])
	}
	return list
}

// fetch has the initiator asked for what an RDMA Read names and is not there. The
// target fetches each byte once, but for those that it was promised and did not get.
func (w *Wire) fetch(t *task, f *fetch) {
	if w.tasks[t.itt] != t {
		return
	}
	off := int(f.addr - verbs.Addr(t.mem))
	end := off + int(f.n)
	for from := max(off, t.there); from < end; {
		n := min(w.burst, end-from)
		t.parts = append(t.parts, part{from, n, f})
		f.lacks += n
		from += n
	}
	t.there = max(t.there, end)
	w.supply(t, f)
	w.ask(t)
}

// supply lets the RDMA Read end whose data are there.
func (w *Wire) supply(t *task, f *fetch) {
	if f.lacks == 0 {
		fake.Supply(t.mr, f.addr, f.n)
	}
}

// ask makes R2Ts.
func (w *Wire) ask(t *task) {
	for len(t.parts) > 0 && len(t.open) < w.r2ts {
		p := t.parts[0]
		t.parts = t.parts[1:]
		if t.open == nil {
			t.open = map[uint32]part{}
		}
		w.lastTag++
		t.open[w.lastTag] = p
		r := make([]byte, bhsLength)
		r[0], r[1] = opR2T, final
		copy(r[8:16], t.lun[:])
		setU32(r, atITT, t.itt)
		setU32(r, atTTT, w.lastTag)
		setU32(r, atStatSN, w.statSN)
		copy(r[atExpCmdSN:], w.window[:])
		setU32(r, atDataSN, t.pdus)
		setU32(r, atOffset, uint32(p.off))
		setU32(r, atLength, uint32(p.n))
		t.pdus++
		w.in = append(w.in, r...)
		w.cond.Broadcast()
	}
}

// takeDataOut puts data in their place.
func (w *Wire) takeDataOut(p []byte) {
	t, tag := w.tasks[u32(p, atITT)], u32(p, atTTT)
	if t == nil {
		return
	}
	of, ok := t.open[tag]
	if !ok {
		return
	}
	of.of.lacks -= copy(t.mem[binary.BigEndian.Uint32(p[atOffset:]):], p[bhsLength:][:dataLength(p)])
	w.supply(t, of.of)
	if p[1]&final != 0 {
		delete(t.open, tag)
		w.ask(t)
	}
}
