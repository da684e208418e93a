package iser

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"lunar/internal/arena"
	"lunar/internal/bytesize"
	"lunar/iser/verbs"
)

// Region is memory that data move from and to.
type Region struct {
	Name string // for errors
	Mem  []byte // mapped as long as the Transport is open
	Into bool   // RDMA Reads and receives may fill it; else it is only sent from
}

// region is a Region that is registered with a device.
type region struct {
	from, to uint64 // addresses
	lkey     uint32
	mr       verbs.MR
}

// memory is what a device may use: the regions of the start, which never change,
// and blocks of connections.
type memory struct {
	pd      verbs.PD
	regions []region // by address
	bytes   atomic.Int64

	mu struct {
		sync.Mutex
		free map[blockKind][]*block
	}
}

// blockKind is what blocks are kept apart by.
type blockKind struct{ size, node int }

// block is registered memory of one connection, for messages.
type block struct {
	kind blockKind
	mem  []byte
	addr uint64
	lkey uint32
	mr   verbs.MR
}

// openMemory registers the regions with a device.
func openMemory(d verbs.Device, regions []Region) (*memory, error) {
	pd, err := d.AllocPD()
	if err != nil {
		return nil, fmt.Errorf("RDMA device %s: %w", d.Name(), err)
	}
	m := &memory{pd: pd}
	m.mu.free = map[blockKind][]*block{}
	for _, r := range regions {
		mr, err := m.register(r.Mem, r.Into)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("RDMA device %s: register %s of %s: %w", d.Name(), bytesize.Text(int64(len(r.Mem))), r.Name, err), m.close())
		}
		from := verbs.Addr(r.Mem)
		m.regions = append(m.regions, region{from: from, to: from + uint64(len(r.Mem)), lkey: mr.LKey(), mr: mr})
	}
	slices.SortFunc(m.regions, func(a, b region) int { return cmp.Compare(a.from, b.from) })
	return m, nil
}

// register pins memory. No peer may ever use it by itself: no region has a remote access
// right, and no key of one leaves this machine.
func (m *memory) register(mem []byte, into bool) (verbs.MR, error) {
	access := verbs.AccessRelaxedOrdering
	if into {
		access |= verbs.AccessLocalWrite
	}
	mr, err := m.pd.Register(mem, access)
	if err == nil {
		m.bytes.Add(int64(len(mem)))
	}
	return mr, err
}

// sge names memory for the device; false if it is not registered.
func (m *memory) sge(b []byte) (verbs.SGE, bool) {
	from := verbs.Addr(b)
	for i := range m.regions {
		if r := &m.regions[i]; r.from <= from && from+uint64(len(b)) <= r.to {
			return verbs.SGE{Addr: from, Len: uint32(len(b)), LKey: r.lkey}, true
		}
	}
	return verbs.SGE{}, false
}

// take returns a block of whole pages of a NUMA node, -1 for any: one that another
// connection has given back, or a new one.
func (m *memory) take(size, node int) (*block, error) {
	kind := blockKind{(size + 4095) &^ 4095, node}
	m.mu.Lock()
	if free := m.mu.free[kind]; len(free) > 0 {
		b := free[len(free)-1]
		m.mu.free[kind] = free[:len(free)-1]
		m.mu.Unlock()
		return b, nil
	}
	m.mu.Unlock()
	mem, err := arena.Map(kind.size, node)
	if err != nil {
		return nil, err
	}
	clear(mem) // before it is pinned, so that the pages are of the node
	mr, err := m.register(mem, true)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("register %d bytes for messages: %w", kind.size, err), unix.Munmap(mem))
	}
	return &block{kind: kind, mem: mem, addr: verbs.Addr(mem), lkey: mr.LKey(), mr: mr}, nil
}

// give takes a block back; nothing that names it may be posted any more.
func (m *memory) give(b *block) {
	if b == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.free[b.kind] = append(m.mu.free[b.kind], b)
}

// close unpins everything. All connections have ended.
func (m *memory) close() error {
	var errs []error
	m.mu.Lock()
	for _, blocks := range m.mu.free {
		for _, b := range blocks {
			errs = append(errs, b.mr.Deregister(), unix.Munmap(b.mem))
		}
	}
	m.mu.free = nil
	m.mu.Unlock()
	for _, r := range m.regions {
		errs = append(errs, r.mr.Deregister())
	}
	m.regions = nil
	m.bytes.Store(0)
	return errors.Join(append(errs, m.pd.Dealloc())...)
}

// checkLocked says what to set when the kernel will not let memory be pinned.
func checkLocked(devices int, regions []Region) error {
	if devices == 0 {
		return nil
	}
	limits, err := arena.ReadLimits("")
	if err != nil {
		return err
	}
	need := int64(devices) * connectionMemory
	for _, r := range regions {
		need += int64(devices) * int64(len(r.Mem))
	}
	if need > limits.Locked {
		return fmt.Errorf("iSER needs %s locked in memory for %d RDMA devices (buffers and cache), found a limit of %s: set LimitMEMLOCK=infinity in the service, or ulimit -l unlimited, or give CAP_IPC_LOCK",
			bytesize.Text(need), devices, bytesize.Text(limits.Locked))
	}
	return nil
}

// connectionMemory is what is reckoned for messages of connections, in bytes.
const connectionMemory = 64 << 20
