package targettest

import (
	"bytes"
	"slices"
	"strconv"
	"testing"

	"lunar/internal/initiator"
)

// number is a text key with a numerical value.
func number(name string, value int) initiator.Key { return key(name, strconv.Itoa(value)) }

// transferSizes writes and reads back around a burst.
func (s *session) transferSizes(sizes ...int) {
	s.t.Helper()
	for i, n := range sizes {
		off, data := i*s.blockSize, pattern(n, n>>9+i)
		s.write(off, data)
		s.expect(off, data)
	}
}

// agreement is what a session negotiates about who may send how much unasked.
type agreement struct {
	immediate, initialR2T bool
	first, burst, r2ts    int
}

// agreements are all combinations of the booleans with bursts from the smallest
// to large ones.
func agreements() (all []agreement) {
	for _, immediate := range []bool{true, false} {
		for _, initialR2T := range []bool{true, false} {
			for _, burst := range [][2]int{{512, 512}, {512, 8192}, {65536, 262144}, {262144, 1 << 20}} {
				for _, r2ts := range []int{1, 8} {
					all = append(all, agreement{immediate, initialR2T, burst[0], burst[1], r2ts})
				}
			}
		}
	}
	return all
}

func yesNo(v bool) string {
	if v {
		return "Yes"
	}
	return "No"
}

func (a agreement) keys() initiator.Keys {
	return initiator.Keys{key("ImmediateData", yesNo(a.immediate)), key("InitialR2T", yesNo(a.initialR2T)),
		number("FirstBurstLength", a.first), number("MaxBurstLength", a.burst), number("MaxOutstandingR2T", a.r2ts)}
}

// reached says whether p is what was offered: the target has to be able to do
// all of it. FirstBurstLength is irrelevant when nothing may come unasked.
func (a agreement) reached(p initiator.Params) bool {
	unasked := a.immediate || !a.initialR2T
	return p.ImmediateData == a.immediate && p.InitialR2T == a.initialR2T && p.MaxBurstLength == a.burst &&
		p.MaxOutstandingR2T == a.r2ts && (!unasked || p.FirstBurstLength == a.first)
}

// over is what an offer comes to: nothing comes unasked in iSER-assisted mode but
// immediate data, of as much as the target has room for.
func (a agreement) over(assisted *Assisted) agreement {
	if assisted != nil {
		a.immediate, a.initialR2T = a.immediate && assisted.Immediate > 0, true
		a.first = min(a.first, assisted.Immediate)
	}
	return a
}

// testNegotiation moves data under every agreement.
func testNegotiation(t *testing.T, s Subject) {
	for _, a := range agreements() {
		c := s.login(t, 1, a.keys()...)
		if !a.over(s.Assisted).reached(c.Params) {
			t.Fatalf("offered %+v, agreed on %+v", a, c.Params)
		}
		c.transferSizes(s.BlockSize, 20<<10, a.first/s.BlockSize*s.BlockSize+s.BlockSize)
	}
}

func testSegmentLengths(t *testing.T, s Subject) {
	for _, n := range []int{512, 1000, 4096, 65536, 1 << 20} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			c := s.login(t, 1, number("MaxRecvDataSegmentLength", n), number("MaxBurstLength", 1<<20))
			c.transferSizes(s.BlockSize, 12<<10, 300<<10)
		})
	}
}

// testSizeClasses goes around the edges of pages, bursts and segments.
func testSizeClasses(t *testing.T, s Subject) {
	c := s.login(t, 1, number("MaxBurstLength", 512<<10), number("FirstBurstLength", 128<<10), number("MaxOutstandingR2T", 4))
	for _, edge := range []int{4 << 10, 16 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20} {
		c.transferSizes(max(edge-s.BlockSize, s.BlockSize), edge, edge+s.BlockSize)
	}
}

// residuals are expected data transfer lengths against the length of a CDB, in
// eighths of it.
var residuals = []int{2, 7, 8, 9, 16}

func (s *session) expectResidual(r *initiator.Result, length, edtl int) {
	s.t.Helper()
	over, under := length > edtl, length < edtl
	if r.Overflow != over || r.Underflow != under || int(r.Residual) != max(length-edtl, edtl-length) {
		s.t.Fatalf("CDB of %d bytes, EDTL %d: residual %d, overflow %t, underflow %t", length, edtl, r.Residual, r.Overflow, r.Underflow)
	}
}

func testReadResiduals(t *testing.T, s Subject) {
	c := s.login(t, 1)
	for _, length := range []int{8 * s.BlockSize, 320 << 10} {
		want := pattern(length, 1)
		c.write(0, want)
		for _, eighths := range residuals {
			edtl := length / 8 * eighths
			cmd := c.reading(0, length)
			cmd.InLen = edtl
			r := c.good(c.do(cmd))
			c.expectResidual(r, length, edtl)
			if !bytes.Equal(r.In, want[:min(length, edtl)]) {
				t.Fatalf("CDB of %d bytes, EDTL %d: other data", length, edtl)
			}
		}
	}
}

func testWriteResiduals(t *testing.T, s Subject) {
	for _, immediate := range []string{"Yes", "No"} {
		c := s.login(t, 1, key("ImmediateData", immediate), number("FirstBurstLength", 64<<10))
		for _, length := range []int{8 * s.BlockSize, 320 << 10} {
			for _, eighths := range residuals {
				edtl := length / 8 * eighths
				before, out := pattern(2*length, eighths), pattern(edtl, eighths+1)
				c.write(0, before)
				cmd := c.writing(0, out)
				cmd.CDB = write16(0, length/s.BlockSize)
				c.expectResidual(c.good(c.do(cmd)), length, edtl)
				copy(before[:length], out)
				c.expect(0, before)
			}
		}
	}
}

// testResidualsOfTheOtherKind expects data in a direction in which the command has none:
// whatever is expected is left, and nothing is read or written.
func testResidualsOfTheOtherKind(t *testing.T, s Subject) {
	c := s.login(t, 1)
	n := s.BlockSize
	was, other := pattern(2*n, 3), pattern(2*n, 4)
	c.write(0, was)
	inquiry := []byte{0x12, 0, 0, 0, 36, 0}
	for name, cmd := range map[string]initiator.Command{
		"write with R":   {CDB: write16(0, 1), InLen: 2 * n},
		"read with W":    {CDB: read16(0, 1), Out: other},
		"inquiry with W": {CDB: inquiry, Out: other},
		"no data with R": {CDB: make([]byte, 6), InLen: 8},
		"no data with W": {CDB: make([]byte, 6), Out: other[:8]},
	} {
		cmd.Attr = initiator.AttrSimple
		r, edtl := c.good(c.do(cmd)), max(cmd.InLen, len(cmd.Out))
		if len(r.In) > 0 || !r.Underflow || int(r.Residual) != edtl {
			t.Errorf("%s: %d bytes read, residual %d, underflow %t, expected one of %d", name, len(r.In), r.Residual, r.Underflow, edtl)
		}
	}
	c.expect(0, was)
	if s.Assisted != nil { // whose header has no place for a second length
		return
	}
	for name, b := range map[string]struct {
		cdb         []byte
		wrote, read int
	}{"bidirectional write": {write16(0, 1), n, 0}, "bidirectional read": {read16(1, 1), 0, n}, "bidirectional, no data": {make([]byte, 6), 0, 0}} {
		r := c.good(c.do(initiator.Command{CDB: b.cdb, Out: other, InLen: 3 * n, Attr: initiator.AttrSimple}))
		if !r.Underflow || int(r.Residual) != 2*n-b.wrote || !r.ReadUnderflow || int(r.ReadResidual) != 3*n-b.read || len(r.In) != b.read {
			t.Errorf("%s: %d bytes read, residuals %d and %d of %d and %d", name, len(r.In), r.Residual, r.ReadResidual, 2*n, 3*n)
		}
	}
	c.expect(0, append(other[:n:n], was[n:]...))
}

// testDataOutCuts sends Data-Out in PDUs of all kinds of lengths.
func testDataOutCuts(t *testing.T, s Subject) {
	for _, initialR2T := range []string{"Yes", "No"} {
		c := s.login(t, 1, key("InitialR2T", initialR2T), key("ImmediateData", "No"), number("FirstBurstLength", 64<<10))
		for _, cut := range []int{100, 1001, 4096, 16<<10 + 4, 64<<10 - 4, 200 << 10} {
			cmd := c.writing(0, pattern(min(300<<10, cut*100)/s.BlockSize*s.BlockSize, cut))
			cmd.Segment = cut
			c.good(c.do(cmd))
			c.expect(0, cmd.Out)
		}
	}
}

// testR2TsInAnyOrder answers R2Ts that are outstanding together in every order
// of their number.
func testR2TsInAnyOrder(t *testing.T, s Subject) {
	const burst = 16 << 10
	c := s.login(t, 1, key("InitialR2T", "Yes"), key("ImmediateData", "No"), number("MaxBurstLength", burst), number("MaxOutstandingR2T", 4))
	together := 4
	if s.Assisted != nil {
		together = min(together, s.Assisted.Reads)
	}
	for i, order := range permutations(together) {
		cmd := c.writing(0, pattern(8*burst, i))
		cmd.HoldData, cmd.Segment = true, 5<<10
		task := c.start(cmd)
		for range 8 / together {
			c.awaitR2Ts(task, together)
			held := slices.Clone(task.R2Ts)
			for at, from := range order {
				task.R2Ts[at] = held[from]
			}
			for range together {
				if err := c.SendData(task); err != nil {
					t.Fatal(err)
				}
			}
		}
		c.good(c.wait(task))
		c.expect(0, cmd.Out)
	}
}

// permutations returns all orders of n things.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, shorter := range permutations(n - 1) {
		for at := range n {
			all = append(all, slices.Insert(slices.Clone(shorter), at, n-1))
		}
	}
	return all
}

// testInterleaved runs writes and reads of all sizes at once.
func testInterleaved(t *testing.T, s Subject) {
	c := s.login(t, 1, number("MaxOutstandingR2T", 4), number("MaxBurstLength", 128<<10))
	sizes := []int{s.BlockSize, 64 << 10, 300 << 10, 8 << 10, 700 << 10, 128 << 10}
	for round := range 2 {
		var writes, reads []*initiator.Task
		off := 0
		for i, n := range sizes {
			writes = append(writes, c.start(c.writing(off, pattern(n, i+round))))
			off += n
		}
		for _, task := range slices.Backward(writes) {
			c.good(c.wait(task))
		}
		off = 0
		for _, n := range sizes {
			reads = append(reads, c.start(c.reading(off, n)))
			off += n
		}
		for i, task := range slices.Backward(reads) {
			if got := c.good(c.wait(task)).In; !bytes.Equal(got, pattern(sizes[i], i+round)) {
				t.Fatalf("read of %d bytes: other data", sizes[i])
			}
		}
	}
}

// testPhaseCollapse looks at which PDU carries the status. What is written straight to
// the initiator's memory carries none.
func testPhaseCollapse(t *testing.T, s Subject) {
	c := s.login(t, 1)
	for _, f := range []struct {
		name string
		cmd  initiator.Command
		last byte
	}{
		{"read", c.reading(0, 64<<10), initiator.OpDataIn},
		{"long read", c.reading(0, 1<<20), initiator.OpDataIn},
		{"write", c.writing(0, pattern(64<<10, 1)), initiator.OpSCSIResponse},
		{"no data", initiator.Command{CDB: make([]byte, 6)}, initiator.OpSCSIResponse},
		{"failing read", initiator.Command{CDB: read16(1<<40, 1), InLen: s.BlockSize}, initiator.OpSCSIResponse},
	} {
		if s.Assisted != nil {
			f.last = initiator.OpSCSIResponse
		}
		task := c.start(f.cmd)
		var last *initiator.PDU
		for !task.Done {
			p, err := c.Step(0)
			if err != nil {
				t.Fatal(err)
			}
			last = p
		}
		if last.Opcode() != f.last {
			t.Errorf("%s: ended by opcode %#02x, expected %#02x", f.name, last.Opcode(), f.last)
		}
	}
}

// testSlowReader asks for much and reads nothing until all of it was asked for.
func testSlowReader(t *testing.T, s Subject) {
	c := s.login(t, 1)
	want := pattern(1<<20, 3)
	c.write(0, want)
	var tasks []*initiator.Task
	for range 16 {
		tasks = append(tasks, c.start(c.reading(0, len(want))))
	}
	for _, task := range tasks {
		if !bytes.Equal(c.good(c.wait(task)).In, want) {
			t.Fatal("other data")
		}
	}
}
