package target_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
)

const (
	quietTarget = "iqn.2026-11.lunar:quiet"
	nopTime     = time.Second
)

// fieldLimits are small, so that attacks reach them soon.
var fieldLimits = target.Limits{
	LoginConnections: 12, LoginTimeout: 2 * time.Second, Sessions: 16, QueueDepth: 32, SessionMemory: 1 << 20,
	Recovery: 2, MaxConnections: 4,
}

// field is a server under attack on one event thread, and a neighbour on
// another target that must not notice.
type field struct {
	testing.TB
	rig       *rig
	store     *errstore.Store // of the attacked target
	alarm     *alarm
	neighbour *neighbour
	fds       int // descriptors in peace
	isid      byte
	enemies   []io.Closer
}

func newField(t *testing.T) *field {
	t.Helper()
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, current) })
	ram, err := backstore.NewRAM(16<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	f := &field{TB: t, store: errstore.Wrap(ram), alarm: &alarm{}}
	f.rig = newRig(t, rigOptions{store: f.store, offer: shortRetention, config: target.Config{
		Logger: slog.New(f.alarm), Threads: 1, Buffers: 8 << 20, NOPInterval: nopTime, NOPTimeout: nopTime, Limits: fieldLimits,
	}})
	f.addQuietTarget()
	f.neighbour = f.newNeighbour()
	f.neighbour.settleDown(f)
	f.fds = descriptors(t)
	return f
}

func (f *field) addQuietTarget() {
	f.Helper()
	ram, err := backstore.NewRAM(4<<20, 512)
	if err != nil {
		f.Fatal(err)
	}
	lu, err := scsi.NewLogicalUnit(scsi.LUConfig{Name: "quiet", Store: ram, BlockSize: 512, Logger: slog.New(f.alarm)})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := f.rig.server.AddTarget(target.TargetConfig{Name: quietTarget, PortalGroups: []uint16{1}, Access: []target.AccessRule{{
		Auth: login.Auth{AllowNone: true}, LUNs: []target.LUNMapping{{LU: lu}},
	}}}); err != nil {
		f.Fatal(err)
	}
}

// alarm is the server's log: it keeps what is an error and counts the rest.
type alarm struct {
	mu    sync.Mutex
	rang  []string
	last  string
	lines int
}

func (a *alarm) Enabled(context.Context, slog.Level) bool { return true }
func (a *alarm) WithAttrs([]slog.Attr) slog.Handler       { return a }
func (a *alarm) WithGroup(string) slog.Handler            { return a }

func (a *alarm) Handle(_ context.Context, r slog.Record) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lines++
	a.last = r.Message
	r.Attrs(func(attr slog.Attr) bool { a.last += "\n" + attr.String(); return true })
	if r.Level >= slog.LevelError {
		a.rang = append(a.rang, a.last)
	}
	return nil
}

// lastLine is what was logged last.
func (a *alarm) lastLine() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.last
}

// take returns the errors since the last call and the number of all lines.
func (a *alarm) take() (rang []string, lines int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	rang, lines = a.rang, a.lines
	a.rang, a.lines = nil, 0
	return rang, lines
}

// neighbour is a well-behaved initiator that writes, reads and compares.
type neighbour struct {
	c      *initiator.Conn
	pause  sync.Mutex
	stop   chan struct{}
	gone   sync.WaitGroup
	rounds atomic.Int64
	err    atomic.Pointer[error]
}

func (f *field) newNeighbour() *neighbour {
	c := f.rig.dial(initiator.Options{Target: quietTarget, DataDigest: "CRC32C", HeaderDigest: "CRC32C"})
	c.Timeout = patience
	if err := c.Ready(0); err != nil {
		f.Fatal(err)
	}
	return &neighbour{c: c, stop: make(chan struct{})}
}

// settleDown lets the neighbour live until the end of the test.
func (n *neighbour) settleDown(t testing.TB) {
	n.gone.Go(n.live)
	t.Cleanup(func() { close(n.stop); n.gone.Wait() })
}

func (n *neighbour) live() {
	for seed := 0; ; seed++ {
		select {
		case <-n.stop:
			return
		case <-time.After(time.Millisecond):
		}
		n.pause.Lock()
		err := n.round(seed)
		n.pause.Unlock()
		if err != nil {
			n.err.Store(&err)
			return
		}
		n.rounds.Add(1)
	}
}

// round moves as little as a page and more than FirstBurstLength.
func (n *neighbour) round(seed int) error {
	size := []int{4096, 32 << 10, 256 << 10}[seed%3]
	lba, blocks := uint64(seed%64)*64, uint32(size/512)
	data := pattern(size, byte(seed))
	for _, cmd := range []initiator.Command{{CDB: cdbWrite16(lba, blocks), Out: data}, {CDB: cdbRead16(lba, blocks), InLen: size}} {
		res, err := n.c.Do(cmd)
		switch {
		case err != nil:
			return fmt.Errorf("round %d, %d bytes: %w", seed, size, err)
		case res.Status != 0:
			return fmt.Errorf("round %d, %d bytes: status %#x, sense %x", seed, size, res.Status, res.Sense)
		case cmd.InLen > 0 && !bytes.Equal(res.In, data):
			return fmt.Errorf("round %d, %d bytes: read back other data", seed, size)
		}
	}
	return nil
}

// enemy is a connection of the attacker in full feature phase.
func (f *field) enemy(o initiator.Options) *initiator.Conn {
	f.Helper()
	if o.ISID == [6]byte{} {
		f.isid++
		o.ISID = [6]byte{0x80, 6, 6, 6, 6, f.isid}
	}
	o.Target = testTarget
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := initiator.Dial(ctx, f.rig.addr, o)
	if err != nil {
		f.Fatalf("login of the attacker: %v", err)
	}
	c.Timeout = 10 * time.Second
	f.enemies = append(f.enemies, c)
	f.settle(c)
	return c
}

// settle takes the unit attention of a new nexus.
func (f *field) settle(c *initiator.Conn) {
	f.Helper()
	if err := c.Ready(0); err != nil {
		f.Fatalf("unit not ready: %v", err)
	}
}

// raw is a connection of the attacker that has sent nothing.
func (f *field) raw() *net.TCPConn {
	f.Helper()
	c, err := net.Dial("tcp", f.rig.addr)
	if err != nil {
		f.Fatal(err)
	}
	f.enemies = append(f.enemies, c)
	return c.(*net.TCPConn)
}

// send sends PDUs; that the server has closed meanwhile is no fault.
func (f *field) send(c *initiator.Conn, pdus ...*initiator.PDU) {
	for _, p := range pdus {
		if c.Send(p) != nil {
			return
		}
	}
}

// hear receives until the connection is closed or the PDU with the tag comes,
// and holds every PDU to the RFC.
func (f *field) hear(c *initiator.Conn, itt uint32) (closed bool) {
	f.Helper()
	for {
		p, err := c.Receive(patience)
		var broken *initiator.Violation
		switch {
		case errors.As(err, &broken), errors.Is(err, initiator.ErrTimeout):
			f.Errorf("the server does not behave: %v", err)
			return true
		case err != nil:
			return true
		case p.ITT() == itt:
			return false
		}
	}
}

// answers reports whether the connection still answers a ping.
func (f *field) answers(c *initiator.Conn) bool {
	f.Helper()
	ping := initiator.NewPDU(initiator.OpNOPOut, initiator.FlagFinal, nil)
	ping.SetImmediate()
	ping.SetU32(initiator.AtITT, 0xabcdabcd)
	ping.SetU32(initiator.AtTTT, initiator.NoTag)
	ping.SetU32(initiator.AtCmdSN, c.CmdSN)
	f.send(c, ping)
	return !f.hear(c, 0xabcdabcd)
}

// calm checks that a story has left nothing behind.
func (f *field) calm() {
	f.Helper()
	f.letGo()
	for _, e := range f.enemies {
		e.Close()
	}
	f.enemies = nil
	f.nothingLeft()
	f.stillServes()
	if rang, _ := f.alarm.take(); len(rang) > 0 {
		f.Errorf("%d errors logged, the first: %s", len(rang), rang[0])
	}
}

func (f *field) nothingLeft() {
	f.Helper()
	what := fmt.Sprintf("what is left behind, expected one session and %d descriptors", f.fds)
	eventually.Passes(f, what, f.holding, func(h fieldHolding) bool {
		return h.Holding == target.Holding{Sessions: 1} && h.descriptors <= f.fds
	})
}

type fieldHolding struct {
	target.Holding
	descriptors int
}

// holding counts what the server holds while the neighbour pauses.
func (f *field) holding() fieldHolding {
	f.neighbour.pause.Lock()
	defer f.neighbour.pause.Unlock()
	return fieldHolding{f.rig.server.Holding(), descriptors(f)}
}

// stillServes checks that the neighbour goes on and others may log in.
func (f *field) stillServes() {
	f.Helper()
	before := f.neighbour.rounds.Load()
	eventually.Holds(f, "the neighbour makes progress", func() bool {
		if err := f.neighbour.err.Load(); err != nil {
			f.Fatalf("the neighbour suffers: %v", *err)
		}
		return f.neighbour.rounds.Load() > before+1
	})
	c := f.enemy(initiator.Options{})
	if _, err := c.Logout(0); err != nil {
		f.Errorf("logout after the attack: %v", err)
	}
}

func descriptors(t testing.TB) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// heap is the bytes of live Go objects.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// expectHeap checks that no more than so many bytes of the heap are held. Bytes that are
// being received during a look count but are not held, so one good look is enough.
func (f *field) expectHeap(most int) {
	f.Helper()
	what := fmt.Sprintf("bytes of the heap that are held, expected at most %d", most)
	eventually.Passes(f, what, heap, func(held int) bool { return held <= most })
}

// TestHostilePeers tells the stories one after the other to the same server.
func TestHostilePeers(t *testing.T) {
	f := newField(t)
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			f := *f
			f.TB = t
			s.run(&f)
			f.calm()
		})
	}
}

// The end of the stream is seen although it comes together with data, and no
// ping has to find it.
func TestEndOfStreamBehindData(t *testing.T) {
	f := &field{TB: t, rig: newRig(t, rigOptions{config: target.Config{NOPInterval: -1}})}
	for range 20 {
		c := f.enemy(initiator.Options{})
		f.send(c, read512(c), nop(1000))
		c.Transport().(*net.TCPConn).CloseWrite()
		f.expectEnd(c.Transport().(net.Conn))
	}
}
