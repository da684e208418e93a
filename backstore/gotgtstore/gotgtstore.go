// Package gotgtstore serves a volume from a plug-in that was written for gotgt,
// that is, from anything that implements its api.BackingStore.
//
// It is the slow way: every call may block, so it runs on a worker, and a read
// costs the copy and the allocation that the plug-in interface asks for.
package gotgtstore

import (
	"errors"
	"fmt"

	"github.com/gostor/gotgt/pkg/api"

	"lunar/backstore"
	"lunar/internal/evloop"
)

const (
	sector = 512
	page   = 4096
	// zeroChunk bounds one write of zeroes, in bytes.
	zeroChunk = 256 << 10
)

// store is an opened plug-in.
type store struct {
	plugin api.BackingStore
	device api.SCSILu // what the plug-in may know of the logical unit: nothing
	info   backstore.Info
	zeroes []byte
}

// Open initialises and opens plugin with its own options and path, and owns it
// from then on, also when it fails. The plug-in must be safe for concurrent
// calls, as for gotgt, and must not keep the buffer of a Write. What it reads
// short or long is an error.
//
// There is no Discard, because plug-ins may take Unmap and do nothing; Map takes
// all for provisioned; WriteZeroes writes them; a FUA write is followed by the
// DataSync of its range.
func Open(plugin api.BackingStore, path, options string) (backstore.Store, error) {
	s := &store{plugin: plugin, zeroes: make([]byte, zeroChunk)}
	if err := s.open(path, options); err != nil {
		return nil, fmt.Errorf("gotgt plug-in store %s: %w", path, err)
	}
	size := int64(plugin.Size(&s.device))
	if size <= 0 || size%sector != 0 {
		return nil, errors.Join(fmt.Errorf("gotgt plug-in store %s: size %d: expected a positive multiple of %d", path, size, sector), s.Close())
	}
	s.info = backstore.Info{
		Size: size, BlockSize: 1, PhysicalBlock: page,
		VolatileCache: true, Describe: "gotgt plug-in " + path,
	}
	return s, nil
}

func (s *store) open(path, options string) error {
	if err := s.plugin.Init(&s.device, options); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	if err := s.plugin.Open(&s.device, path); err != nil {
		return errors.Join(fmt.Errorf("open: %w", err), s.plugin.Exit(&s.device))
	}
	return nil
}

// Info implements backstore.Store.
func (s *store) Info() backstore.Info { return s.info }

// Lane implements backstore.Store.
func (s *store) Lane(l *evloop.Loop) (backstore.Lane, error) {
	if l.Workers() == nil {
		return nil, fmt.Errorf("%s on event loop %q: it has no workers for calls that block", s.info.Describe, l.Name())
	}
	return &lane{store: s, loop: l}, nil
}

// Close implements backstore.Store.
func (s *store) Close() error {
	return errors.Join(s.plugin.Close(&s.device), s.plugin.Exit(&s.device))
}

// do performs op. It blocks.
func (s *store) do(op *backstore.Op) error {
	switch op.Kind {
	case backstore.Read:
		return s.read(op)
	case backstore.Write:
		if err := s.plugin.Write(op.Data, op.Off); err != nil {
			return err
		}
	case backstore.WriteZeroes:
		if err := s.zero(op.Off, op.Len); err != nil {
			return err
		}
	case backstore.Flush:
		return s.plugin.DataSync(0, s.info.Size)
	case backstore.Map:
		op.Mapped = true
	}
	if op.FUA && op.Kind.Changes() {
		return s.plugin.DataSync(op.Off, op.Length())
	}
	return nil
}

func (s *store) read(op *backstore.Op) error {
	data, err := s.plugin.Read(op.Off, op.Length())
	if err != nil {
		return err
	}
	if len(data) != len(op.Data) {
		return fmt.Errorf("the plug-in read %d bytes, expected %d", len(data), len(op.Data))
	}
	copy(op.Data, data)
	return nil
}

func (s *store) zero(off, n int64) error {
	for n > 0 {
		chunk := min(n, zeroChunk)
		if err := s.plugin.Write(s.zeroes[:chunk], off); err != nil {
			return err
		}
		off, n = off+chunk, n-chunk
	}
	return nil
}

// lane is one event thread's access to a plug-in.
type lane struct {
	store *store
	loop  *evloop.Loop
	idle  *job // list of jobs to reuse
}

// TryNow implements backstore.Lane: a plug-in may always block.
func (l *lane) TryNow(*backstore.Op) bool { return false }

// Submit implements backstore.Lane.
func (l *lane) Submit(op *backstore.Op) bool {
	op.Err = backstore.Check(op, &l.store.info)
	if op.Err != nil || op.Kind != backstore.Flush && op.Length() == 0 {
		return true
	}
	l.loop.Workers().Submit(l.loop, l.job(op))
	return false
}

// Close implements backstore.Lane.
func (l *lane) Close() {}

// job is an op on its way to a worker and back.
type job struct {
	lane *lane
	op   *backstore.Op
	next *job
}

func (l *lane) job(op *backstore.Op) *job {
	j := l.idle
	if j == nil {
		j = &job{lane: l}
	} else {
		l.idle = j.next
	}
	j.op, j.next = op, nil
	return j
}

// Do implements evloop.Job.
func (j *job) Do() {
	if err := j.lane.store.do(j.op); err != nil {
		j.op.Err = fmt.Errorf("%v at byte %d of %s: %w", j.op.Kind, j.op.Off, j.lane.store.info.Describe, backstore.Classify(err))
	}
}

// Run implements evloop.Job.
func (j *job) Run() {
	op := j.op
	j.op, j.next, j.lane.idle = nil, j.lane.idle, j
	op.Done(op)
}
