package daemon

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"lunar/internal/initiator"
)

const block = 512 // the usual logical block length in bytes

// shape is the geometry of the volumes that a script runs on.
type shape struct {
	unit   int // logical block length in bytes
	blocks int
}

// shapes are those shapes: the volumes end within a cache block, and that of small
// blocks within a page.
var shapes = []shape{{512, 2051}, {4096, 515}}

func (m shape) bytes() int { return m.unit * m.blocks }

// step is a command of a script and what it must come to.
type step struct {
	name   string
	cdb    []byte
	out    []byte
	list   func(lun uint64) []byte // instead of out: it depends on the LUN
	status byte                    // what it must end with; of CONDITION MET GOOD will do as well
	asc    byte                    // additional sense code, with CHECK CONDITION
	in     int                     // bytes to read
	check  func(in []byte) error   // nil: nothing is read
}

// run performs s and returns what is wrong with its outcome. Like any initiator it
// repeats a command that ends with BUSY or TASK SET FULL, for a while: the server has
// no buffer for data that come unasked while others hold them all.
func (s *step) run(c *initiator.Conn, lun uint64) error {
	for patience := time.Now().Add(30 * time.Second); ; {
		r, err := c.Command(s.cdb, lun, s.data(lun), s.in)
		again := err == nil && (r.Status == initiator.StatusBusy || r.Status == initiator.StatusTaskSetFull)
		if !again || time.Now().After(patience) {
			return s.finish(r, err)
		}
		time.Sleep(time.Millisecond)
	}
}

// data is what is sent along.
func (s *step) data(lun uint64) []byte {
	if s.list != nil {
		return s.list(lun)
	}
	return s.out
}

func (s *step) finish(r *initiator.Result, err error) error {
	if err != nil {
		return err
	}
	met := s.status == initiator.StatusConditionMet && r.Status == initiator.StatusGood
	if _, asc, _ := r.SenseKey(); r.Status != s.status && !met || asc != s.asc {
		return fmt.Errorf("found status %#x, sense % x, expected status %#x, additional sense code %#x", r.Status, r.Sense, s.status, s.asc)
	}
	if s.check == nil {
		return nil
	}
	return s.check(r.In)
}

// script writes steps and knows what each of them must find.
type script struct {
	shape
	random     *rand.Rand
	model      []byte
	discards   bool // UNMAP leaves zeroes
	first, run int  // the blocks that the steps are about: the first run ones
	stride     int  // of every stride
	steps      []step
}

// draw returns some of the script's blocks, most times few.
func (s *script) draw(most int) (lba, n int) {
	start := s.first + s.stride*s.random.IntN((s.blocks-s.first+s.stride-1)/s.stride)
	end := min(start+s.run, s.blocks)
	lba = start + s.random.IntN(end-start)
	if s.random.IntN(4) > 0 {
		most = min(most, 20)
	}
	return lba, 1 + s.random.IntN(min(end-lba, most))
}

func (s *script) at(lba, n int) []byte { return s.model[lba*s.unit : (lba+n)*s.unit] }

// data returns n blocks that nobody has written yet.
func (s *script) data(n int) []byte {
	out := make([]byte, n*s.unit)
	for at := 0; at < len(out); at += 8 {
		binary.LittleEndian.PutUint64(out[at:], s.random.Uint64()|1)
	}
	return out
}

// cdb makes a CDB of 10 or 16 bytes with an LBA and a number of blocks.
func cdb(opcode, flags byte, lba, n int) []byte {
	if opcode < 0x80 {
		b := make([]byte, 10)
		b[0], b[1] = opcode, flags
		binary.BigEndian.PutUint32(b[2:], uint32(lba))
		binary.BigEndian.PutUint16(b[7:], uint16(n))
		return b
	}
	b := make([]byte, 16)
	b[0], b[1] = opcode, flags
	binary.BigEndian.PutUint64(b[2:], uint64(lba))
	binary.BigEndian.PutUint32(b[10:], uint32(n))
	return b
}

// either returns one of two opcodes.
func (s *script) either(a, b byte) byte {
	if s.random.IntN(2) == 0 {
		return a
	}
	return b
}

// flags returns some of DPO and FUA.
func (s *script) flags() byte { return []byte{0, 0, 0, 0x08, 0x10, 0x18}[s.random.IntN(6)] }

func (s *script) add(st step) { s.steps = append(s.steps, st) }

// makers are the kinds of steps, each as often as it is to be chosen.
var makers = func() (all []func(*script)) {
	for _, m := range []struct {
		times int
		make  func(*script)
	}{
		{10, (*script).read}, {10, (*script).write}, {2, (*script).writeAndVerify}, {3, (*script).synchronize},
		{3, (*script).unmap}, {3, (*script).writeSame}, {4, (*script).compareAndWrite}, {3, (*script).verifyBytes},
		{1, (*script).prefetch}, {1, (*script).lbaStatus}, {2, (*script).orWrite}, {3, (*script).extendedCopy},
	} {
		all = append(all, slices.Repeat([]func(*script){m.make}, m.times)...)
	}
	return all
}()

// make adds n random steps.
func (s *script) make(n int) *script {
	for range n {
		makers[s.random.IntN(len(makers))](s)
	}
	return s
}

func (s *script) read() {
	lba, n := s.draw(700)
	want := bytes.Clone(s.at(lba, n))
	s.add(step{name: "READ", cdb: cdb(s.either(0x28, 0x88), s.flags(), lba, n), in: n * s.unit, check: func(in []byte) error {
		return s.same(in, want, lba)
	}})
}

// same compares blocks from lba on.
func (m shape) same(got, want []byte, lba int) error {
	if bytes.Equal(got, want) {
		return nil
	}
	if len(got) != len(want) {
		return fmt.Errorf("found %d bytes, expected %d", len(got), len(want))
	}
	differing, first := 0, -1
	for at := 0; at < len(got); at += m.unit {
		if !bytes.Equal(got[at:at+m.unit], want[at:at+m.unit]) {
			differing++
			if first < 0 {
				first = at / m.unit
			}
		}
	}
	at := first * block
	return fmt.Errorf("found %d blocks that differ, the first at LBA %d: % x, expected % x", differing, lba+first, got[at:at+8], want[at:at+8])
}

func (s *script) write() {
	lba, n := s.draw(700)
	out := s.data(n)
	copy(s.at(lba, n), out)
	s.add(step{name: "WRITE", cdb: cdb(s.either(0x2a, 0x8a), s.flags(), lba, n), out: out})
}

func (s *script) writeAndVerify() {
	lba, n := s.draw(40)
	out := s.data(n)
	copy(s.at(lba, n), out)
	s.add(step{name: "WRITE AND VERIFY", cdb: cdb(s.either(0x2e, 0x8e), 0, lba, n), out: out})
}

// synchronize flushes a range, or all from an LBA on.
func (s *script) synchronize() {
	lba, n := s.draw(700)
	if s.random.IntN(3) == 0 {
		n = 0
	}
	s.add(step{name: "SYNCHRONIZE CACHE", cdb: cdb(s.either(0x35, 0x91), 0, lba, n)})
}

func (s *script) unmap() {
	if !s.discards {
		return
	}
	ranges := 1 + s.random.IntN(3)
	list := make([]byte, 8, 8+16*ranges)
	binary.BigEndian.PutUint16(list, uint16(6+16*ranges))
	binary.BigEndian.PutUint16(list[2:], uint16(16*ranges))
	for range ranges {
		lba, n := s.draw(300)
		clear(s.at(lba, n))
		list = binary.BigEndian.AppendUint64(list, uint64(lba))
		list = binary.BigEndian.AppendUint32(list, uint32(n))
		list = append(list, 0, 0, 0, 0)
	}
	cdb := []byte{0x42, 0, 0, 0, 0, 0, 0, 0, byte(len(list)), 0}
	s.add(step{name: "UNMAP", cdb: cdb, out: list})
}

// writeSame repeats a block: one of data, or zeroes, with UNMAP or without, and
// with NDOB without a block at all.
func (s *script) writeSame() {
	const unmap, ndob = 0x08, 0x01
	lba, n := s.draw(700)
	out, opcode, flags := make([]byte, s.unit), s.either(0x41, 0x93), byte(0)
	switch kind := s.random.IntN(4); {
	case kind == 0:
		out = s.data(1)
	case kind == 1 && s.discards:
		flags = unmap
	case kind == 2:
		opcode, flags = 0x93, ndob
	}
	for i := range n {
		copy(s.at(lba+i, 1), out)
	}
	if flags&ndob != 0 {
		out = nil
	}
	s.add(step{name: "WRITE SAME", cdb: cdb(opcode, flags, lba, n), out: out})
}

// compareAndWrite finds what it expects, or does not and leaves all as it is.
func (s *script) compareAndWrite() {
	lba, n := s.draw(16)
	out := append(bytes.Clone(s.at(lba, n)), s.data(n)...)
	c := cdb(0x89, s.flags()&0x08, lba, 0)
	c[13] = byte(n)
	st := step{name: "COMPARE AND WRITE", cdb: c, out: out}
	if s.random.IntN(3) == 0 {
		out[s.random.IntN(n*s.unit)] ^= 0x80
		st.status, st.asc = initiator.StatusCheckCondition, 0x1d // MISCOMPARE DURING VERIFY OPERATION
	} else {
		copy(s.at(lba, n), out[n*s.unit:])
	}
	s.add(st)
}

// verifyBytes has the medium compared with the right bytes or with wrong ones, or
// with none.
func (s *script) verifyBytes() {
	const bytchk = 0x02
	lba, n := s.draw(100)
	st := step{name: "VERIFY", cdb: cdb(s.either(0x2f, 0x8f), bytchk, lba, n), out: bytes.Clone(s.at(lba, n))}
	switch s.random.IntN(3) {
	case 0:
		st.cdb[1], st.out = 0, nil
	case 1:
		st.out[s.random.IntN(n*s.unit)] ^= 1
		st.status, st.asc = initiator.StatusCheckCondition, 0x1d
	}
	s.add(st)
}

func (s *script) prefetch() {
	lba, n := s.draw(100)
	s.add(step{name: "PRE-FETCH", cdb: cdb(s.either(0x34, 0x90), 0, lba, n), status: initiator.StatusConditionMet})
}

// lbaStatus expects no data where it is told that nothing is mapped.
func (s *script) lbaStatus() {
	lba, _ := s.draw(1)
	c := cdb(0x9e, 0x12, lba, 8+16*8)
	model := bytes.Clone(s.model)
	mine := func(lba int) bool { return lba >= s.first && (lba-s.first)%s.stride < s.run }
	s.add(step{name: "GET LBA STATUS", cdb: c, in: 8 + 16*8, check: func(in []byte) error {
		for d := in[8:]; len(d) >= 16; d = d[16:] {
			from, n := int(binary.BigEndian.Uint64(d)), int(binary.BigEndian.Uint32(d[8:]))
			const mapped = 0
			if d[12]&0xf == mapped {
				continue
			}
			for i := from; i < from+n; i++ {
				if mine(i) && !bytes.Equal(model[i*s.unit:(i+1)*s.unit], make([]byte, s.unit)) {
					return fmt.Errorf("LBA %d is not mapped, yet it holds data", i)
				}
			}
		}
		return nil
	}})
}
