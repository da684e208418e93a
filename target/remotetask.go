package target

import (
	"errors"
	"math"
	"runtime/debug"
	"sync"
	"time"

	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/internal/waits"
	"lunar/target/scsi"
	"lunar/target/scsi/relay"
)

// remoteTask is a command of a remote nexus. It implements scsi.Port: what a connection is to
// a task, messages to the server of the session are to it. Limits are that server's matter, but for what
// is copied here.
type remoteTask struct {
	cmd     scsi.Command
	nexus   *remoteNexus
	message relay.Execute // parts of it are the link's until it is answered
	answer  func(body ...[]byte)

	came    time.Time
	outcome relay.Outcome // of a task that is aborted
	off     uint32        // of the first of pieces
	pieces  []piece       // of Data-In that are not sent yet
	bytes   uint32        // in them
	sending int           // parts of Data-In that are not answered
	parts   []remotePart  // of them, those that are not sent yet, in order
	short   bool          // one of them may not have come to the other server
	fetches []fetch       // of Data-Out that are not answered, in order
	over    bool          // the command has ended
	dropped bool          // it panicked
	waits   bool          // in thread.far
	eager   bool          // in nexus.follows
	used    []*scsi.LogicalUnit
	payment strayPayment
	head    []byte // of messages
	body    [][]byte

	awaitedBy waits.List
}

// piece is a part of Data-In.
type piece struct {
	ref  *buf.Ref // nil: data is the command's
	data []byte
}

// remotePart is Data-In that go ahead of the answer.
type remotePart struct {
	message  relay.Part
	pieces   []piece
	bytes    int
	admitted bool      // by nexus.follows
	until    time.Time // it waits for room on the way at most, once it is admitted
}

// fetch is Data-Out that was asked for.
type fetch struct {
	off uint32
	dst []byte
	got uint32 // bytes of it that are there

	asked bool // the other server was asked for the rest
}

var remoteTasks = sync.Pool{New: func() any { return &remoteTask{} }}

func newRemoteTask() *remoteTask { return remoteTasks.Get().(*remoteTask) }

// begin has it run on the thread of its nexus; nil: it is not known.
func (t *remoteTask) begin(n *remoteNexus, answer func(...[]byte)) {
	if n == nil {
		remoteTasks.Put(t)
		answerOutcome(answer, relay.NoNexus)
		return
	}
	t.nexus, t.answer, t.outcome, t.came = n, answer, relay.Aborted, time.Now()
	n.thread.loop.Post(t)
}

// Run implements evloop.Task: it executes the command, or recycles it when nothing of it is on
// the stack any more.
func (t *remoteTask) Run() {
	if t.answer == nil {
		t.recycle()
		return
	}
	n, m, cmd := t.nexus, &t.message, &t.cmd
	if n.over || len(n.ending) > 0 || n.lane == nil {
		answer := t.answer
		t.recycle()
		answerOutcome(answer, relay.NoNexus)
		return
	}
	n.tasks[m.Task] = t
	n.nexus.ReadOnly.Store(m.ReadOnly)
	clear(cmd.CDB[copy(cmd.CDB[:], m.CDB):])
	cmd.CDBLength, cmd.Attribute = len(m.CDB), scsi.TaskAttribute(m.Attribute)
	cmd.EDTL, cmd.ReadEDTL, cmd.HasIn, cmd.HasOut = m.EDTL, m.ReadEDTL, m.HasIn, m.HasOut
	cmd.Nexus, cmd.Lane, cmd.Port = n.nexus, n.lane, t
	if m.HasOut && uint32(len(m.Data)) == m.EDTL {
		cmd.Immediate = m.Data
	}
	defer t.Contain(cmd)
	n.nexus.LU.Execute(cmd)
}

// abort ends it without a status.
func (t *remoteTask) abort() {
	if t.over {
		return
	}
	t.nexus.thread.far.remove(t)
	ended := t.cmd.Abort()
	t.passParts() // those that wait are of no use any more
	if ended {
		t.end()
	}
}

// Alloc implements scsi.Port.
func (t *remoteTask) Alloc(_ *scsi.Command, n int) *buf.Ref {
	th, q := t.nexus.thread, &t.nexus.quota
	var ref *buf.Ref
	if th.far.empty() || th.feeding {
		ref = th.quotas.get(q, n)
	} else {
		ref = th.quotas.fallBack(q, n)
	}
	if ref == nil {
		th.far.add(t)
	}
	return ref
}

// Affords implements scsi.Port.
func (t *remoteTask) Affords(_ *scsi.Command, n int) bool {
	th := t.nexus.thread
	return th.far.empty() && th.quotas.allots(&t.nexus.quota, n)
}

// Charge implements scsi.Port.
func (t *remoteTask) Charge(_ *scsi.Command, ref *buf.Ref) { ref.Charge(&t.nexus.charged) }

// SendDataIn implements scsi.Port: as much as goes with the answer, or all of it ahead of that.
func (t *remoteTask) SendDataIn(_ *scsi.Command, off uint32, ref *buf.Ref, data []byte, last bool) {
	for more := true; more; {
		if t.bytes == scsi.SegmentSize {
			t.sendPart()
		}
		if len(t.pieces) == 0 {
			t.off = off
		}
		n := min(uint32(len(data)), scsi.SegmentSize-t.bytes)
		if more = n < uint32(len(data)); more && ref != nil {
			ref.Retain()
		}
		t.pieces = append(t.pieces, piece{ref, data[:n]})
		t.bytes += n
		off, data = off+n, data[n:]
	}
	if last {
		if t.off > 0 { // the other server has no buffer for the rest
			t.sendPart()
		}
		t.end()
	}
}

// sendPart sends Data-In ahead of the answer.
func (t *remoteTask) sendPart() {
	n := t.nexus
	t.parts = append(t.parts, remotePart{
		message: relay.Part{Volume: n.nexus.LU.Name(), Task: t.message.Task, Offset: t.off}, pieces: t.pieces, bytes: int(t.bytes),
	})
	t.off += t.bytes
	t.pieces, t.bytes = nil, 0
	t.sending++
	if len(t.parts) == 1 {
		t.passParts()
	}
}

// partRetry is how often a part is tried to be sent for which there is no room on the way.
const partRetry = 10 * time.Millisecond

// errUnwanted ends parts of a command that was aborted.
var errUnwanted = errors.New("the command was aborted")

// passParts sends parts in order, as far as there is room.
func (t *remoteTask) passParts() {
	n, task := t.nexus, t.message.Task
	for len(t.parts) > 0 {
		p := t.parts[0]
		unwanted := t.cmd.Aborted()
		if !p.admitted && !unwanted {
			if !n.follows.admit(t, p.bytes) {
				return
			}
			p.admitted, p.until = true, time.Now().Add(n.peer.Back.Patience())
			t.parts[0] = p
		}
		ended := func(_ []byte, err error) {
			n.post(func(*remoteNexus) { t.partEnded(p, err) })
		}
		if unwanted {
			ended(nil, errUnwanted)
			t.parts = t.parts[1:]
			continue
		}
		m := scsi.Message{Lane: uint32(n.key.number), Room: relay.MaxHeader, Follow: true, Body: appendPieces([][]byte{p.message.Append(nil)}, p.pieces)}
		if err := n.peer.Back.Carry(m, ended); err != nil {
			if time.Now().Before(p.until) {
				time.AfterFunc(partRetry, func() {
					n.post(func(*remoteNexus) {
						if n.tasks[task] == t { // it may have been aborted
							t.passParts()
						}
					})
				})
				return
			}
			ended(nil, err)
		}
		t.parts = t.parts[1:]
	}
}

// partEnded follows the answer to a part.
func (t *remoteTask) partEnded(p remotePart, err error) {
	releasePieces(p.pieces)
	t.sending--
	t.short = t.short || err != nil
	if t.short && !t.over && !t.cmd.Aborted() {
		t.outcome = relay.Cut
		t.abort()
	}
	n := t.nexus
	t.endIfSent()
	if p.admitted {
		n.follows.answered(p.bytes)
	}
}

func appendPieces(body [][]byte, pieces []piece) [][]byte {
	for _, p := range pieces {
		body = append(body, p.data)
	}
	return body
}

func releasePieces(pieces []piece) {
	for i := range pieces {
		releaseRef(pieces[i].ref)
		pieces[i] = piece{}
	}
}

// ReceiveDataOut implements scsi.Port: what has not come with the command is asked for.
func (t *remoteTask) ReceiveDataOut(cmd *scsi.Command, off uint32, dst []byte) {
	f := fetch{off: off, dst: dst}
	if have := uint32(len(t.message.Data)); off < have {
		f.got = uint32(copy(dst, t.message.Data[off:]))
	}
	if f.got == uint32(len(dst)) {
		cmd.DataOut(off, f.got)
		return
	}
	t.fetches = append(t.fetches, f)
	t.passWants()
}

// passWants asks for Data-Out in order, as far as there is room.
func (t *remoteTask) passWants() {
	for i := range t.fetches {
		f := &t.fetches[i]
		if f.asked || t.over || t.cmd.Aborted() {
			continue
		}
		if !t.nexus.follows.admit(t, len(f.dst)-int(f.got)) {
			return
		}
		f.asked = true
		t.want(f)
	}
}

// want asks for Data-Out.
func (t *remoteTask) want(f *fetch) {
	n := t.nexus
	m := relay.Want{Volume: n.nexus.LU.Name(), Task: t.message.Task, Offset: f.off + f.got, Len: uint32(len(f.dst)) - f.got}
	came := func(data []byte, err error) {
		data = append([]byte(nil), data...)
		n.post(func(n *remoteNexus) {
			n.fetched(m.Task, m.Offset, data)
			n.follows.answered(int(m.Len))
		})
	}
	message := scsi.Message{Lane: uint32(n.key.number), Room: int(m.Len) + relay.MaxHeader, Follow: true, Body: [][]byte{m.Append(nil)}}
	if err := n.peer.Back.Carry(message, came); err != nil {
		came(nil, err)
	}
}

// fetched takes Data-Out from an offset on; less than what was asked for ends the command,
// which nobody waits for any more.
func (n *remoteNexus) fetched(task uint64, off uint32, data []byte) {
	t := n.tasks[task]
	if t == nil || t.over || t.cmd.Aborted() {
		return
	}
	defer t.Contain(&t.cmd)
	for i, f := range t.fetches {
		if f.off+f.got != off {
			continue
		}
		t.fetches = append(t.fetches[:i], t.fetches[i+1:]...)
		if len(data) < len(f.dst)-int(f.got) {
			t.outcome = relay.Cut
			t.abort()
			return
		}
		copy(f.dst[f.got:], data)
		t.cmd.DataOut(f.off, uint32(len(f.dst)))
		return
	}
}

// Reach implements scsi.Port: of the units that the session has at the other server, those
// that it has told of, then those of other sessions of the same initiator there, if that has
// proven who it is.
func (t *remoteTask) Reach(_ *scsi.Command, match func(*scsi.Nexus) bool) (scsi.CSCD, bool) {
	mine := t.nexus.nexus
	for _, same := range []bool{true, false} {
		for _, other := range t.nexus.all.of(func(o *remoteNexus) bool { return o.key.node == t.nexus.key.node }) {
			n := other.nexus
			session := n.Initiator == mine.Initiator && n.Target == mine.Target && n.TargetTag == mine.TargetTag
			if session != same || !session && (mine.Proven == nil || n.Proven != mine.Proven || n.Initiator != mine.Initiator) {
				continue
			}
			if lane, err := t.nexus.thread.lane(n.LU); err == nil && match(n) && t.use(n.LU) {
				return scsi.CSCD{Nexus: n, Lane: lane}, true
			}
		}
	}
	return scsi.CSCD{}, false
}

func (t *remoteTask) use(lu *scsi.LogicalUnit) bool {
	if !t.nexus.node.use(lu) {
		return false
	}
	t.used = append(t.used, lu)
	return true
}

// Background implements scsi.Port.
func (t *remoteTask) Background(cmd *scsi.Command, start func(*scsi.Command)) bool {
	n := t.nexus
	if !t.use(cmd.Nexus.LU) {
		return false
	}
	begun := n.thread.background(n.node, cmd, t.used, n.flow, start)
	if begun {
		t.used = nil
	}
	return begun
}

// Wake implements scsi.Port.
func (t *remoteTask) Wake(cmd *scsi.Command, work scsi.Task) {
	t.nexus.thread.loop.Post(evloop.Func(func() {
		defer t.Contain(cmd)
		work.Run()
	}))
}

// Turn implements scsi.Port.
func (t *remoteTask) Turn(*scsi.Command) int64 { return int64(t.nexus.thread.loop.Part()) }

// Within implements scsi.Port.
func (t *remoteTask) Within(_ *scsi.Command, n int64, work scsi.Task) bool {
	return t.nexus.thread.moves.take(n, work)
}

// Again implements scsi.Port.
func (t *remoteTask) Again(_ *scsi.Command, work scsi.Task) { t.nexus.thread.loop.Again(work) }

// Pay implements scsi.Payments. The command was charged where its session is; what it moves is
// charged here, where the pool is that it is moved in, by the same rules.
func (t *remoteTask) Pay(_ *scsi.Command, bytes int64) bool {
	return t.payment.pays(bytes, t.nexus.thread.gate, t.nexus.queue, func() {
		defer t.Contain(&t.cmd)
		t.cmd.Paid()
	})
}

// Contain implements scsi.Port: what a panic leaves behind is not used again.
func (t *remoteTask) Contain(*scsi.Command) {
	p := recover()
	if p == nil {
		return
	}
	n := t.nexus
	if n == nil || t.over || t.answer == nil {
		panic(p) // the command has ended
	}
	n.node.logger().Error("panic in a command that another node relays: it is given up", "panic", p, "node", n.key.node, "stack", string(debug.Stack()))
	n.thread.far.remove(t)
	t.cmd.Discard()
	t.dropped, t.outcome = true, relay.Cut
	t.end()
}

// Complete implements scsi.Port.
func (t *remoteTask) Complete(*scsi.Command) { t.end() }

// end follows the end of the command.
func (t *remoteTask) end() {
	t.over = true
	t.payment.end()
	t.endIfSent()
}

// endIfSent answers when the command has ended and no Data-In of it are on their way.
func (t *remoteTask) endIfSent() {
	if !t.over || t.sending > 0 || t.answer == nil {
		return
	}
	n, a := t.nexus, t.result()
	a.Took = uint32(min(time.Since(t.came).Microseconds(), math.MaxUint32))
	t.head = a.Append(t.head[:0])
	t.body = append(t.body[:0], t.head)
	if a.Outcome == relay.Done && a.Status == uint8(scsi.Good) {
		t.body = appendPieces(t.body, t.pieces)
	}
	t.answer(t.body...)
	releasePieces(t.pieces)
	clear(t.body)
	if len(t.used) > 0 {
		n.node.release(t.used)
	}
	delete(n.tasks, t.message.Task)
	n.follows.leave(t)
	t.answer = nil
	if !t.dropped {
		n.thread.loop.AtPassEnd(t)
	}
	t.awaitedBy.Ended()
	n.endIfIdle()
}

// result is what the other server is told.
func (t *remoteTask) result() relay.Answer {
	cmd := &t.cmd
	switch {
	case t.dropped || cmd.Aborted():
		return relay.Answer{Outcome: t.outcome}
	case t.short:
		return relay.Answer{Outcome: relay.Cut}
	case cmd.Elsewhere():
		return relay.Answer{Outcome: relay.NotHere}
	}
	return relay.Answer{
		Status: uint8(cmd.Status), Takes: cmd.Takes, Length: cmd.Length, Sense: cmd.Sense, Offset: t.off,
		Descriptor: cmd.Nexus.LU.State().DescriptorSense,
	}
}

func (t *remoteTask) recycle() {
	t.cmd.Reset()
	t.nexus, t.answer, t.message, t.awaitedBy, t.used = nil, nil, relay.Execute{}, nil, nil
	t.off, t.pieces, t.bytes, t.fetches, t.over, t.short = 0, t.pieces[:0], 0, t.fetches[:0], false, false
	t.parts = nil
	remoteTasks.Put(t)
}

// resume implements hungry.
func (t *remoteTask) resume() {
	defer t.Contain(&t.cmd)
	t.cmd.Resume()
}

// waiting implements hungry.
func (t *remoteTask) waiting() *bool { return &t.waits }

// owns implements hungry.
func (t *remoteTask) owns() bool { return t.nexus.thread.quotas.reserves(&t.nexus.quota) }
