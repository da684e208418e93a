package scsi

import (
	"math"
	"testing"

	"lunar/backstore"
	"lunar/internal/buf"
)

// hitLane has everything in memory: the medium of a cache hit.
type hitLane struct{ bytes []byte }

func (l *hitLane) Close()                    {}
func (l *hitLane) Submit(*backstore.Op) bool { panic("a hit was submitted") }
func (l *hitLane) TryNow(op *backstore.Op) bool {
	part := l.bytes[op.Off : op.Off+int64(len(op.Data))]
	if op.Kind == backstore.Read {
		copy(op.Data, part)
	} else {
		copy(part, op.Data)
	}
	return true
}

// missLane ends operations when the test says so.
type missLane struct {
	hitLane
	waiting []*backstore.Op
}

func (l *missLane) TryNow(*backstore.Op) bool { return false }
func (l *missLane) Submit(op *backstore.Op) bool {
	l.waiting = append(l.waiting, op)
	return false
}

func (l *missLane) end() {
	for len(l.waiting) > 0 {
		op := l.waiting[0]
		l.waiting = l.waiting[:copy(l.waiting, l.waiting[1:])]
		l.hitLane.TryNow(op)
		op.Done(op)
	}
}

// sink is a port that takes and gives data at once.
type sink struct {
	pool *buf.Pool
	out  []byte
	ends int
}

func (p *sink) Alloc(_ *Command, n int) *buf.Ref             { return p.pool.Get(n) }
func (*sink) Affords(*Command, int) bool                     { return true }
func (*sink) Reach(*Command, func(*Nexus) bool) (CSCD, bool) { return CSCD{}, false }
func (*sink) Background(*Command, func(*Command)) bool       { return false }
func (*sink) Charge(*Command, *buf.Ref)                      {}
func (p *sink) Complete(*Command)                            { p.ends++ }
func (*sink) Contain(*Command)                               {}

func (p *sink) Wake(*Command, Task)             { panic("nobody waits") }
func (*sink) Again(*Command, Task)              { panic("nothing is long") }
func (*sink) Turn(*Command) int64               { return math.MaxInt64 }
func (*sink) Within(*Command, int64, Task) bool { return true }
func (p *sink) SendDataIn(_ *Command, _ uint32, ref *buf.Ref, _ []byte, last bool) {
	ref.Release()
	if last {
		p.ends++
	}
}

func (p *sink) ReceiveDataOut(c *Command, off uint32, dst []byte) {
	copy(dst, p.out[off:])
	c.DataOut(off, uint32(len(dst)))
}

// path is one way of a command through the device server.
type path struct {
	name      string
	cdb       []byte
	n         uint32
	write     bool
	immediate bool
	miss      bool
}

var paths = []path{
	{name: "read hit", cdb: cdb10(0x28, 0, 8, 8), n: 4096},
	{name: "read miss", cdb: cdb10(0x28, 0, 8, 8), n: 4096, miss: true},
	{name: "large read", cdb: cdb10(0x28, 0, 0, 2048), n: mib},
	{name: "immediate write hit", cdb: cdb10(0x2a, 0, 8, 8), n: 4096, write: true, immediate: true},
	{name: "write hit", cdb: cdb10(0x2a, 0, 8, 8), n: 4096, write: true},
	{name: "write miss", cdb: cdb10(0x2a, 0, 8, 8), n: 4096, write: true, immediate: true, miss: true},
	{name: "large write", cdb: cdb10(0x2a, 0, 0, 2048), n: mib, write: true, miss: true},
	{name: "compare and write", cdb: cdb16(0x89, 0, 8, 1), n: 1024, write: true},
}

// runner prepares a path and returns what runs it once.
func (p path) runner(t testing.TB) func() {
	m := newMedium(mib)
	n := newUnit(t, m, LUConfig{})
	pool, err := buf.NewPool(4*mib, -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pool.Close() })
	port := &sink{pool: pool, out: make([]byte, p.n)}
	lane := &missLane{hitLane: hitLane{make([]byte, mib)}, waiting: make([]*backstore.Op, 0, 64)}
	c := &Command{CDBLength: 16, Nexus: n, Port: port, Lane: &lane.hitLane, EDTL: p.n, HasOut: p.write, HasIn: !p.write}
	if p.miss {
		c.Lane = lane
	}
	copy(c.CDB[:], p.cdb)
	return func() {
		port.ends = 0
		if p.immediate {
			c.Immediate = port.out
		}
		n.LU.Execute(c)
		lane.end()
		if port.ends != 1 || c.Status != Good {
			t.Fatalf("%d ends, status %02x, sense %+v", port.ends, c.Status, c.Sense)
		}
		c.Reset()
	}
}

// TestDataPathDoesNotAllocate runs every path in a reused Command.
func TestDataPathDoesNotAllocate(t *testing.T) {
	for _, p := range paths {
		t.Run(p.name, func(t *testing.T) {
			if allocs := testing.AllocsPerRun(100, p.runner(t)); allocs != 0 {
				t.Errorf("%v allocations", allocs)
			}
		})
	}
}

func BenchmarkPath(b *testing.B) {
	for _, p := range paths {
		b.Run(p.name, func(b *testing.B) {
			run := p.runner(b)
			b.SetBytes(int64(p.n))
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}
