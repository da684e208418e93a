package target

import (
	"math/bits"

	"lunar/internal/buf"
	"lunar/internal/debt"
	"lunar/internal/waits"
	"lunar/scheduler"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// maxOutstandingR2T bounds R2Ts of one task, whatever is negotiated.
const maxOutstandingR2T = 8

// task is one SCSI command: the scsi.Command, its tags, and
// where its data is. Tasks are pooled per event thread. It implements
// scsi.Port (command.go, dataout.go).
type task struct {
	cmd  scsi.Command
	conn *Connection // that it has allegiance to
	next *task       // chain of the task table, or of the free list
	lun  *lun

	waitNext *task // chain of the memory queue

	itt       uint32
	lunField  uint64
	cmdSN     pdu.SN
	windowed  bool // holds a place of the command window
	listed    bool // is in the session's task table
	ended     bool // the initiator has, or will not get, its status
	discarded bool // its command panicked
	dying     bool // to be aborted when the transport is no longer writing to its memory
	waiting   bool // in the session's memory queue
	stray     bool // its unasked data found no place, because it is going to be refused

	landing *buf.Ref // where data that comes unasked lands until ReceiveDataOut
	stash   []byte   // or its copy, when the command waits for memory
	taken   uint32   // bytes of it that the command has asked for

	// Data-In.
	dataSN pdu.SN // next DataSN and R2TSN, which share their numbers; ExpDataSN of the response
	burst  uint32 // bytes in the current Data-In sequence
	sent   uint32 // bytes of Data-In

	snackTag uint32 // of the last R-Data SNACK
	recovery int    // sequences of Data-Out that were asked for again

	// Data-Out.
	came        int64      // when it was received, on the clock of Monotonic
	moved       int64      // when data last came or was asked for, on the loop's clock
	unsolicited sequence   // immediate data and unsolicited Data-Out
	claimed     debt.Claim // of the latter
	wants       [scsi.MaxSegments]want
	wanted      int
	r2ts        [maxOutstandingR2T]sequence
	r2tCount    int
	r2tNext     uint32 // buffer offset from which nothing was solicited yet
	asked       int    // bytes that are counted in the connection's pacing
	paced       bool   // it waits there

	qos     scheduler.Task
	payment *payment // of a copy, if there are rules
	turn    turn

	awaitedBy waits.List
	used      []*scsi.LogicalUnit // others than lun's, which are not closed before it has ended
}

// want is one ReceiveDataOut: a range of the command's data and its place.
type want struct {
	off     uint32
	dst     []byte
	got     int
	claimed debt.Claim
}

func (w *want) end() uint32 { return w.off + uint32(len(w.dst)) }

// sequence is one run of Data-Out PDUs: unsolicited, or the answer to an R2T.
type sequence struct {
	open   bool
	broken bool // some of it is missing: the rest is dropped and asked for again
	ttt    uint32
	next   uint32 // buffer offset of the next PDU
	end    uint32 // buffer offset where it ends at the latest
	dataSN pdu.SN

	asked  int64  // when, while that is paced, on the loop's clock
	length uint32 // bytes that were asked for then
}

// newTask takes a task from the thread's free list.
func (th *thread) newTask(c *Connection) *task {
	t := th.free
	if t == nil {
		t = &task{}
	} else {
		th.free = t.next
	}
	t.conn, t.next = c, nil
	c.live++
	c.own++
	c.traffic.inFlight.Add(1)
	return t
}

// recycle returns an ended task; nothing may refer to it any more.
func (th *thread) recycle(t *task) {
	t.cmd.Reset()
	t.conn, t.lun, t.awaitedBy = nil, nil, nil
	t.windowed, t.listed, t.ended, t.waiting, t.dying, t.taken, t.stash = false, false, false, false, false, 0, nil
	t.stray = false
	t.dataSN, t.burst, t.sent, t.snackTag, t.recovery = 0, 0, 0, 0, 0
	t.unsolicited = sequence{}
	for i := range t.wanted {
		t.wants[i].dst = nil
	}
	t.wanted, t.r2tCount, t.r2tNext, t.paced = 0, 0, 0, false
	t.next, th.free = th.free, t
}

// endUnanswered is end without a status: nothing that was sent for the task is asked
// for again.
func (t *task) endUnanswered() {
	if r := t.conn.recall; r != nil {
		r.drop(t.itt)
	}
	t.end()
}

// discard takes a task off its connection whose command panicked: what the
// command was about to do is not known, so neither the task nor its buffers
// are used again.
func (t *task) discard() {
	c := t.conn
	if c == nil || t.discarded {
		return
	}
	t.landing = nil
	waiting := t.detach()
	t.cmd.Discard()
	t.discarded = true
	waiting.Ended()
	c.taskEnded()
}

// taskTable finds tasks by Initiator Task Tag: chained buckets, fixed in size
// because the window bounds the tasks.
type taskTable struct {
	buckets []*task // a power of two of them
	n       int
}

func newTaskTable(depth int) taskTable {
	n := 16
	for n < 2*depth {
		n *= 2
	}
	return taskTable{buckets: make([]*task, n)}
}

// bucket keeps tags side by side that initiators count up, in whatever byte order:
// few cache lines hold all that a session uses.
func (tt *taskTable) bucket(itt uint32) **task {
	return &tt.buckets[(itt+bits.ReverseBytes32(itt))&uint32(len(tt.buckets)-1)]
}

func (tt *taskTable) find(itt uint32) *task {
	if tt.n == 0 {
		return nil
	}
	t := *tt.bucket(itt)
	for t != nil && t.itt != itt {
		t = t.next
	}
	return t
}

func (tt *taskTable) insert(t *task) {
	b := tt.bucket(t.itt)
	t.next, *b = *b, t
	t.listed = true
	tt.n++
}

func (tt *taskTable) remove(t *task) {
	b := tt.bucket(t.itt)
	for *b != t {
		b = &(*b).next
	}
	*b, t.next = t.next, nil
	t.listed = false
	tt.n--
}

// appendMatching appends the tasks that match to dst, so that the caller may
// end them while it walks.
func (tt *taskTable) appendMatching(dst []*task, match func(*task) bool) []*task {
	for _, t := range tt.buckets {
		for ; t != nil; t = t.next {
			if match(t) {
				dst = append(dst, t)
			}
		}
	}
	return dst
}
