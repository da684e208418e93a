package target_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/internal/freeport"
	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
)

const testTarget = "iqn.2026-11.lunar:test"

// rig is a server on loopback with one RAM volume.
type rig struct {
	stop   func() // shuts the server down
	t      testing.TB
	server *target.Server
	lu     *scsi.LogicalUnit
	addr   string
}

// rigOptions changes what newRig builds.
type rigOptions struct {
	config       target.Config
	store        backstore.Store
	stores       []backstore.Store // of the first units, in place of store
	device       string            // of all units; empty: each has its own
	lus          int
	listen       string // empty: 127.0.0.1:0
	group        int    // event threads of each unit
	offer        func(*login.Offer)
	sanitizeRate int64
	rules        func([]*scsi.LogicalUnit) []target.AccessRule
}

// loopback is an address that a server may have, and later all addresses of its port.
func loopback(t testing.TB) (hostPort, port string) {
	t.Helper()
	hostPort, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(hostPort)
	return hostPort, port
}

func newRig(t testing.TB, o rigOptions) *rig {
	t.Helper()
	if o.config.Logger == nil {
		o.config.Logger = testLogger(t)
	}
	if o.config.Threads == 0 {
		o.config.Threads = 2
	}
	o.config.Offer = login.DefaultOffer()
	if o.offer != nil {
		o.offer(&o.config.Offer)
	}
	s, err := target.NewServer(o.config)
	if err != nil {
		t.Fatal(err)
	}
	var lus []*scsi.LogicalUnit
	var luns []target.LUNMapping
	for i := range max(o.lus, 1) {
		store := o.store
		if i < len(o.stores) {
			store = o.stores[i]
		}
		if store == nil {
			if store, err = backstore.NewRAM(16<<20, 512); err != nil {
				t.Fatal(err)
			}
		}
		lu, err := scsi.NewLogicalUnit(scsi.LUConfig{Name: "v" + string(rune('0'+i)), Store: store, Device: o.device, BlockSize: 512, SanitizeRate: o.sanitizeRate, Logger: o.config.Logger})
		if err != nil {
			t.Fatal(err)
		}
		s.AddLogicalUnit(lu, o.group)
		lus = append(lus, lu)
		luns = append(luns, target.LUNMapping{LUN: uint16(i), LU: lu})
	}
	rules := []target.AccessRule{{Auth: login.Auth{AllowNone: true}, LUNs: luns}}
	if o.rules != nil {
		rules = o.rules(lus)
	}
	if _, err := s.AddTarget(target.TargetConfig{Name: testTarget, PortalGroups: []uint16{1}, Access: rules}); err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(target.PortalGroup{Tag: 1, Portals: portals(t, s, cmp.Or(o.listen, "127.0.0.1:0"))}); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, server: s, lu: lus[0], addr: s.Addrs(1)[0].String()}
	r.stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func testLogger(t testing.TB) *slog.Logger {
	if testing.Verbose() {
		return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

// login logs an initiator in and takes the unit attentions of a new nexus.
func (r *rig) login(o initiator.Options) *initiator.Conn {
	r.t.Helper()
	if o.Target == "" {
		o.Target = testTarget
	}
	c := r.dial(o)
	if err := c.Ready(0); err != nil {
		r.t.Fatalf("unit not ready: %v", err)
	}
	return c
}

func (r *rig) dial(o initiator.Options) *initiator.Conn {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := initiator.Dial(ctx, r.addr, o)
	if err != nil {
		r.t.Fatalf("login: %v", err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

func cdbRead16(lba uint64, blocks uint32) []byte {
	cdb := make([]byte, 16)
	cdb[0] = 0x88
	binary.BigEndian.PutUint64(cdb[2:], lba)
	binary.BigEndian.PutUint32(cdb[10:], blocks)
	return cdb
}

func cdbWrite16(lba uint64, blocks uint32) []byte {
	cdb := cdbRead16(lba, blocks)
	cdb[0] = 0x8a
	return cdb
}

// pattern is n bytes that differ by position and seed.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) ^ byte(i>>8) ^ seed
	}
	return b
}

func mustGood(t testing.TB, r *initiator.Result, err error) *initiator.Result {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != 0 {
		t.Fatalf("status %#x sense %x", r.Status, r.Sense)
	}
	return r
}

func TestWriteAndReadBack(t *testing.T) {
	for _, digest := range []string{"None", "CRC32C"} {
		t.Run(digest, func(t *testing.T) {
			r := newRig(t, rigOptions{})
			c := r.login(initiator.Options{HeaderDigest: digest, DataDigest: digest})
			for _, size := range []int{512, 4096, 65536, 256 << 10, 1 << 20, 3<<20 + 512} {
				data := pattern(size, byte(size>>9))
				res, err := c.Command(cdbWrite16(8, uint32(size/512)), 0, data, 0)
				mustGood(t, res, err)
				res, err = c.Command(cdbRead16(8, uint32(size/512)), 0, nil, size)
				if got := mustGood(t, res, err).In; !bytes.Equal(got, data) {
					t.Fatalf("%d bytes: read back other data", size)
				}
			}
			if _, err := c.Logout(0); err != nil {
				t.Fatal(err)
			}
		})
	}
}
