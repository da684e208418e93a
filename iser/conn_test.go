package iser_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/backstore/memstore"
	"lunar/internal/buf"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/internal/invariants"
	"lunar/iser"
	"lunar/iser/isertest"
	"lunar/iser/verbs"
	"lunar/iser/verbs/fake"
	"lunar/target"
	"lunar/target/targettest"
)

func isid(n byte) [6]byte { return [6]byte{0x80, 0, 0, 0, 2, n} }

func read16(lba, blocks int) []byte {
	cdb := make([]byte, 16)
	cdb[0] = 0x88
	binary.BigEndian.PutUint64(cdb[2:], uint64(lba))
	binary.BigEndian.PutUint32(cdb[10:], uint32(blocks))
	return cdb
}

func write16(lba, blocks int) []byte {
	cdb := read16(lba, blocks)
	cdb[0] = 0x8a
	return cdb
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>8) ^ byte(i)*7 ^ seed
	}
	return b
}

func do(t testing.TB, c *initiator.Conn, cmd initiator.Command) *initiator.Result {
	t.Helper()
	cmd.Attr = initiator.AttrSimple
	r, err := c.Do(cmd)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func good(t testing.TB, r *initiator.Result) *initiator.Result {
	t.Helper()
	if r.Status != initiator.StatusGood {
		t.Fatalf("status %#x, sense %x", r.Status, r.Sense)
	}
	return r
}

func write(t testing.TB, c *initiator.Conn, off int, data []byte) {
	t.Helper()
	good(t, do(t, c, initiator.Command{CDB: write16(off/512, len(data)/512), Out: data}))
}

func expect(t testing.TB, c *initiator.Conn, off int, want []byte) {
	t.Helper()
	if got := good(t, do(t, c, initiator.Command{CDB: read16(off/512, len(want)/512), InLen: len(want)})).In; !bytes.Equal(got, want) {
		t.Fatalf("%d bytes at %d differ", len(want), off)
	}
}

func (w *world) ready(t testing.TB, n byte, o isertest.Options) (*initiator.Conn, *isertest.Wire) {
	t.Helper()
	c, wire := w.dial(t, initiator.Options{ISID: isid(n)}, o)
	if err := c.Ready(0); err != nil {
		t.Fatal(err)
	}
	return c, wire
}

func (w *world) stats() iser.Stats { return w.transport.Stats()[0] }

func (w *world) connections() int { return w.stats().Connections }

// No byte of a read or of a write whose data are fetched is copied between the
// transport and the store.
func TestNoCopies(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("copies are counted with -tags invariants only")
	}
	w := newWorld(t, options{immediate: -1})
	c, _ := w.ready(t, 1, isertest.Options{Invalidate: true})
	before, bounced := buf.Copied(), w.stats().Bounced
	for i, n := range []int{512, 4096, 8192, 64 << 10, 300 << 10, 1 << 20} {
		data := pattern(n, byte(i))
		write(t, c, 0, data)
		expect(t, c, 0, data)
	}
	if n := buf.Copied() - before; n != 0 {
		t.Errorf("%d bytes were copied", n)
	}
	if s := w.stats(); s.Bounced != bounced {
		t.Errorf("%d bytes were copied before they were sent", s.Bounced-bounced)
	}
	write(t, c, 0, pattern(4096, 1))
	copied := buf.Copied()
	good(t, do(t, c, initiator.Command{CDB: []byte{0x12, 0, 0, 0, 96, 0}, InLen: 96}))
	if buf.Copied() == copied {
		t.Error("parameter data were not counted: this test proves nothing")
	}
}

// What an I/O costs: the papers have three operations for each, a command, the
// data, a response.
func TestOperations(t *testing.T) {
	w := newWorld(t, options{})
	c, wire := w.ready(t, 1, isertest.Options{Invalidate: true})
	for _, v := range []struct {
		name                           string
		run                            func()
		receives, sends, writes, reads uint64
	}{
		{"read of 4 KiB", func() { expect(t, c, 1<<20, make([]byte, 4096)) }, 1, 1, 1, 0},
		{"read of 1 MiB", func() { expect(t, c, 1<<20, make([]byte, 1<<20)) }, 1, 1, 4, 0},
		{"write of 4 KiB, all immediate", func() { write(t, c, 1<<20, make([]byte, 4096)) }, 1, 1, 0, 0},
		{"write of 64 KiB", func() { write(t, c, 1<<20, make([]byte, 64<<10)) }, 1, 1, 0, 1},
		{"write of 1 MiB", func() { write(t, c, 1<<20, make([]byte, 1<<20)) }, 1, 1, 0, 4},
	} {
		before := w.stats()
		v.run()
		s := w.stats()
		if s.Receives-before.Receives != v.receives || s.Sends-before.Sends != v.sends || s.Writes-before.Writes != v.writes || s.Reads-before.Reads != v.reads {
			t.Errorf("%s: %d PDUs received, %d sent, %d RDMA writes, %d RDMA reads; expected %d, %d, %d, %d", v.name,
				s.Receives-before.Receives, s.Sends-before.Sends, s.Writes-before.Writes, s.Reads-before.Reads, v.receives, v.sends, v.writes, v.reads)
		}
		if posts := s.Posts - before.Posts; posts > s.Sends-before.Sends+s.Writes-before.Writes+s.Reads-before.Reads {
			t.Errorf("%s: %d posts", v.name, posts)
		}
		t.Logf("%s: %d posts", v.name, s.Posts-before.Posts)
	}
	if wire.Counts.Invalidated == 0 {
		t.Error("no key was invalidated although both sides agreed")
	}
}

// Immediate data that are announced and not there are fetched; of what names no
// buffer for them nothing is believed.
func TestAnnouncedData(t *testing.T) {
	w := newWorld(t, options{})
	c, _ := w.ready(t, 1, isertest.Options{Hollow: true})
	for i, n := range []int{512, 4096, 8192, 64 << 10, 1 << 20} {
		write(t, c, 0, pattern(n, byte(i)))
		expect(t, c, 0, pattern(n, byte(i)))
	}
	if s := w.stats(); s.ReadBytes != 512+4096+8192+64<<10+1<<20 {
		t.Errorf("%d bytes were fetched", s.ReadBytes)
	}
}

// Keys are invalidated only where both sides and the device agree.
func TestInvalidation(t *testing.T) {
	weak := fake.DeviceOptions{Caps: fake.DefaultCaps()}
	weak.Caps.MemoryManagement = false
	for _, v := range []struct {
		name    string
		options options
		wire    isertest.Options
		want    bool
	}{
		{"agreed", options{}, isertest.Options{Invalidate: true}, true},
		{"the initiator declines", options{}, isertest.Options{}, false},
		{"the target is not to", options{noInv: true}, isertest.Options{Invalidate: true}, false},
		{"the device cannot", options{caps: &weak}, isertest.Options{Invalidate: true}, false},
	} {
		t.Run(v.name, func(t *testing.T) {
			w := newWorld(t, v.options)
			c, wire := w.ready(t, 1, v.wire)
			write(t, c, 0, pattern(64<<10, 1))
			expect(t, c, 0, pattern(64<<10, 1))
			if got := wire.Counts.Invalidated > 0; got != v.want {
				t.Errorf("invalidated %d keys", wire.Counts.Invalidated)
			}
		})
	}
}

// Long sense data and long answers are cut to what initiators have buffers for.
func TestShortAnswers(t *testing.T) {
	w := newWorld(t, options{})
	c, _ := w.ready(t, 1, isertest.Options{})
	for _, n := range []int{0, 1, 100, 128} {
		if err := c.Ping(pattern(n, 1)); err != nil {
			t.Errorf("ping of %d bytes: %v", n, err)
		}
	}
	if r := do(t, c, initiator.Command{CDB: read16(1<<40, 1), InLen: 512}); r.Status != initiator.StatusCheckCondition || len(r.Sense) == 0 {
		t.Errorf("status %#x, sense %x", r.Status, r.Sense)
	}
	if targets, err := c.SendTargets(""); err != nil || len(targets) != 1 {
		t.Errorf("SendTargets: %v, %v", targets, err)
	}
	expect(t, c, 0, make([]byte, 4096))
}

// RDMA and TCP connections of one unit see the same data, each its own transport's
// portals in discovery, and the server's threads serve both.
func TestBothTransports(t *testing.T) {
	w := newWorld(t, options{})
	c, _ := w.ready(t, 1, isertest.Options{Invalidate: true})
	tcp := w.overTCP(t, initiator.Options{ISID: isid(2)})
	if err := tcp.Ready(0); err != nil {
		t.Fatal(err)
	}
	write(t, c, 0, pattern(256<<10, 1))
	expect(t, tcp, 0, pattern(256<<10, 1))
	write(t, tcp, 1<<20, pattern(256<<10, 2))
	expect(t, c, 1<<20, pattern(256<<10, 2))
	by := map[string]int{}
	for _, s := range w.Sessions() {
		by[s.Transport]++
	}
	if by["iser"] != 1 || by["tcp"] != 1 {
		t.Errorf("sessions by transport: %v", by)
	}
	for _, v := range []struct {
		c    *initiator.Conn
		want string
	}{{c, portalAddr.String() + ",1"}, {tcp, w.Addrs(1)[0].String() + ",1"}} {
		targets, err := v.c.SendTargets("")
		if err != nil || fmt.Sprint(targets) != fmt.Sprintf("[{%s [%s]}]", testTarget, v.want) {
			t.Errorf("discovery tells %v, %v, expected %s", targets, err, v.want)
		}
	}
}

// Many initiators at once, some of which give up in the middle.
func TestManyLogins(t *testing.T) {
	w := newWorld(t, options{threads: 3})
	var group sync.WaitGroup
	for n := range byte(16) {
		group.Go(func() {
			wire, err := isertest.Dial(w.client, isertest.Options{Portal: portalAddr, Invalidate: n%2 == 0})
			if err != nil {
				t.Errorf("connect %d: %v", n, err)
				return
			}
			defer wire.Close()
			if n%4 == 3 {
				return
			}
			c := initiator.NewConn(wire)
			if err := c.Login(initiator.Options{ISID: isid(n), Target: testTarget}); err != nil {
				t.Errorf("login %d: %v", n, err)
			} else if err := c.Ready(0); err != nil {
				t.Errorf("initiator %d: %v", n, err)
			}
		})
	}
	group.Wait()
	eventually.Finds(t, "connections", 0, w.connections)
}

// The connection ends at whatever work request fails, with a reason, and gives all
// back; the next login serves.
func TestEveryFault(t *testing.T) {
	for _, op := range []verbs.Op{verbs.OpSend, verbs.OpSendInv, verbs.OpWrite, verbs.OpRead} {
		for _, nth := range []uint64{1, 2, 4} {
			t.Run(fmt.Sprintf("%d of kind %d", nth, op), func(t *testing.T) {
				var armed atomic.Bool
				var seen atomic.Uint64
				fault := func(work fake.Work) verbs.Status {
					if armed.Load() && work.Host == "target" && work.WR.Op == op && seen.Add(1) == nth {
						return verbs.StatusRetryExceeded
					}
					return verbs.StatusOK
				}
				w := newWorld(t, options{fabric: fake.Options{Fault: fault, Seed: nth}})
				c, wire := w.ready(t, 1, isertest.Options{Invalidate: op != verbs.OpSend})
				armed.Store(true)
				if endIO(c) == nil {
					t.Fatal("all went well")
				}
				wire.Close()
				eventually.Finds(t, "connections", 0, w.connections)
				if n := w.stats().Failures; n > 1 { // 0: the initiator, whose end failed too, was heard first
					t.Errorf("%d failures of one connection", n)
				}
				armed.Store(false)
				again, _ := w.ready(t, 1, isertest.Options{Invalidate: true})
				write(t, again, 0, pattern(64<<10, 3))
				expect(t, again, 0, pattern(64<<10, 3))
			})
		}
	}
}

// endIO writes and reads several commands at a time until one fails.
func endIO(c *initiator.Conn) error {
	for range 4 {
		var tasks []*initiator.Task
		for i := range 4 {
			cmd := initiator.Command{CDB: write16(i*1024, 512), Out: pattern(256<<10, byte(i)), Attr: initiator.AttrSimple}
			if i%2 == 1 {
				cmd = initiator.Command{CDB: read16(i*1024, 512), InLen: 256 << 10, Attr: initiator.AttrSimple}
			}
			task, err := c.Start(cmd)
			if err != nil {
				return err
			}
			tasks = append(tasks, task)
		}
		for _, task := range tasks {
			if _, err := c.Wait(task); err != nil {
				return err
			}
		}
	}
	return nil
}

// Whatever call of the library fails while a connection is made, nothing is left
// and the next one is served.
func TestEveryRefusal(t *testing.T) {
	for call, nth := range map[string]int64{ // the initiator's own calls come first
		"ibv_reg_mr": 1, "rdma_create_qp": 2, "ibv_create_cq": 2, "ibv_create_comp_channel": 2, "rdma_accept": 1,
	} {
		t.Run(call, func(t *testing.T) {
			var fail atomic.Bool
			var calls atomic.Int64
			refuse := func(called string) error {
				if called == call && fail.Load() && calls.Add(1) == nth {
					return syscall.ENOMEM
				}
				return nil
			}
			w := newWorld(t, options{fabric: fake.Options{Refuse: refuse}})
			fail.Store(true)
			wire, err := isertest.Dial(w.client, isertest.Options{Portal: portalAddr})
			fail.Store(false)
			if err == nil {
				wire.Close()
				t.Fatal("connected")
			}
			eventually.Finds(t, "connections", 0, w.connections)
			c, _ := w.ready(t, 1, isertest.Options{})
			expect(t, c, 0, make([]byte, 8192))
		})
	}
}

// A store that fails, or takes its time, ends commands and not connections.
func TestStoreErrors(t *testing.T) {
	store, err := memstore.New(memstore.Config{Size: targettest.VolumeSize, Async: true})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, options{store: errstore.Wrap(store, errstore.Rule{Kinds: []backstore.Kind{backstore.Read}, Off: 1<<20 + 512<<10, Len: 512, Err: errors.New("bad sector")})})
	c, _ := w.ready(t, 1, isertest.Options{Invalidate: true})
	r := do(t, c, initiator.Command{CDB: read16(2048, 2048), InLen: 1 << 20})
	if r.Status != initiator.StatusCheckCondition {
		t.Errorf("status %#x, expected CHECK CONDITION", r.Status)
	}
	expect(t, c, 0, make([]byte, 64<<10))
}

// RDMA that is there and cannot be used is refused with what to do.
func TestOpenRefusals(t *testing.T) {
	f := fake.New(t, fake.Options{})
	if _, err := iser.Open(iser.Config{Provider: f.Host("bare", false)}); !errors.Is(err, iser.ErrNoDevice) {
		t.Errorf("no device: %v", err)
	}
	weak := fake.DefaultCaps()
	weak.MaxMessage = 4096
	h := f.Host("weak", false, fake.DeviceOptions{Name: "old0", Addr: portalAddr.Addr(), Caps: weak})
	if _, err := iser.Open(iser.Config{Provider: h}); err == nil || !strings.Contains(err.Error(), "old0") {
		t.Errorf("a device with short messages: %v", err)
	}
}

// A device whose peers could write to the server's memory is not used, nor are
// connections that come by it; others beside it are.
func TestIWARPIsRefused(t *testing.T) {
	f := fake.New(t, fake.Options{})
	caps := fake.DefaultCaps()
	caps.IWARP = true
	h := f.Host("alone", false, fake.DeviceOptions{Name: "iwarp0", Addr: portalAddr.Addr(), Caps: caps})
	if _, err := iser.Open(iser.Config{Provider: h}); err == nil || !strings.Contains(err.Error(), "iwarp0") || !strings.Contains(err.Error(), "InfiniBand and RoCE only") {
		t.Errorf("iWARP alone: %v", err)
	}
	by := netip.AddrPortFrom(netip.MustParseAddr("10.0.0.9"), portalAddr.Port())
	w := newWorld(t, options{beside: &fake.DeviceOptions{Name: "iwarp1", Addr: by.Addr(), Caps: caps}})
	w.check(w.Listen(target.PortalGroup{Tag: 2, Portals: []target.Portal{w.transport.Portal(by, 2)}}))
	if n := w.server.Device(1).Regions(); n != 0 {
		t.Errorf("%d regions are registered with the iWARP device", n)
	}
	c, _ := w.ready(t, 1, isertest.Options{})
	write(t, c, 0, pattern(4096, 1))
	if _, err := isertest.Dial(w.client, isertest.Options{Portal: by}); err == nil {
		t.Error("a connection by the iWARP device is accepted")
	}
}

// While data move in both directions no region of the server can be reached by an
// initiator, whatever keys and addresses it guesses; that no message names any, isertest
// checks of each.
func TestNothingIsReachable(t *testing.T) {
	w := newWorld(t, options{})
	c, _ := w.ready(t, 1, isertest.Options{})
	for i := range 8 {
		write(t, c, 0, pattern(256<<10, byte(i)))
		expect(t, c, 0, pattern(256<<10, byte(i)))
		device := w.server.Device(0)
		if device.Regions() < 3 {
			t.Fatalf("%d regions: expected the buffers' and the connection's", device.Regions())
		}
		if n := device.Reachable(); n != 0 {
			t.Fatalf("%d of %d regions can be reached", n, device.Regions())
		}
	}
}
