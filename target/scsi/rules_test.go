package scsi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

const mib = 1 << 20

// prompt is a thread on which everything happens at once.
func prompt(t testing.TB, m *medium) *thread { return newThread(t, m, 1) }

// field is INVALID FIELD IN CDB without a bit pointer.
func field(n int) *sense.Data { return sense.InvalidFieldInCDB(n, sense.NoBit) }

// TestRefusals: CDBs that must fail, and how, on a medium of 2048 blocks.
func TestRefusals(t *testing.T) {
	block := make([]byte, 512)
	list := unmapList([2]uint64{0, 1})
	tests := []struct {
		name string
		cdb  []byte
		out  []byte
		want *sense.Data
	}{
		{"unknown operation code", []byte{0xff}, nil, sense.InvalidOpcode},
		{"unknown service action", []byte{0x9e, 0x1f}, nil, sense.InvalidFieldInCDB(1, 4)},
		{"reserved bit of CONTROL", []byte{0x28, 0, 0, 0, 0, 0, 0, 0, 1, 2}, nil, sense.InvalidFieldInCDB(9, 1)},
		{"READ(10) RDPROTECT", cdb10(0x28, 0x20, 0, 1), nil, sense.InvalidFieldInCDB(1, 5)},
		{"READ(16) RDPROTECT", cdb16(0x88, 0xe0, 0, 1), nil, sense.InvalidFieldInCDB(1, 7)},
		{"WRITE(12) WRPROTECT", cdb12(0xaa, 0x20, 0, 1), block, sense.InvalidFieldInCDB(1, 5)},
		{"VERIFY(10) VRPROTECT", cdb10(0x2f, 0x20, 0, 1), nil, sense.InvalidFieldInCDB(1, 5)},
		{"READ(6) beyond", cdb6(0x08, 2047, 2), nil, sense.LBAOutOfRange},
		{"READ(6) of 256 blocks beyond", cdb6(0x08, 1793, 0), nil, sense.LBAOutOfRange},
		{"READ(10) beyond", cdb10(0x28, 0, 2047, 2), nil, sense.LBAOutOfRange},
		{"READ(10) of nothing behind the end", cdb10(0x28, 0, 2048, 0), nil, sense.LBAOutOfRange},
		{"READ(12) far beyond", cdb12(0xa8, 0, 1<<31, 0), nil, sense.LBAOutOfRange},
		{"READ(16) at -1", cdb16(0x88, 0, 1<<64-1, 2), nil, sense.LBAOutOfRange},
		{"READ(16) at 2^63", cdb16(0x88, 0, 1<<63, 0), nil, sense.LBAOutOfRange},
		{"READ(16) that wraps", cdb16(0x88, 0, 1, 1<<32-1), nil, sense.LBAOutOfRange},
		{"WRITE(10) beyond", cdb10(0x2a, 0, 2048, 1), block, sense.LBAOutOfRange},
		{"WRITE of part of a block", cdb10(0x2a, 0, 0, 1), block[:200], sense.InvalidFieldInIU},
		{"WRITE of a block and a part", cdb10(0x2a, 0, 0, 2), make([]byte, 700), sense.InvalidFieldInIU},
		{"VERIFY BYTCHK=10b", cdb10(0x2f, 0x04, 0, 1), block, sense.InvalidFieldInCDB(1, 2)},
		{"VERIFY of part of a block", cdb10(0x2f, 0x02, 0, 1), block[:100], sense.InvalidFieldInIU},
		{"VERIFY BYTCHK=11b without a block", cdb10(0x2f, 0x06, 0, 1), nil, sense.InvalidFieldInIU},
		{"WRITE AND VERIFY BYTCHK=11b", cdb10(0x2e, 0x06, 0, 1), block, sense.InvalidFieldInCDB(1, 2)},
		{"SYNCHRONIZE CACHE beyond", cdb16(0x91, 0, 2000, 49), nil, sense.LBAOutOfRange},
		{"PRE-FETCH beyond", cdb10(0x34, 0, 2048, 0), nil, sense.LBAOutOfRange},
		{"WRITE ATOMIC beyond", cdb16(0x9c, 0, 2040, 16), make([]byte, 8192), sense.LBAOutOfRange},
		{"WRITE ATOMIC of nothing behind the end", cdb16(0x9c, 0, 2056, 0), nil, sense.LBAOutOfRange},
		{"WRITE ATOMIC of too much", cdb16(0x9c, 0, 0, 520), make([]byte, 520*512), field(12)},
		{"WRITE ATOMIC of less than a unit", cdb16(0x9c, 0, 0, 1), block, field(12)},
		{"WRITE ATOMIC between units", cdb16(0x9c, 0, 4, 8), make([]byte, 4096), field(2)},
		{"WRITE ATOMIC of less data", cdb16(0x9c, 0, 0, 16), make([]byte, 4096), sense.InvalidFieldInIU},
		{"WRITE ATOMIC with too large a boundary", cdb16(0x9c, 0, 0, 520<<16|8), make([]byte, 4096), field(10)},
		{"WRITE ATOMIC with a boundary of less than a unit", cdb16(0x9c, 0, 0, 1<<16|8), make([]byte, 4096), field(10)},
		{"WRITE SAME ANCHOR", cdb16(0x93, 0x10, 0, 1), block, sense.InvalidFieldInCDB(1, 4)},
		{"WRITE SAME(10) NDOB", cdb10(0x41, 0x01, 0, 1), nil, sense.InvalidFieldInCDB(1, 0)},
		{"WRITE SAME of two blocks of data", cdb16(0x93, 0, 0, 1), make([]byte, 1024), sense.InvalidFieldInIU},
		{"WRITE SAME of half a block of data", cdb16(0x93, 0, 0, 1), block[:256], sense.InvalidFieldInIU},
		{"WRITE SAME beyond", cdb16(0x93, 0, 2047, 2), block, sense.LBAOutOfRange},
		{"COMPARE AND WRITE of too much", cdb16(0x89, 0, 0, 65), make([]byte, 65*1024), field(13)},
		{"COMPARE AND WRITE of 256 blocks modulo 256", cdb16(0x89, 0, 0, 0), make([]byte, 512*512), field(13)},
		{"COMPARE AND WRITE with too little data", cdb16(0x89, 0, 0, 3), make([]byte, 4*512), sense.InvalidFieldInIU},
		{"COMPARE AND WRITE with too much data", cdb16(0x89, 0, 0, 1), make([]byte, 4*512), sense.InvalidFieldInIU},
		{"COMPARE AND WRITE beyond", cdb16(0x89, 0, 2048, 0), nil, sense.LBAOutOfRange},
		{"GET LBA STATUS beyond", append([]byte{0x9e, 0x12}, cdb16(0, 0, 2048, 24)[2:]...), nil, sense.LBAOutOfRange},
		{"UNMAP ANCHOR", cdb10(0x42, 1, 0, uint64(len(list))), list, sense.InvalidFieldInCDB(1, 0)},
		{"UNMAP of a short header", cdb10(0x42, 0, 0, 7), list[:7], sense.ParameterListLengthError},
		{"UNMAP of less than it says", unmapCDB(list[:20]), list[:20], sense.ParameterListLengthError},
		{"UNMAP of a list that does not come", unmapCDB(list), nil, sense.ParameterListLengthError},
		{"UNMAP beyond", unmapCDB(list), unmapList([2]uint64{2047, 2}), sense.LBAOutOfRange},
		{"UNMAP of nothing far beyond", unmapCDB(list), unmapList([2]uint64{2049, 0}), sense.LBAOutOfRange},
		{"UNMAP with too many descriptors", unmapCDB(make([]byte, 8+257*16)), unmapList(make([][2]uint64, 257)...), sense.InvalidFieldInList(2, sense.NoBit)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMedium(mib)
			x := prompt(t, m).start(newUnit(t, m, LUConfig{}), tt.cdb, tt.out, 0).finish()
			if x.c.Status != CheckCondition || *x.c.Sense != *tt.want {
				t.Errorf("status %02x, sense %+v; expected %+v", x.c.Status, x.c.Sense, tt.want)
			}
			if len(m.ops()) != 0 {
				t.Errorf("operations on the medium: %v", m.ops())
			}
		})
	}
}

// TestLimits: what is just allowed, and what is just too much, on a medium
// large enough for it.
func TestLimits(t *testing.T) {
	m := newMedium(mib)
	m.info.Size = 4 << 30
	n := newUnit(t, m, LUConfig{BlockSize: 4096})
	l := n.LU.Limits()
	block := make([]byte, 4096)
	tests := []struct {
		name string
		cdb  []byte
		out  []byte
		want *sense.Data
	}{
		{"READ(16)", cdb16(0x88, 0, 0, uint64(l.MaxTransfer)+1), nil, field(10)},
		{"READ(12)", cdb12(0xa8, 0, 0, uint64(l.MaxTransfer)+1), nil, field(6)},
		{"VERIFY(12)", cdb12(0xaf, 0, 0, uint64(l.MaxTransfer)+1), nil, field(6)},
		{"WRITE SAME(16)", cdb16(0x93, 0, 0, l.MaxWriteSame+1), block, field(10)},
		{"COMPARE AND WRITE", cdb16(0x89, 0, 0, uint64(l.MaxCompareAndWrite)+1), block, field(13)},
		{"UNMAP", unmapCDB(make([]byte, 40)), unmapList([2]uint64{0, 1}, [2]uint64{1, uint64(l.MaxUnmap)}), sense.InvalidFieldInList(8+16+8, sense.NoBit)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := prompt(t, m).start(n, tt.cdb, tt.out, 0).finish()
			if x.c.Status != CheckCondition || *x.c.Sense != *tt.want {
				t.Errorf("status %02x, sense %+v; expected %+v", x.c.Status, x.c.Sense, tt.want)
			}
		})
	}
	if got := 3 * int(l.MaxCompareAndWrite) * 4096; got > SegmentSize {
		t.Errorf("COMPARE AND WRITE needs %d bytes in one segment of %d", got, SegmentSize)
	}
}

// TestNothingToDo: commands that end with GOOD without touching the medium.
func TestNothingToDo(t *testing.T) {
	tests := []struct {
		name string
		cdb  []byte
		out  []byte
	}{
		{"READ(10)", cdb10(0x28, 0, 2047, 0), nil},
		{"READ(16)", cdb16(0x88, 0, 0, 0), nil},
		{"WRITE(16)", cdb16(0x8a, 0, 0, 0), nil},
		{"VERIFY(16)", cdb16(0x8f, 0, 0, 0), nil},
		{"VERIFY(16) BYTCHK=11b", cdb16(0x8f, 6, 0, 0), nil},
		{"WRITE AND VERIFY(12)", cdb12(0xae, 0, 0, 0), nil},
		{"COMPARE AND WRITE", cdb16(0x89, 0, 0, 0), nil},
		{"UNMAP without a list", cdb10(0x42, 0, 0, 0), nil},
		{"UNMAP without descriptors", cdb10(0x42, 0, 0, 8), unmapList()},
		{"UNMAP of nothing at the end", cdb10(0x42, 0, 0, 24), unmapList([2]uint64{2048, 0})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMedium(mib)
			x := prompt(t, m).start(newUnit(t, m, LUConfig{}), tt.cdb, tt.out, 0).finish()
			if x.c.Status != Good || len(m.ops()) != 0 {
				t.Errorf("status %02x, sense %+v, operations %v", x.c.Status, x.c.Sense, m.ops())
			}
		})
	}
}

// TestExpectedLength: the initiator's transfer length differs from the CDB's.
func TestExpectedLength(t *testing.T) {
	for _, edtl := range []uint32{0, 1, 200, 512, 1024, 1025, 10000} {
		t.Run(fmt.Sprint("READ ", edtl), func(t *testing.T) {
			m := newMedium(mib)
			copy(m.mu.bytes, bytes.Repeat([]byte("lunar"), 1000))
			x := prompt(t, m).start(newUnit(t, m, LUConfig{}), cdb10(0x28, 0, 0, 2), nil, edtl).finish()
			if x.c.Status != Good || x.c.Length != 1024 || !bytes.Equal(x.in, m.mu.bytes[:min(edtl, 1024)]) {
				t.Errorf("status %02x, Length %d, %d bytes", x.c.Status, x.c.Length, len(x.in))
			}
		})
	}
	for _, edtl := range []int{0, 512, 1024, 1536, 10000} {
		t.Run(fmt.Sprint("WRITE ", edtl), func(t *testing.T) {
			m := newMedium(mib)
			out := bytes.Repeat([]byte{7}, edtl)
			x := prompt(t, m).start(newUnit(t, m, LUConfig{}), cdb10(0x2a, 0, 0, 2), out, 0).finish()
			if want := min(edtl, 1024); x.c.Status != Good || x.c.Length != 1024 || bytes.Count(m.mu.bytes, []byte{7}) != want {
				t.Errorf("status %02x, Length %d, %d bytes written", x.c.Status, x.c.Length, bytes.Count(m.mu.bytes, []byte{7}))
			}
		})
	}
}

// TestWrongDirection: an initiator that expects Data-In of a WRITE, or sends
// with a READ, moves nothing.
func TestWrongDirection(t *testing.T) {
	m := newMedium(mib)
	n := newUnit(t, m, LUConfig{})
	if x := prompt(t, m).start(n, cdb10(0x2a, 0, 0, 1), nil, 512).finish(); x.c.Status != Good || x.c.Length != 512 {
		t.Errorf("WRITE: status %02x, Length %d", x.c.Status, x.c.Length)
	}
	if x := prompt(t, m).start(n, cdb10(0x28, 0, 0, 1), make([]byte, 512), 0).finish(); x.c.Status != Good || len(x.in) != 0 {
		t.Errorf("READ: status %02x, %d bytes", x.c.Status, len(x.in))
	}
	if len(m.ops()) != 0 {
		t.Errorf("operations: %v", m.ops())
	}
}

// TestStable: which writes carry FUA, and which other commands end in a flush.
func TestStable(t *testing.T) {
	block := make([]byte, 512)
	ones := bytes.Repeat([]byte{1}, 512)
	list := unmapList([2]uint64{0, 1})
	tests := []struct {
		name    string
		cdb     []byte
		out     []byte
		through bool // write through
		want    string
	}{
		{"WRITE(6)", cdb6(0x0a, 0, 1), block, false, "write"},
		{"WRITE(10)", cdb10(0x2a, 0, 0, 1), block, false, "write"},
		{"WRITE(10) DPO", cdb10(0x2a, 0x10, 0, 1), block, false, "write"},
		{"WRITE(10) FUA", cdb10(0x2a, 0x08, 0, 1), block, false, "write+fua"},
		{"WRITE(10) through", cdb10(0x2a, 0, 0, 1), block, true, "write+fua"},
		{"WRITE(16) FUA", cdb16(0x8a, 0x08, 0, 1), block, false, "write+fua"},
		{"WRITE AND VERIFY(10)", cdb10(0x2e, 0, 0, 1), block, false, "write+fua read"},
		{"COMPARE AND WRITE", cdb16(0x89, 0, 0, 1), make([]byte, 1024), false, "read write"},
		{"COMPARE AND WRITE FUA", cdb16(0x89, 8, 0, 1), make([]byte, 1024), false, "read write+fua"},
		{"WRITE SAME", cdb16(0x93, 0, 0, 1), ones, false, "write"},
		{"WRITE SAME through", cdb16(0x93, 0, 0, 1), ones, true, "write+fua"},
		{"WRITE SAME of zeroes", cdb16(0x93, 0, 0, 1), block, false, "write zeroes"},
		{"WRITE SAME of zeroes through", cdb16(0x93, 0, 0, 1), block, true, "write zeroes flush"},
		{"WRITE SAME UNMAP", cdb16(0x93, 8, 0, 1), block, false, "discard"},
		{"WRITE SAME UNMAP of ones", cdb16(0x93, 8, 0, 1), ones, false, "write"},
		{"WRITE SAME NDOB", cdb16(0x93, 1, 0, 1), nil, false, "write zeroes"},
		{"UNMAP", unmapCDB(list), list, false, "discard"},
		{"UNMAP through", unmapCDB(list), list, true, "discard flush"},
		{"SYNCHRONIZE CACHE", cdb10(0x35, 0, 0, 0), nil, false, "flush"},
		{"SYNCHRONIZE CACHE IMMED", cdb16(0x91, 2, 0, 0), nil, true, "flush"},
		{"READ FUA", cdb10(0x28, 8, 0, 1), nil, true, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMedium(mib)
			prompt(t, m).start(newUnit(t, m, LUConfig{WriteThrough: tt.through}), tt.cdb, tt.out, 0).finish()
			if got := describe(m.ops()); got != tt.want {
				t.Errorf("%q, expected %q", got, tt.want)
			}
		})
	}
}

// TestWrite6HasNoFUA: the bit belongs to the LBA there.
func TestWrite6HasNoFUA(t *testing.T) {
	m := newMedium(mib)
	m.info.Size = 1 << 30
	m.fail = func(*backstore.Op) error { return backstore.ErrNoSpace } // there is no such memory
	prompt(t, m).start(newUnit(t, m, LUConfig{}), cdb6(0x0a, fuaBit<<16, 1), make([]byte, 512), 0).finish()
	if ops := m.ops(); len(ops) != 1 || ops[0].FUA || ops[0].Off != fuaBit<<16*512 {
		t.Errorf("%+v", ops)
	}
}

func describe(ops []backstore.Op) string {
	var words []string
	for _, op := range ops {
		w := op.Kind.String()
		if op.FUA {
			w += "+fua"
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// TestStoreErrors: a store's errors in SCSI's words.
func TestStoreErrors(t *testing.T) {
	eio := errors.New("input/output error")
	at := func(asc sense.ASC) *sense.Data {
		return &sense.Data{Key: sense.MediumError, ASC: asc, InfoValid: true, Info: 3}
	}
	list := unmapList([2]uint64{3, 1})
	read, write := cdb10(0x28, 0, 3, 1), cdb10(0x2a, 0, 3, 1)
	block := make([]byte, 512)
	tests := []struct {
		cdb  []byte
		out  []byte
		err  error
		want *sense.Data
	}{
		{read, nil, eio, at(sense.ASCUnrecoveredReadError)},
		{read, nil, fmt.Errorf("f: %w", backstore.ErrGone), sense.ManualInterventionRequired},
		{read, nil, backstore.ErrOutOfRange, sense.LBAOutOfRange},
		{write, block, eio, at(sense.ASCWriteError)},
		{write, block, fmt.Errorf("f: %w", backstore.ErrNoSpace), sense.SpaceAllocationFailed},
		{write, block, backstore.ErrReadOnly, sense.WriteProtected},
		{unmapCDB(list), list, eio, at(sense.ASCWriteError)},
		{unmapCDB(list), list, backstore.ErrUnsupported, sense.InvalidOpcode},
		{cdb16(0x89, 0, 3, 1), make([]byte, 1024), eio, at(sense.ASCUnrecoveredReadError)},
		{cdb10(0x2f, 0, 3, 1), nil, eio, at(sense.ASCUnrecoveredReadError)},
		{cdb10(0x2f, 6, 3, 1), block, eio, at(sense.ASCUnrecoveredReadError)},
		{cdb10(0x35, 0, 0, 0), nil, eio, &sense.Data{Key: sense.MediumError, ASC: sense.ASCWriteError}},
		{append([]byte{0x9e, 0x12}, cdb16(0, 0, 3, 24)[2:]...), nil, eio, at(sense.ASCUnrecoveredReadError)},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%x %v", tt.cdb, tt.err), func(t *testing.T) {
			for _, later := range []int{0, 100} {
				m := newMedium(mib)
				m.fail = func(*backstore.Op) error { return tt.err }
				th := prompt(t, m)
				th.defers = later
				x := th.start(newUnit(t, m, LUConfig{}), tt.cdb, tt.out, 512).finish()
				if x.c.Status != CheckCondition || *x.c.Sense != *tt.want {
					t.Errorf("status %02x, sense %+v; expected %+v", x.c.Status, x.c.Sense, tt.want)
				}
			}
		})
	}
}

// TestComplaints: a dead store writes one line, not one per command.
func TestComplaints(t *testing.T) {
	var lines bytes.Buffer
	m := newMedium(mib)
	m.fail = func(*backstore.Op) error { return errors.New("broken") }
	n := newUnit(t, m, LUConfig{Name: "vol1"})
	n.LU.config.Logger = testLogger(&lines)
	th := prompt(t, m)
	for range 50 {
		th.start(n, cdb10(0x28, 0, 9, 1), nil, 512).finish()
	}
	got := lines.String()
	if count := strings.Count(got, "\n"); count == 0 || count > 5 {
		t.Errorf("%d lines:\n%s", count, got)
	}
	for _, want := range []string{"volume=vol1", "lba=9", "operation=read", "error=broken"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
}

// TestWriteProtection: everything that changes the medium is refused, all else
// runs.
func TestWriteProtection(t *testing.T) {
	protections := map[string]func(*medium, *LUConfig, *Nexus){
		"store":  func(m *medium, _ *LUConfig, _ *Nexus) { m.info.ReadOnly = true },
		"volume": func(_ *medium, c *LUConfig, _ *Nexus) { c.ReadOnly = true },
		"nexus":  func(_ *medium, _ *LUConfig, n *Nexus) { n.ReadOnly.Store(true) },
	}
	for name, protect := range protections {
		m := newMedium(mib)
		m.info.CryptoErase = true
		var config LUConfig
		var mark Nexus
		protect(m, &config, &mark)
		n := newUnit(t, m, config)
		n.ReadOnly.Store(mark.ReadOnly.Load())
		checkProtected(t, name, m, n, sense.WriteProtected)
	}
	m := newMedium(mib)
	m.info.CryptoErase = true
	n := newUnit(t, m, LUConfig{})
	n.LU.update(func(s *State) { s.SoftProtect = true })
	checkProtected(t, "SWP", m, n, sense.SoftwareWriteProtected)
}

func checkProtected(t *testing.T, name string, m *medium, n *Nexus, want *sense.Data) {
	t.Helper()
	for _, row := range sbcTable {
		c := prompt(t, m).start(n, []byte{row.Opcode, byte(max(0, row.ServiceAction))}, nil, 0).finish().c
		refused := c.Status == CheckCondition && *c.Sense == *want
		if refused != (row.Access == AccessWrite) {
			t.Errorf("%s: %s: status %02x, sense %+v", name, row.Name, c.Status, c.Sense)
		}
	}
	if i := slices.IndexFunc(m.ops(), func(op backstore.Op) bool { return changes(op.Kind) }); i >= 0 {
		t.Errorf("%s: the medium was changed: %v", name, m.ops()[i])
	}
}

// TestStopped: media commands are refused after START STOP UNIT.
func TestStopped(t *testing.T) {
	m := newMedium(mib)
	m.info.CryptoErase = true
	n := newUnit(t, m, LUConfig{})
	n.LU.update(func(s *State) { s.Stopped = true })
	for _, row := range sbcTable {
		c := prompt(t, m).start(n, []byte{row.Opcode, byte(max(0, row.ServiceAction))}, nil, 0).finish().c
		if c.Status != CheckCondition || c.Sense != sense.InitializingCommandRequired {
			t.Errorf("%s: status %02x, sense %+v", row.Name, c.Status, c.Sense)
		}
	}
}

// TestMiscompare: INFORMATION is the offset of the first byte that differs.
func TestMiscompare(t *testing.T) {
	for _, at := range []int{0, 1, 511, 512, 1023} {
		m := newMedium(mib)
		n := newUnit(t, m, LUConfig{})
		want := *sense.MiscompareAt(uint64(at))
		out := make([]byte, 2048)
		out[at] = 1
		x := prompt(t, m).start(n, cdb16(0x89, 0, 5, 2), out, 0).finish()
		if x.c.Status != CheckCondition || *x.c.Sense != want {
			t.Errorf("COMPARE AND WRITE at %d: %+v", at, x.c.Sense)
		}
		x = prompt(t, m).start(n, cdb16(0x8f, 2, 5, 2), out[:1024], 0).finish()
		if x.c.Status != CheckCondition || *x.c.Sense != want {
			t.Errorf("VERIFY at %d: %+v", at, x.c.Sense)
		}
		if !isZero(m.mu.bytes) {
			t.Error("the medium was changed")
		}
	}
}

// TestVerifyBlock: BYTCHK=11b compares every block with the one that came.
func TestVerifyBlock(t *testing.T) {
	m := newMedium(mib)
	n := newUnit(t, m, LUConfig{})
	block := bytes.Repeat([]byte{5}, 512)
	copy(m.mu.bytes[512:], bytes.Repeat(block, 1000))
	for _, later := range []int{0, 100} {
		th := prompt(t, m)
		th.defers, th.late, th.starve = later, later, later/2
		if x := th.start(n, cdb16(0x8f, 6, 1, 1000), block, 0).finish(); x.c.Status != Good || x.c.Length != 512 {
			t.Errorf("equal: status %02x, sense %+v, Length %d", x.c.Status, x.c.Sense, x.c.Length)
		}
		if x := th.start(n, cdb16(0x8f, 6, 1, 1001), block, 0).finish(); x.c.Status != CheckCondition || *x.c.Sense != *sense.MiscompareAt(0) {
			t.Errorf("unequal: status %02x, sense %+v", x.c.Status, x.c.Sense)
		}
	}
}

// TestWriteSameWithoutZeroes: a store that can neither zero nor release gets
// the zeroes written.
func TestWriteSameWithoutZeroes(t *testing.T) {
	for _, cdb := range [][]byte{cdb16(0x93, 1, 1, 500), cdb16(0x93, 0, 1, 500)} {
		m := newMedium(mib)
		m.info.Discard = false
		m.fail = func(op *backstore.Op) error {
			if op.Kind == backstore.WriteZeroes {
				return backstore.ErrUnsupported
			}
			return nil
		}
		for i := range m.mu.bytes {
			m.mu.bytes[i] = 9
		}
		var out []byte
		if cdb[1] == 0 {
			out = make([]byte, 512)
		}
		th := prompt(t, m)
		th.starve, th.defers = 50, 50
		x := th.start(newUnit(t, m, LUConfig{}), cdb, out, 0).finish()
		if x.c.Status != Good || bytes.Count(m.mu.bytes, []byte{0}) != 500*512 || !isZero(m.mu.bytes[512:501*512]) {
			t.Errorf("status %02x, sense %+v, %d zeroes", x.c.Status, x.c.Sense, bytes.Count(m.mu.bytes, []byte{0}))
		}
	}
}

// TestWithoutDiscard: UNMAP is unknown, and so is WRITE SAME's UNMAP bit.
func TestWithoutDiscard(t *testing.T) {
	m := newMedium(mib)
	m.info.Discard = false
	n := newUnit(t, m, LUConfig{})
	list := unmapList([2]uint64{0, 1})
	if x := prompt(t, m).start(n, unmapCDB(list), list, 0).finish(); x.c.Sense != sense.InvalidOpcode {
		t.Errorf("UNMAP: %+v", x.c.Sense)
	}
	if x := prompt(t, m).start(n, cdb16(0x93, 8, 0, 1), make([]byte, 512), 0).finish(); x.c.Sense != sense.InvalidFieldInCDB(1, 3) {
		t.Errorf("WRITE SAME: %+v", x.c.Sense)
	}
	if l := n.LU.Limits(); l.MaxUnmap != 0 || l.MaxUnmapDescriptors != 0 {
		t.Errorf("limits %+v", l)
	}
}

// TestLBAStatus: extents of the store as descriptors, also where they are longer than what is
// done in one turn.
func TestLBAStatus(t *testing.T) {
	m := newMedium(8 * mib)
	m.mu.bytes[8192] = 1
	n := newUnit(t, m, LUConfig{})
	tests := []struct {
		lba        uint64
		allocation uint32
		want       [][3]uint64 // LBA, blocks, status
	}{
		{0, 24, [][3]uint64{{0, 16, 1}}},
		{4, 40, [][3]uint64{{4, 12, 1}, {16, 8, 0}}},
		{17, 1000, [][3]uint64{{17, 7, 0}, {24, 16360, 1}}},
		{0, 1000, [][3]uint64{{0, 16, 1}, {16, 8, 0}, {24, 16360, 1}}},
		{16383, 1000, [][3]uint64{{16383, 1, 1}}},
	}
	for _, tt := range tests {
		cdb := append([]byte{0x9e, 0x12}, cdb16(0, 0, tt.lba, uint64(tt.allocation))[2:]...)
		for _, later := range []int{0, 100} {
			th := prompt(t, m)
			th.defers = later
			x := th.start(n, cdb, nil, 1000).finish()
			want := binary.BigEndian.AppendUint32(nil, uint32(4+16*len(tt.want)))
			want = append(want, 0, 0, 0, 0)
			for _, d := range tt.want {
				want = binary.BigEndian.AppendUint64(want, d[0])
				want = binary.BigEndian.AppendUint32(want, uint32(d[1]))
				want = append(want, byte(d[2]), 0, 0, 0)
			}
			if !bytes.Equal(x.in, want) {
				t.Errorf("from %d:\n got %x\nwant %x", tt.lba, x.in, want)
			}
		}
	}
	m.fail = func(*backstore.Op) error { return backstore.ErrUnsupported }
	x := prompt(t, m).start(n, append([]byte{0x9e, 0x12}, cdb16(0, 0, 8, 24)[2:]...), nil, 24).finish()
	equal(t, x.in, "00000014 00000000 0000000000000008 00003ff8 00 000000")
}

// TestIsZero: one byte that is not zero is found wherever it is.
func TestIsZero(t *testing.T) {
	for n := range 70 {
		b := make([]byte, n)
		if !isZero(b) {
			t.Fatalf("%d zeroes are not zero", n)
		}
		for i := range b {
			b[i] = 1
			if isZero(b) {
				t.Fatalf("byte %d of %d was overlooked", i, n)
			}
			b[i] = 0
		}
		if n > 0 && isZero(bytes.Repeat([]byte{1}, n)) {
			t.Fatalf("%d ones are zero", n)
		}
	}
}
