package scsi

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/target/scsi/sense"
)

// unhex decodes hexadecimal digits, in which white space means nothing.
func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatalf("golden bytes: %v", err)
	}
	return b
}

// infoStore is a store that only describes itself.
type infoStore struct{ info backstore.Info }

func (s infoStore) Info() backstore.Info                      { return s.info }
func (s infoStore) Lane(*evloop.Loop) (backstore.Lane, error) { return nil, errors.New("no lane") }
func (s infoStore) Close() error                              { return nil }

// diskInfo is a store of 1 MiB.
func diskInfo() backstore.Info {
	return backstore.Info{
		Size: 1 << 20, BlockSize: 1, PhysicalBlock: 4096, VolatileCache: true,
		Discard: true, DiscardGran: 4096, DiscardZeroes: true, Thin: true,
		MaxAtomic: 256 << 10, AtomicUnit: 4096,
	}
}

// flushLane notes the operations that it ends at once with err.
type flushLane struct {
	err  error
	seen []backstore.Kind
}

func (l *flushLane) TryNow(*backstore.Op) bool { return false }
func (l *flushLane) Close()                    {}
func (l *flushLane) Submit(op *backstore.Op) bool {
	l.seen = append(l.seen, op.Kind)
	op.Err = l.err
	return true
}

// replyPort is the port of one command of parameter data.
type replyPort struct {
	list  []byte // Data-Out
	lists *buf.Pool
	data  []byte // Data-In
	ended int
	woken chan Task // by another goroutine
}

func (p *replyPort) Alloc(_ *Command, n int) *buf.Ref             { return p.lists.Get(n) }
func (*replyPort) Affords(*Command, int) bool                     { return true }
func (*replyPort) Reach(*Command, func(*Nexus) bool) (CSCD, bool) { return CSCD{}, false }
func (*replyPort) Background(*Command, func(*Command)) bool       { return false }
func (*replyPort) Charge(*Command, *buf.Ref)                      {}
func (*replyPort) Contain(*Command)                               {}

func (p *replyPort) Wake(_ *Command, t Task)         { p.woken <- t }
func (p *replyPort) Again(_ *Command, t Task)        { p.woken <- t }
func (*replyPort) Turn(*Command) int64               { return math.MaxInt64 }
func (*replyPort) Within(*Command, int64, Task) bool { return true }
func (p *replyPort) Complete(*Command)               { p.ended++ }

// finish runs what other goroutines have for the command until it has ended.
func (p *replyPort) finish(t testing.TB, c *Command) {
	t.Helper()
	for p.ended == 0 && c.running > 0 {
		select {
		case task := <-p.woken:
			task.Run()
		case <-time.After(30 * time.Second):
			t.Fatalf("CDB %x has not ended", c.CDB)
		}
	}
}

func (p *replyPort) SendDataIn(_ *Command, off uint32, ref *buf.Ref, data []byte, last bool) {
	if off != 0 || ref != nil || !last {
		panic("parameter data in pieces")
	}
	p.data = bytes.Clone(data)
	p.ended++
}

func (p *replyPort) ReceiveDataOut(c *Command, off uint32, dst []byte) {
	copy(dst, p.list[off:])
	c.DataOut(off, uint32(len(dst)))
}

// reply is how a command ended.
type reply struct {
	status Status
	sense  sense.Data
	data   []byte
	length uint32
}

// disk is a logical unit and one of its nexuses.
type disk struct {
	t     testing.TB
	lu    *LogicalUnit
	nexus *Nexus
	lane  *flushLane
}

func newDisk(t testing.TB, info backstore.Info, config LUConfig) *disk {
	t.Helper()
	config.Store = infoStore{info}
	lu, err := NewLogicalUnit(config)
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{t: t, lu: lu, lane: new(flushLane)}
	d.nexus = d.attach()
	return d
}

// attach makes another nexus, without the attention of its beginning.
func (d *disk) attach() *Nexus {
	n := &Nexus{LU: d.lu, Map: func() []uint64 { return []uint64{0, 1, 300} }}
	d.lu.Attach(n)
	n.takeAttention()
	return n
}

// run executes a CDB with enough room for what it transfers.
func (d *disk) run(cdb []byte, list []byte) reply { return d.runAs(d.nexus, cdb, list) }

func (d *disk) runAs(n *Nexus, cdb []byte, list []byte) reply {
	d.t.Helper()
	port := &replyPort{list: list, woken: make(chan Task, 1)}
	if len(list) > 0 {
		pool, err := buf.NewPool(1<<20, -1)
		if err != nil {
			d.t.Fatal(err)
		}
		defer pool.Close()
		port.lists = pool
	}
	c := &Command{Nexus: n, Lane: d.lane, Port: port, CDBLength: 16}
	copy(c.CDB[:], cdb)
	c.EDTL, c.HasOut, c.HasIn = 1<<20, list != nil, list == nil
	if list != nil {
		c.EDTL = uint32(len(list))
	}
	if n.LU == nil {
		ExecuteNoLU(c)
	} else {
		n.LU.Execute(c)
	}
	port.finish(d.t, c)
	if port.ended != 1 {
		d.t.Fatalf("CDB %x ended %d times", cdb, port.ended)
	}
	r := reply{status: c.Status, data: port.data, length: c.Length}
	if c.Status == CheckCondition {
		r.sense = *c.Sense
	}
	return r
}

// good runs a CDB that must end with GOOD and returns its data.
func (d *disk) good(cdb []byte, list []byte) []byte {
	d.t.Helper()
	r := d.run(cdb, list)
	if r.status != Good {
		d.t.Fatalf("CDB %x: status %02x, sense %+v", cdb, r.status, r.sense)
	}
	return r.data
}

// refused runs a CDB that must end with CHECK CONDITION and want.
func (d *disk) refused(cdb []byte, list []byte, want *sense.Data) {
	d.t.Helper()
	r := d.run(cdb, list)
	if r.status != CheckCondition || r.sense != *want {
		d.t.Errorf("CDB %x, list %x:\n got %02x %+v\nwant 02 %+v", cdb, list, r.status, r.sense, *want)
	}
}

// equal compares data with golden hexadecimal digits.
func equal(t *testing.T, got []byte, golden string) {
	t.Helper()
	if want := unhex(t, golden); !bytes.Equal(got, want) {
		t.Errorf("\n got %x\nwant %x", got, want)
	}
}

// TestAllocationLength cuts the answer of every command with an allocation
// length to every length up to two more than there is.
func TestAllocationLength(t *testing.T) {
	tests := []struct {
		name  string
		cdb   []byte
		field int // first byte of ALLOCATION LENGTH
		width int
	}{
		{"REQUEST SENSE", []byte{0x03, 0, 0, 0, 0, 0}, 4, 1},
		{"INQUIRY", []byte{0x12, 0, 0, 0, 0, 0}, 3, 2},
		{"INQUIRY 00h", []byte{0x12, 1, 0x00, 0, 0, 0}, 3, 2},
		{"INQUIRY 80h", []byte{0x12, 1, 0x80, 0, 0, 0}, 3, 2},
		{"INQUIRY 83h", []byte{0x12, 1, 0x83, 0, 0, 0}, 3, 2},
		{"INQUIRY 86h", []byte{0x12, 1, 0x86, 0, 0, 0}, 3, 2},
		{"INQUIRY 87h", []byte{0x12, 1, 0x87, 0, 0, 0}, 3, 2},
		{"INQUIRY B0h", []byte{0x12, 1, 0xb0, 0, 0, 0}, 3, 2},
		{"INQUIRY B1h", []byte{0x12, 1, 0xb1, 0, 0, 0}, 3, 2},
		{"INQUIRY B2h", []byte{0x12, 1, 0xb2, 0, 0, 0}, 3, 2},
		{"MODE SENSE(6)", []byte{0x1a, 0, 0x3f, 0xff, 0, 0}, 4, 1},
		{"MODE SENSE(10)", []byte{0x5a, 0x10, 0x3f, 0xff, 0, 0, 0, 0, 0, 0}, 7, 2},
		{"READ CAPACITY(16)", append([]byte{0x9e, 0x10}, make([]byte, 14)...), 10, 4},
		{"REPORT LUNS", append([]byte{0xa0}, make([]byte, 11)...), 6, 4},
		{"REPORT SUPPORTED OPERATION CODES", append([]byte{0xa3, 0x0c, 0x80}, make([]byte, 9)...), 6, 4},
		{"REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS", append([]byte{0xa3, 0x0d, 0x80}, make([]byte, 9)...), 6, 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
			allocate := func(n int) []byte {
				cdb := bytes.Clone(tt.cdb)
				var length [8]byte
				binary.BigEndian.PutUint64(length[:], uint64(n))
				copy(cdb[tt.field:tt.field+tt.width], length[8-tt.width:])
				return cdb
			}
			whole := d.good(allocate(1<<(8*min(tt.width, 2))-1), nil)
			if len(whole) == 0 {
				t.Fatal("no data")
			}
			for n := range len(whole) + 3 {
				r := d.run(allocate(n), nil)
				want := whole[:min(n, len(whole))]
				if r.status != Good || !bytes.Equal(r.data, want) || r.length != uint32(len(want)) {
					t.Fatalf("allocation length %d: status %02x, length %d, data %x", n, r.status, r.length, r.data)
				}
			}
		})
	}
}

// TestShortDataIn: the initiator expects less than the allocation length says.
func TestShortDataIn(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	port := new(replyPort)
	c := &Command{CDB: CDB{0x12, 0, 0, 0, 0xff}, Nexus: d.nexus, Lane: d.lane, Port: port, EDTL: 5, HasIn: true}
	d.lu.Execute(c)
	if len(port.data) != 5 || c.Length != inquiryDataLength {
		t.Errorf("%d bytes sent, Length %d; want 5 and %d for the residual", len(port.data), c.Length, inquiryDataLength)
	}
}
