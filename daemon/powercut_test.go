package daemon

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lunar/backstore/backstoretest"
	"lunar/backstore/memstore"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/daemon/volumes"
	"lunar/internal/initiator"
	"lunar/internal/numa"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
	"lunar/target/tcp"
)

// cutBlocks is the size of a volume under power cuts.
const cutBlocks = 515

// fragile is a logical unit behind the cache whose medium loses what is volatile
// when the power goes.
type fragile struct {
	medium *memstore.Store
	ledger *backstoretest.Ledger
	policy conf.WritePolicy
	mode   struct {
		sync.RWMutex
		through bool // WCE is zero
	}
}

// fragiles is a server with a unit for each write policy and admission.
type fragiles struct {
	units  []*fragile
	names  []string
	server *target.Server
	portal string
}

func serveFragile(t *testing.T) *fragiles {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	real, err := numa.Discover(log)
	if err != nil {
		t.Fatal(err)
	}
	topology, err := numa.Override(real, 2)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := tier.Open(tier.Options{Topology: topology, PerNode: 256 << 10, BlockSize: 8 << 10, Volumes: 6, ForwardThreshold: 4096, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	f := &fragiles{}
	f.server, err = target.NewServer(target.Config{
		Logger: log, Topology: topology, Threads: 2, Buffers: 8 << 20, Offer: login.DefaultOffer(), NOPInterval: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := f.server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := cache.Close(); err != nil {
			t.Error(err)
		}
	})
	cache.Serve(f.server.Loops()...)
	f.addUnits(t, cache)
	f.listen(t)
	return f
}

func (f *fragiles) addUnits(t *testing.T, cache *tier.Cache) {
	t.Helper()
	rule := target.AccessRule{Auth: login.Auth{AllowNone: true}}
	for _, policy := range []conf.WritePolicy{conf.WriteThrough, conf.WriteBack, conf.WriteSync} {
		for _, admission := range []string{"lru", "fussy"} {
			name := fmt.Sprintf("%v/%s", policy, admission)
			u := &fragile{ledger: backstoretest.NewLedger(cutBlocks), policy: policy}
			var err error
			if u.medium, err = memstore.New(memstore.Config{Size: cutBlocks * block, Async: len(f.units)%2 == 0}); err != nil {
				t.Fatal(err)
			}
			store, err := cache.Wrap(u.medium, tier.VolumeConfig{
				ID: uint64(len(f.units) + 1), Name: name, Policy: volumes.CachePolicy(policy), Admission: admission, Age: 200 * time.Microsecond, DirtyLimit: 64 << 10,
			})
			if err != nil {
				t.Fatal(err)
			}
			lu, err := scsi.NewLogicalUnit(scsi.LUConfig{Name: name, Store: store, WriteThrough: policy == conf.WriteSync, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			f.server.AddLogicalUnit(lu, 2)
			rule.LUNs = append(rule.LUNs, target.LUNMapping{LUN: uint16(len(f.units)), LU: lu})
			f.units, f.names = append(f.units, u), append(f.names, name)
		}
	}
	if _, err := f.server.AddTarget(target.TargetConfig{Name: scriptTarget, Access: []target.AccessRule{rule}, PortalGroups: []uint16{1}}); err != nil {
		t.Fatal(err)
	}
}

func (f *fragiles) listen(t *testing.T) {
	t.Helper()
	transport, err := tcp.Open(tcp.Config{Loops: f.server.Loops()})
	if err != nil {
		t.Fatal(err)
	}
	f.server.OnStop(transport.Close)
	if err := f.server.Listen(target.PortalGroup{Tag: 1, Portals: []target.Portal{transport.Portal(net.JoinHostPort("127.0.0.1", "0"))}}); err != nil {
		t.Fatal(err)
	}
	f.portal = f.server.Addrs(1)[0].String()
}

// host is an initiator of one unit. It uses every run of blocks in stride.
type host struct {
	*fragile
	session            *initiator.Conn
	lun                uint64
	random             *rand.Rand
	first, run, stride int
}

// draw returns some of the host's blocks.
func (h *host) draw(most int) (lba, n int) {
	start := h.first + h.stride*h.random.IntN((cutBlocks-h.first+h.stride-1)/h.stride)
	end := min(start+h.run, cutBlocks)
	lba = start + h.random.IntN(end-start)
	return lba, 1 + h.random.IntN(min(end-lba, most))
}

// do runs a command, which has to end well; again if it was only told that another
// host has changed the mode.
func (h *host) do(cdb, out []byte, in int) ([]byte, error) {
	for {
		r, err := h.session.Command(cdb, h.lun, out, in)
		if err != nil {
			return nil, err
		}
		const unitAttention = 6
		if key, _, _ := r.SenseKey(); r.Status == initiator.StatusCheckCondition && key == unitAttention {
			continue
		}
		if r.Status != initiator.StatusGood {
			return nil, fmt.Errorf("CDB % x: status %#x, sense % x", cdb, r.Status, r.Sense)
		}
		return r.In, nil
	}
}

// deeds are what hosts do, each as often as it is to be chosen.
var deeds = slices.Concat(
	slices.Repeat([]func(*host) error{(*host).write}, 6), slices.Repeat([]func(*host) error{(*host).read}, 3),
	[]func(*host) error{(*host).compareAndWrite, (*host).unmap, (*host).writeZeroes, (*host).synchronize, (*host).synchronize, (*host).setMode},
)

// step does something.
func (h *host) step() error {
	deed := deeds[h.random.IntN(len(deeds))]
	h.mode.RLock()
	defer h.mode.RUnlock()
	return deed(h)
}

// stable reports whether a write with the given FUA bit is stable at its end.
func (h *host) stable(fua byte) bool { return fua != 0 || h.mode.through || h.policy == conf.WriteSync }

// fua returns the FUA bit, set at times.
func (h *host) fua() byte { return []byte{0, 0, 0x08}[h.random.IntN(3)] }

func (h *host) write() error {
	lba, n := h.draw(60)
	fua, out := h.fua(), make([]byte, n*block)
	h.ledger.Write(out, lba)
	_, err := h.do(cdb([]byte{0x2a, 0x8a}[n%2], fua, lba, n), out, 0)
	if err == nil {
		h.ledger.Acknowledged(lba, n, h.stable(fua))
	}
	return err
}

func (h *host) read() error {
	lba, n := h.draw(60)
	_, err := h.readAt(lba, n)
	return err
}

func (h *host) readAt(lba, n int) ([]byte, error) {
	in, err := h.do(cdb(0x28, 0, lba, n), nil, n*block)
	if err == nil {
		err = h.ledger.Read(in, lba)
	}
	return in, err
}

func (h *host) compareAndWrite() error {
	lba, n := h.draw(16)
	out, err := h.readAt(lba, n)
	if err != nil {
		return err
	}
	out = append(out, make([]byte, n*block)...)
	h.ledger.Write(out[n*block:], lba)
	fua := h.fua()
	c := cdb(0x89, fua, lba, 0)
	c[13] = byte(n)
	if _, err = h.do(c, out, 0); err == nil {
		h.ledger.Acknowledged(lba, n, h.stable(fua))
	}
	return err
}

func (h *host) unmap() error {
	lba, n := h.draw(60)
	h.ledger.Zero(lba, n)
	list := []byte{0, 22, 0, 16, 0, 0, 0, 0}
	list = binary.BigEndian.AppendUint64(list, uint64(lba))
	list = binary.BigEndian.AppendUint32(list, uint32(n))
	list = append(list, 0, 0, 0, 0)
	_, err := h.do([]byte{0x42, 0, 0, 0, 0, 0, 0, 0, byte(len(list)), 0}, list, 0)
	if err == nil {
		h.ledger.Acknowledged(lba, n, h.stable(0))
	}
	return err
}

func (h *host) writeZeroes() error {
	lba, n := h.draw(60)
	h.ledger.Zero(lba, n)
	_, err := h.do(cdb([]byte{0x41, 0x93}[n%2], 0, lba, n), make([]byte, block), 0)
	if err == nil {
		h.ledger.Acknowledged(lba, n, h.stable(0))
	}
	return err
}

// synchronize flushes a range of the host's, or all that there is.
func (h *host) synchronize() error {
	if lba, n := h.draw(60); h.random.IntN(2) == 0 {
		_, err := h.do(cdb([]byte{0x35, 0x91}[n%2], 0, lba, n), nil, 0)
		if err == nil {
			h.ledger.Flushed(lba, n)
		}
		return err
	}
	_, err := h.do(cdb(0x35, 0, 0, 0), nil, 0)
	for lba := h.first; err == nil && lba < cutBlocks; lba += h.stride {
		h.ledger.Flushed(lba, min(h.run, cutBlocks-lba))
	}
	return err
}

// setMode turns WCE, where it may be turned. That it becomes zero makes all that
// was written stable.
func (h *host) setMode() error {
	if h.policy == conf.WriteSync {
		return nil
	}
	h.mode.RUnlock()
	defer h.mode.RLock()
	h.mode.Lock()
	defer h.mode.Unlock()
	const wce = 0x04
	list, err := h.do([]byte{0x1a, 0x08, 0x08, 0, 255, 0}, nil, 255)
	if err != nil {
		return err
	}
	list[0], list[2], list[4] = 0, 0, list[4]&0x7f // reserved in MODE SELECT
	list[6] ^= wce
	if _, err = h.do([]byte{0x15, 0x10, 0, 0, byte(len(list)), 0}, list, 0); err != nil {
		return err
	}
	if h.mode.through = list[6]&wce == 0; h.mode.through {
		h.ledger.Flushed(0, cutBlocks)
	}
	return nil
}

// hosts logs initiators in to a unit; their runs of blocks lie between each
// other's.
func (f *fragiles) hosts(t *testing.T, lun int) (all []*host) {
	t.Helper()
	const run = 13
	for n := range initiators {
		c := dial(t, f.portal, initiator.Options{Target: scriptTarget, Initiator: fmt.Sprintf("iqn.2026-11.example.lunar:cut%d.%d", lun, n)})
		settle(t, c, uint64(lun))
		all = append(all, &host{
			fragile: f.units[lun], session: c, lun: uint64(lun), random: rand.New(rand.NewPCG(*seed, uint64(lun*initiators+n))),
			first: n * run, run: run, stride: initiators * run,
		})
	}
	return all
}

// TestPowerCut: what an initiator was told is stable (by the end of a command
// with FUA, of SYNCHRONIZE CACHE, of any write while WCE is zero, of the MODE
// SELECT that made it so) is on the medium when the power goes; and every block
// holds what it was given then or since.
func TestPowerCut(t *testing.T) {
	t.Logf("-seed %d", *seed)
	f := serveFragile(t)
	var working atomic.Int32
	var group sync.WaitGroup
	for lun := range f.units {
		for _, h := range f.hosts(t, lun) {
			working.Add(1)
			group.Go(func() {
				defer working.Add(-1)
				for range 100 * *effort {
					if err := h.step(); err != nil {
						t.Errorf("%s: %v", f.names[lun], err)
						return
					}
				}
			})
		}
	}
	random := rand.New(rand.NewPCG(*seed, 99))
	for working.Load() > 0 && !t.Failed() {
		lun := random.IntN(len(f.units))
		u := f.units[lun]
		if err := u.ledger.Cut(func() []byte { return u.medium.CrashClone(random.Uint64()).Bytes() }); err != nil {
			t.Errorf("%s: %v", f.names[lun], err)
		}
	}
	group.Wait()
}
