package fake

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/iser/verbs"
)

// state of a QP.
type state uint8

const (
	initial state = iota // takes receives
	ready                // takes everything
	failed               // flushes everything
)

// progress of an entry of a send queue.
type progress uint8

const (
	waiting  progress = iota
	underWay          // an RDMA READ that was asked for
	done
)

// entry is a slot of a send queue.
type entry struct {
	wr       verbs.WR
	sges     []verbs.SGE
	inline   []byte
	progress progress
	notReady bool // it found no receive, which was counted
}

// receive is a slot of a receive queue.
type receive struct {
	id  uint64
	sge verbs.SGE
}

// qp is a queue pair. Entries of the send queue are numbered from 0 on:
// freed <= retired <= issued <= posted.
type qp struct {
	device *Device
	id     *id
	pd     *domain
	cq     *queue
	number uint32
	limits verbs.QPLimits
	state  state
	peer   *qp

	sends   []entry // slot n % len: entry n
	posted  uint64
	issued  uint64 // entries that were begun
	retired uint64 // entries that have completed, in order
	freed   uint64 // entries whose completion was polled, or that of a later one

	receives  []receive
	received  uint64 // slot n % len: as with sends
	awaited   uint64 // receives posted
	recvFreed uint64

	readDepth  int // RDMA READs that this side may have outstanding
	peerDepth  int // that the peer may
	reads      int // posted and not freed
	readsBegun int // under way
	rnrRetry   uint8
	told       bool // AsyncCommEst
	ended      bool // it is being destroyed
}

// CreateQP implements verbs.ID.
func (c *id) CreateQP(pd verbs.PD, cq verbs.CQ, limits verbs.QPLimits) (verbs.QP, error) {
	d, f := c.device, c.fabric
	if d == nil {
		return nil, fmt.Errorf("rdma_create_qp on a listener: %w", unix.EINVAL)
	}
	q := &qp{device: d, id: c, pd: pd.(*domain), cq: cq.(*queue), limits: limits}
	err := d.create("rdma_create_qp", "queue pair", func() (any, error) {
		caps := d.options.Caps
		if c.qp != nil || q.pd.device != d || q.cq.device != d || limits.SendWR < 1 || limits.RecvWR < 1 ||
			max(limits.SendWR, limits.RecvWR) > caps.MaxWR || limits.SendSGE > caps.MaxSendSGE || limits.Inline > 512 {
			return nil, unix.EINVAL
		}
		f.lastQP++
		q.number = f.lastQP
		q.sends = make([]entry, limits.SendWR)
		for i := range q.sends {
			q.sends[i].sges = make([]verbs.SGE, 0, max(limits.SendSGE, 1))
			q.sends[i].inline = make([]byte, 0, limits.Inline)
		}
		q.receives = make([]receive, limits.RecvWR)
		q.pd.users++
		q.cq.users++
		c.qp = q
		f.qps = append(f.qps, q)
		return q, nil
	})
	if err != nil {
		return nil, err
	}
	return q, nil
}

// Number implements verbs.QP.
func (q *qp) Number() uint32 { return q.number }

// Limits implements verbs.QP.
func (q *qp) Limits() verbs.QPLimits { return q.limits }

// PostSend implements verbs.QP.
func (q *qp) PostSend(wrs []verbs.WR, sges []verbs.SGE) (int, error) {
	f := q.device.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.wake.Signal()
	q.device.counts.SendPosts += uint64((len(wrs) + verbs.MaxPost - 1) / verbs.MaxPost)
	segments := 0
	for i := range wrs {
		segments += int(wrs[i].NSGE)
	}
	if segments > len(sges) {
		return 0, unix.EINVAL
	}
	for i := range wrs {
		if err := q.send(&wrs[i], sges[:wrs[i].NSGE]); err != nil {
			return i, err
		}
		sges = sges[wrs[i].NSGE:]
	}
	return len(wrs), nil
}

func (q *qp) send(wr *verbs.WR, sges []verbs.SGE) error {
	if err := q.postable(wr, sges); err != nil {
		return err
	}
	e := &q.sends[q.posted%uint64(len(q.sends))]
	e.wr, e.progress, e.notReady = *wr, waiting, false
	e.sges, e.inline = append(e.sges[:0], sges...), e.inline[:0]
	q.posted++
	q.count(wr.Op)
	if wr.Op == verbs.OpRead {
		if q.reads++; q.reads > q.readDepth && q.state == ready {
			q.device.host.fabric.breach("%s: %d RDMA READs outstanding on a QP, %d were negotiated", q.device.host.name, q.reads, q.readDepth)
		}
	}
	if wr.Flags&verbs.FlagInline != 0 {
		for _, s := range sges {
			e.inline = append(e.inline, memory(s)...)
		}
		q.device.counts.Inlined += uint64(len(e.inline))
	} else {
		for _, s := range sges {
			q.named(s, +1)
		}
	}
	if posted := q.device.host.fabric.options.Posted; posted != nil {
		posted(q.work(q.posted - 1))
	}
	if q.state == failed {
		q.flush()
	}
	return nil
}

// postable says why the library would refuse an entry.
func (q *qp) postable(wr *verbs.WR, sges []verbs.SGE) error {
	inline, total := wr.Flags&verbs.FlagInline != 0, uint64(0)
	for _, s := range sges {
		total += uint64(s.Len)
	}
	switch {
	case q.state == initial, wr.Op > verbs.OpRead, len(sges) > max(q.limits.SendSGE, 1),
		inline && (wr.Op == verbs.OpRead || total > uint64(q.limits.Inline)),
		wr.Op == verbs.OpRead && len(sges) > q.device.options.Caps.MaxReadSGE:
		return unix.EINVAL
	case q.posted-q.freed == uint64(len(q.sends)):
		return unix.ENOMEM
	}
	return nil
}

func (q *qp) count(op verbs.Op) {
	counts := &q.device.counts
	switch op {
	case verbs.OpWrite:
		counts.Writes++
	case verbs.OpRead:
		counts.Reads++
	default:
		counts.Sends++
	}
}

// memory is what a segment of inline data names, without a key.
func memory(s verbs.SGE) []byte {
	addr := s.Addr
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), s.Len)
}

// PostRecv implements verbs.QP.
func (q *qp) PostRecv(ids []uint64, sges []verbs.SGE) (int, error) {
	f := q.device.host.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.wake.Signal()
	q.device.counts.RecvPosts += uint64((len(ids) + verbs.MaxPost - 1) / verbs.MaxPost)
	if len(ids) > len(sges) {
		return 0, unix.EINVAL
	}
	for i, id := range ids {
		if q.awaited-q.recvFreed == uint64(len(q.receives)) {
			return i, unix.ENOMEM
		}
		q.receives[q.awaited%uint64(len(q.receives))] = receive{id, sges[i]}
		q.awaited++
		q.device.counts.Recvs++
		q.named(sges[i], +1)
	}
	if q.state == failed && f.random.IntN(2) == 0 {
		q.flush() // or never: some devices do not look at the queue any more
	}
	return len(ids), nil
}

// polled frees the slots that a completion stands for.
func (q *qp) polled(sent uint64) {
	if sent == 0 {
		q.recvFreed++
		return
	}
	for q.freed < sent {
		if q.sends[q.freed%uint64(len(q.sends))].wr.Op == verbs.OpRead {
			q.reads--
		}
		q.freed++
	}
}

// Fail implements verbs.QP.
func (q *qp) Fail() error {
	f := q.device.host.fabric
	err := f.enter("ibv_modify_qp")
	defer f.mu.Unlock()
	if err == nil {
		q.fail()
		f.wake.Signal()
	}
	return err
}

// fail flushes everything; again and again is no different from once.
func (q *qp) fail() {
	if q.state != failed {
		q.state = failed
		q.flush()
	}
}

// flush completes what is posted without doing it.
func (q *qp) flush() {
	for q.retired < q.posted {
		q.retire(verbs.StatusFlushed)
	}
	q.issued, q.readsBegun = q.retired, 0
	if q.device.host.fabric.options.Deaf && !q.device.host.kernel && !q.ended {
		return
	}
	for q.received < q.awaited {
		r := q.takeReceive()
		q.cq.add(completion{wc: verbs.WC{ID: r.id, Status: verbs.StatusFlushed, QP: q.number}, qp: q})
	}
}

// retire completes the oldest entry of the send queue.
func (q *qp) retire(status verbs.Status) {
	e := &q.sends[q.retired%uint64(len(q.sends))]
	q.retired++
	if e.wr.Flags&verbs.FlagInline == 0 {
		for _, s := range e.sges {
			q.named(s, -1)
		}
	}
	if status == verbs.StatusOK && e.wr.Flags&verbs.FlagSignaled == 0 {
		return
	}
	wc := verbs.WC{ID: e.wr.ID, Status: status, QP: q.number}
	if status == verbs.StatusOK {
		wc.Op = [...]verbs.WCOp{verbs.WCSend, verbs.WCSend, verbs.WCWrite, verbs.WCRead}[e.wr.Op]
		if e.wr.Op == verbs.OpRead {
			wc.Len = length(e.sges)
		}
	}
	q.cq.add(completion{wc: wc, qp: q, sent: q.retired})
}

func (q *qp) takeReceive() receive {
	r := q.receives[q.received%uint64(len(q.receives))]
	q.received++
	q.named(r.sge, -1)
	return r
}

func length(sges []verbs.SGE) (n uint32) {
	for _, s := range sges {
		n += s.Len
	}
	return n
}

// Destroy implements verbs.QP.
func (q *qp) Destroy() error {
	f := q.device.host.fabric
	err := f.enter("rdma_destroy_qp")
	defer f.mu.Unlock()
	if err := f.destroyLocked("rdma_destroy_qp", q, 0, err); err != nil {
		return err
	}
	q.state, q.ended = failed, true
	q.flush()
	q.cq.forget(q)
	q.cq.users--
	q.pd.users--
	q.id.qp = nil
	f.qps = slices.DeleteFunc(f.qps, func(other *qp) bool { return other == q })
	f.wake.Signal()
	return nil
}
