package windows

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"lunar/backstore"
	"lunar/internal/arena"
	"lunar/internal/evloop"
	"lunar/scheduler/plm"
)

// Member is a store that a Mirror keeps its data on.
type Member struct {
	Name string                          // for people
	Open func() (backstore.Store, error) // at the start, and when it comes back
	Size func() (int64, error)           // that it has now, in bytes; nil: what the store says
}

// MirrorConfig describes a Mirror.
type MirrorConfig struct {
	Name    string // of the volume, for logs
	Members [2]Member
	Map     backstore.Store // of MapSize bytes; the Mirror owns it
	// Identity is that of the map; zero: that which it has. An empty map gets one.
	Identity [16]byte
	Size     int64         // of the volume, in bytes; 0: that of the smaller member
	Held     int64         // bytes of memory for what a member gets later
	Window   time.Duration // for how long a member takes writes until the other one does
	Logger   *slog.Logger  // nil is slog.Default
}

// mode says what becomes of writes.
type mode uint8

const (
	paired mode = iota // the leader gets them, and the other member later
	behind             // both get them, but for regions that the other one lacks
	alone              // the leader gets them, and the map notes where
)

// view is what event threads know of a Mirror.
type view struct {
	reader  int  // member that reads go to
	overlay bool // but for what is held
}

// Mirror keeps data on two members, of which one serves reads while the other one takes
// writes. It implements backstore.Store.
type Mirror struct {
	front
	config MirrorConfig
	log    *slog.Logger
	slots  [2]*backstore.Slot
	disks  [2]*disk
	memory *scratch
	view   atomic.Pointer[view]
	claims claims

	// gate is held shared by operations, and alone by who changes what follows.
	gate   sync.RWMutex
	leader int
	mode   mode
	shift  int     // logarithm of a region's size in bytes
	recent regions // written since the roles were exchanged last
	// undropped is why the leader was to be dropped, which the map could not note.
	undropped error

	stale struct { // regions that the other member lacks: reads and writes go to the leader
		sync.Mutex
		regions
	}
	held held
	map_ struct { // the map, and who waits for it
		sync.Mutex
		chart chart
		note  note // as it is stable
		doubt bool // a write has failed: the map may say what that one was to
	}
	windows struct {
		sync.Mutex
		pair *plm.Pair
	}
	counts    mirrorCounts
	trouble   atomic.Pointer[string]            // of the map
	missing   atomic.Pointer[string]            // the member that was dropped; nil: none
	unread    atomic.Pointer[backstore.Trouble] // of a leader whose data cannot be copied; nil: none
	failed    atomic.Pointer[error]             // of the other member: it is to be dropped
	again     atomic.Bool                       // copying is to be tried at once
	differing differences
	joining   sync.Mutex // held by who opens or closes a member
	scrubbing sync.Mutex // held by who compares members, and for good after Close
	closing   bool       // under gate

	wake, quit chan struct{}
	background sync.WaitGroup
	ending     sync.Once
	endError   error
}

// OpenMirror opens members and map. A member that does not open is dropped, unless the
// other one lacks data of it, or the mirror is new: then the error says so.
func OpenMirror(c MirrorConfig) (*Mirror, error) {
	m := &Mirror{config: c, log: c.Logger, wake: make(chan struct{}, 1), quit: make(chan struct{})}
	if m.log == nil {
		m.log = slog.Default()
	}
	m.log = m.log.With("volume", c.Name)
	if err := m.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("mirror: %w", err), m.closeStores())
	}
	m.background.Go(m.run)
	return m, nil
}

func (m *Mirror) open() (err error) {
	var opened [2]error
	for i, member := range m.config.Members {
		store, err := member.Open()
		if opened[i] = err; err != nil {
			store = &absent{err: err}
		}
		m.slots[i] = backstore.NewSlot(store)
		m.below = append(m.below, m.slots[i])
	}
	if opened[0] != nil && opened[1] != nil {
		return errors.Join(opened[0], opened[1])
	}
	if m.engine, err = newEngine("mirror"); err != nil {
		return err
	}
	for i, slot := range m.slots {
		if m.disks[i], err = newDisk(slot, m.engine); err != nil {
			return err
		}
	}
	if m.memory, err = newScratch(together, chunk); err == nil {
		m.map_.chart.page = m.memory.take()[:slotSize]
		m.map_.chart.disk, err = newDisk(m.config.Map, m.engine)
	}
	if err == nil {
		err = m.held.open(m.config.Held)
	}
	if err == nil {
		err = m.begin(opened)
	}
	if err != nil {
		return err
	}
	window := int64(m.config.Window)
	m.windows.pair = plm.NewPair(plm.Config{Window: 4 * window, ShortND: window, LongND: window}, evloop.Monotonic())
	m.hand(m.leader)
	m.front.inline, m.front.direct, m.front.do = m.inline, m.direct, m.perform
	m.look()
	return nil
}

// describe sets what the store says of itself, which is what both members can do.
func (m *Mirror) describe(present [2]bool) {
	info := backstore.Info{BlockSize: 1, Discard: true, DiscardZeroes: true, Thin: true, Describe: "mirror of " + m.config.Members[0].Name + " and " + m.config.Members[1].Name}
	for i, slot := range m.slots {
		if !present[i] {
			continue
		}
		one := slot.Info()
		if info.Size == 0 || one.Size < info.Size {
			info.Size = one.Size
		}
		info.BlockSize = max(info.BlockSize, one.BlockSize)
		info.PhysicalBlock = max(info.PhysicalBlock, one.PhysicalBlock)
		info.DiscardGran = max(info.DiscardGran, one.DiscardGran)
		info.Discard = info.Discard && one.Discard && one.DiscardZeroes
		info.VolatileCache = info.VolatileCache || one.VolatileCache
		info.ReadOnly = info.ReadOnly || one.ReadOnly
		info.Rotational = info.Rotational || one.Rotational
		info.Thin = info.Thin && one.Thin
	}
	if !info.Discard {
		info.DiscardGran, info.DiscardZeroes = 0, false
	}
	m.info.Store(&info)
}

// Close gives the other member what is held for it, flushes both and closes all.
func (m *Mirror) Close() error {
	m.ending.Do(func() { m.endError = m.end() })
	return m.endError
}

func (m *Mirror) end() error {
	close(m.quit)
	m.background.Wait()
	m.scrubbing.Lock()
	m.joining.Lock()
	defer m.joining.Unlock()
	m.gate.Lock()
	m.closing = true
	err := m.settle()
	m.gate.Unlock()
	return errors.Join(err, m.closeStores())
}

func (m *Mirror) closeStores() (err error) {
	for _, d := range []*disk{m.disks[0], m.disks[1], m.map_.chart.disk} {
		if d != nil {
			d.close()
		}
	}
	if m.engine != nil {
		m.engine.close()
	}
	for _, s := range m.slots {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	err = errors.Join(err, m.config.Map.Close(), m.held.close())
	if m.memory != nil {
		err = errors.Join(err, m.memory.close())
	}
	return err
}

// Identity is that of the map.
func (m *Mirror) Identity() [16]byte {
	m.gate.RLock() // who has it alone writes notes
	defer m.gate.RUnlock()
	m.map_.Lock()
	defer m.map_.Unlock()
	return m.map_.note.identity
}

// other is the member that does not lead.
func (m *Mirror) other() int { return 1 - m.leader }

// look tells event threads where reads go. The caller holds the gate alone.
func (m *Mirror) look() {
	v := view{reader: m.leader}
	if m.mode == paired {
		v = view{m.other(), true}
	}
	m.view.Store(&v)
	m.missing.Store(nil)
	if m.mode == alone {
		m.missing.Store(&m.config.Members[m.other()].Name)
	}
}

// regionsOf returns the first and the last region of a range. The caller holds the gate.
func (m *Mirror) regionsOf(off, n int64) (first, last int64) {
	return off >> m.shift, (off + n - 1) >> m.shift
}

// absent stands for a member that is not there.
type absent struct{ err error }

// Info implements backstore.Store.
func (a *absent) Info() backstore.Info { return backstore.Info{Describe: "a member that is missing"} }

// Lane implements backstore.Store.
func (a *absent) Lane(*evloop.Loop) (backstore.Lane, error) { return absentLane{a.err}, nil }

// Close implements backstore.Store.
func (a *absent) Close() error { return nil }

type absentLane struct{ err error }

// TryNow implements backstore.Lane.
func (a absentLane) TryNow(op *backstore.Op) bool {
	op.Err = fmt.Errorf("%w: %w", backstore.ErrGone, a.err)
	return true
}

// Submit implements backstore.Lane.
func (a absentLane) Submit(op *backstore.Op) bool { return a.TryNow(op) }

// Close implements backstore.Lane.
func (a absentLane) Close() {}

// held is what the member that serves reads gets later: extents whose bytes are in memory.
type held struct {
	sync.RWMutex
	memory *arena.Arena
	used   int64
	extents
}

// heldExtents bounds the extents that are held.
const heldExtents = 1 << 16

func (h *held) open(size int64) (err error) {
	h.memory, err = arena.Open(arena.Options{Bytes: size, Node: -1, Threads: 1})
	return err
}

func (h *held) close() error {
	if h.memory == nil {
		return nil
	}
	return h.memory.Close()
}
