package iser_test

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/memstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/iser"
	"lunar/iser/isertest"
	"lunar/iser/verbs/fake"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
	"lunar/target/targettest"
	"lunar/target/tcp"
)

const testTarget = "iqn.2026-11.net.lunar:iser"

var portalAddr = netip.MustParseAddrPort("10.0.0.1:3260")

// world is a server with a TCP and an RDMA portal, and a host of initiators.
type world struct {
	*target.Server
	t         testing.TB
	transport *iser.Transport
	tcp       *tcp.Transport
	fabric    *fake.Fabric
	server    *fake.Host
	client    *fake.Host
	lu        *scsi.LogicalUnit
	log       *watchedLog
}

// options of a world; zero values are usual ones.
type options struct {
	store     backstore.Store
	blockSize int
	fabric    fake.Options
	caps      *fake.DeviceOptions
	beside    *fake.DeviceOptions // of the server
	immediate int
	noInv     bool
	threads   int
	rate      int64 // of the server's device, bytes per second; 0: any
	server    target.Config
}

// watchedLog makes records of level Error failures of the test, and keeps
// reasons.
type watchedLog struct {
	slog.Handler
	t       testing.TB
	allowed map[string]bool
	warned  atomic.Int64 // of work that no device has given back
}

func (h *watchedLog) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	if strings.Contains(line, "has not given back") {
		h.warned.Add(1)
	}
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	if r.Level >= slog.LevelError && !h.allowed[r.Message] {
		h.t.Errorf("%s", line)
	} else if testing.Verbose() {
		h.t.Log(line)
	}
	return nil
}

func (h *watchedLog) Enabled(_ context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn || testing.Verbose()
}
func (h *watchedLog) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h *watchedLog) WithGroup(string) slog.Handler      { return h }

func newWorld(t testing.TB, o options) *world {
	t.Helper()
	w := &world{t: t, log: &watchedLog{t: t, allowed: map[string]bool{"backing store failed": true}}}
	w.fabric = fake.New(t, o.fabric)
	device := fake.DeviceOptions{Name: "rxe0", Addr: portalAddr.Addr(), Rate: o.rate}
	if o.caps != nil {
		device.Caps = o.caps.Caps
	}
	devices := []fake.DeviceOptions{device}
	if o.beside != nil {
		devices = append(devices, *o.beside)
	}
	w.server = w.fabric.Host("target", false, devices...)
	w.client = w.fabric.Host("initiator", true, fake.DeviceOptions{Name: "rxe1", Addr: netip.MustParseAddr("10.0.0.2")})
	w.start(o)
	t.Cleanup(w.stop)
	return w
}

func (w *world) start(o options) {
	w.t.Helper()
	config := o.server
	config.Logger, config.Offer, config.Buffers = slog.New(w.log), login.DefaultOffer(), 16<<20
	config.Threads = cmp.Or(o.threads, 2)
	s, err := target.NewServer(config)
	w.check(err)
	w.Server = s
	if o.store == nil {
		o.store, err = memstore.New(memstore.Config{Size: targettest.VolumeSize, Async: true})
		w.check(err)
	}
	lu := scsi.LUConfig{Name: "v", Store: o.store, BlockSize: max(o.blockSize, 512), Serial: "1", Logger: config.Logger}
	w.lu, err = scsi.NewLogicalUnit(lu)
	w.check(err)
	s.AddLogicalUnit(w.lu, 2)
	rules := []target.AccessRule{{Auth: login.Auth{AllowNone: true}, LUNs: []target.LUNMapping{{LUN: 0, LU: w.lu}}}}
	_, err = s.AddTarget(target.TargetConfig{Name: testTarget, PortalGroups: []uint16{1}, Access: rules})
	w.check(err)
	if o.immediate == 0 {
		o.immediate = iser.MaxImmediate
	}
	var regions []iser.Region
	for _, l := range s.Loops() {
		regions = append(regions, iser.Region{Name: "buffers", Mem: l.Pool().Memory(), Into: true})
	}
	w.transport, err = iser.Open(iser.Config{
		Provider: w.server, Logger: config.Logger, Regions: regions, QueueDepth: s.QueueDepth,
		Immediate: max(o.immediate, 0), Invalidate: !o.noInv, Loops: s.LoopsFor,
	})
	w.check(err)
	w.tcp, err = tcp.Open(tcp.Config{Loops: s.Loops(), Logger: config.Logger})
	w.check(err)
	s.OnStop(w.tcp.Close)
	s.OnStop(func() {
		if err := w.transport.Close(); err != nil {
			w.t.Errorf("close: %v", err)
		}
	})
	w.check(s.Listen(target.PortalGroup{Tag: 1, Portals: []target.Portal{w.tcp.Portal("127.0.0.1:0"), w.transport.Portal(portalAddr, 1)}}))
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := w.Shutdown(ctx); err != nil {
		w.t.Errorf("shutdown: %v", err)
	}
}

// dial logs in over RDMA; the session ends with the test.
func (w *world) dial(t testing.TB, o initiator.Options, wo isertest.Options) (*initiator.Conn, *isertest.Wire) {
	t.Helper()
	o.Target, wo.Portal = testTarget, portalAddr
	wire, err := isertest.Dial(w.client, wo)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { wire.Close() })
	c := initiator.NewConn(wire)
	if err := c.Login(o); err != nil {
		t.Fatalf("login: %v", err)
	}
	return c, wire
}

// overTCP logs in over TCP.
func (w *world) overTCP(t testing.TB, o initiator.Options) *initiator.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	o.Target = testTarget
	c, err := initiator.Dial(ctx, w.Addrs(1)[0].String(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestConformance: what every transport has to pass, with the RDMA Reads that fetch the
// data of writes shown to the initiator as R2Ts.
func TestConformance(t *testing.T) {
	for _, v := range []struct {
		name      string
		blockSize int
		open      func() (backstore.Store, error)
		wire      isertest.Options
		options   options
	}{
		{"file", 512, func() (backstore.Store, error) {
			return backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(t.TempDir(), "volume"), Size: targettest.VolumeSize})
		}, isertest.Options{Invalidate: true}, options{}},
		{"ram, without immediate data, one read at a time", 4096, func() (backstore.Store, error) {
			return backstore.NewRAM(targettest.VolumeSize, 4096)
		}, isertest.Options{Depth: 1}, options{immediate: -1}},
		{"memstore, invalidation off", 512, func() (backstore.Store, error) {
			return memstore.New(memstore.Config{Size: targettest.VolumeSize, Async: true})
		}, isertest.Options{Invalidate: true}, options{noInv: true}},
	} {
		t.Run(v.name, func(t *testing.T) {
			store, err := v.open()
			if err != nil {
				t.Fatal(err)
			}
			v.options.store, v.options.blockSize = store, v.blockSize
			w := newWorld(t, v.options)
			assisted := &targettest.Assisted{Immediate: iser.MaxImmediate, Control: 128, Reads: cmp.Or(v.wire.Depth, 16)}
			if v.options.immediate < 0 {
				assisted.Immediate = 0
			}
			targettest.Run(t, targettest.Subject{BlockSize: v.blockSize, Assisted: assisted, Login: func(t *testing.T, o initiator.Options) *initiator.Conn {
				c, _ := w.dial(t, o, v.wire)
				return c
			}})
			eventually.Finds(t, "connections", 0, w.connections)
		})
	}
}
