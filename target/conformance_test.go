package target_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/memstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
	"lunar/target/targettest"
)

// served is a server with one portal group, reached over memory as well as TCP.
type served struct {
	*target.Server
	addr string
	lu   *scsi.LogicalUnit
}

// serve makes a server of a store that ends with the test. Whatever it logs as
// an error, such as buffers that are in use at the end, fails the test.
func serve(t testing.TB, store backstore.Store, blockSize int, config target.Config) *served {
	t.Helper()
	s := newServed(t, scsi.LUConfig{Name: "v", Store: store, BlockSize: blockSize, Serial: "1"}, config)
	t.Cleanup(func() { s.stop(t) })
	return s
}

func newServed(t testing.TB, lun scsi.LUConfig, config target.Config) *served {
	t.Helper()
	config.Logger = slog.New(&strictLog{Handler: testLogger(t).Handler(), t: t})
	lun.Logger = config.Logger
	config.Offer = login.DefaultOffer()
	if config.Threads == 0 {
		config.Threads = 2
	}
	if config.Buffers == 0 {
		config.Buffers = 16 << 20
	}
	s, err := target.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	lu, err := scsi.NewLogicalUnit(lun)
	if err != nil {
		t.Fatal(err)
	}
	s.AddLogicalUnit(lu, 2) // sessions on both threads
	rules := []target.AccessRule{{Auth: login.Auth{AllowNone: true}, LUNs: []target.LUNMapping{{LUN: 0, LU: lu}}}}
	if _, err := s.AddTarget(target.TargetConfig{Name: testTarget, PortalGroups: []uint16{1}, Access: rules}); err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(target.PortalGroup{Tag: 1, Portals: portals(t, s, "127.0.0.1:0")}); err != nil {
		t.Fatal(err)
	}
	return &served{s, s.Addrs(1)[0].String(), lu}
}

func (s *served) stop(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// strictLog makes records of level Error failures of the test, but for
// those that the tests provoke.
type strictLog struct {
	slog.Handler
	t testing.TB
}

// Handle implements slog.Handler.
func (h *strictLog) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError && r.Message != "backing store failed" {
		h.t.Errorf("%s", r.Message)
		r.Attrs(func(a slog.Attr) bool { h.t.Log(a); return true })
	}
	return h.Handler.Handle(ctx, r)
}

// Enabled implements slog.Handler.
func (h *strictLog) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelError || h.Handler.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler.
func (h *strictLog) WithAttrs(a []slog.Attr) slog.Handler {
	return &strictLog{h.Handler.WithAttrs(a), h.t}
}

// WithGroup implements slog.Handler.
func (h *strictLog) WithGroup(name string) slog.Handler {
	return &strictLog{h.Handler.WithGroup(name), h.t}
}

// dialer connects an initiator, not logged in yet.
type dialer func(t testing.TB, s *served, o initiator.Options) (*initiator.Conn, error)

func overTCP(t testing.TB, s *served, o initiator.Options) (*initiator.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return initiator.Dial(ctx, s.addr, o)
}

func overTCPWithDigests(t testing.TB, s *served, o initiator.Options) (*initiator.Conn, error) {
	o.HeaderDigest, o.DataDigest = "CRC32C", "CRC32C"
	return overTCP(t, s, o)
}

func overMemory(w targettest.Wire) dialer {
	return func(t testing.TB, s *served, o initiator.Options) (*initiator.Conn, error) {
		c := initiator.NewConn(targettest.Dial(s.Server, 1, w))
		return c, c.Login(o)
	}
}

// connect logs in; the session ends with the test.
func (s *served) connect(t testing.TB, dial dialer, o initiator.Options) *initiator.Conn {
	t.Helper()
	o.Target = testTarget
	c, err := dial(t, s, o)
	if err != nil {
		t.Fatalf("login: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// transport is a way to a server.
type transport struct {
	name string
	dial dialer
}

var (
	memory   = transport{"memory", overMemory(targettest.Wire{})}
	pieces   = transport{"memory in pieces", overMemory(targettest.Wire{Piece: 5000, Window: 20 << 10})}
	sockets  = transport{"TCP", overTCP}
	digested = transport{"TCP with digests", overTCPWithDigests}
)

// volumes are the kinds of store, and the transports to reach them by: every
// one of both with several of the other.
var volumes = []struct {
	name       string
	blockSize  int
	open       func(t testing.TB) (backstore.Store, error)
	transports []transport
}{
	{"file", 512, func(t testing.TB) (backstore.Store, error) {
		return backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(t.TempDir(), "volume"), Size: targettest.VolumeSize})
	}, []transport{memory, digested}},
	{"ram", 4096, func(testing.TB) (backstore.Store, error) {
		return backstore.NewRAM(targettest.VolumeSize, 4096)
	}, []transport{pieces, sockets}},
	{"memstore", 512, func(testing.TB) (backstore.Store, error) {
		return memstore.New(memstore.Config{Size: targettest.VolumeSize, Async: true})
	}, []transport{pieces, digested}},
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, v := range volumes {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			store, err := v.open(t)
			if err != nil {
				t.Fatal(err)
			}
			s := serve(t, store, v.blockSize, target.Config{})
			for _, tr := range v.transports {
				t.Run(tr.name, func(t *testing.T) {
					targettest.Run(t, targettest.Subject{BlockSize: v.blockSize, Login: func(t *testing.T, o initiator.Options) *initiator.Conn {
						return s.connect(t, tr.dial, o)
					}})
				})
			}
			s.expectNothingHeld(t)
		})
	}
}

// expectNothingHeld checks that sessions that have ended left nothing behind.
func (s *served) expectNothingHeld(t testing.TB) {
	t.Helper()
	eventually.Finds(t, "what the server holds", target.Holding{}, s.Holding)
}
