package scsi

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"lunar/backstore"
	"lunar/internal/buf"
	"lunar/internal/waits"
	"lunar/target/scsi/reservation"
	"lunar/target/scsi/sense"
)

const (
	simpleWrite  step = 'w'
	orderedWrite step = 'o'
	headWrite    step = 'h'
	read10       step = 'r'
	atomicWrite  step = 'a'
	gatedWrite   step = 'g' // waits for the scheduler before it enters the task set
	gatedOrdered step = 'O'
	register     step = 'k'
	preempt      step = 'p' // and abort all others
	reset        step = 'R' // LOGICAL UNIT RESET
	abortSet     step = 'A' // ABORT TASK SET
	copying      step = 'e' // EXTENDED COPY
	background   step = 'b' // the same with IMMED
	abortCopy    step = 'd' // COPY OPERATION ABORT of the last one
	sanitize     step = 'z'
	failing      step = 'n' // with NACA
	acaWrite     step = 'q' // with the ACA attribute
	clearACA     step = 'c'
	takeAway     step = 'u' // the LUN is taken away, and its commands do not end in time
	lose         step = 'x' // the session's last connection
	allSteps          = "worhagOkpRAebdznqcux"
)

// actor is a session on a thread of its own.
type actor struct {
	w      *world
	n      *Nexus
	script string // that is left
	inbox  []message
	tasks  []*act // listed
	behind []*act // go on without an initiator
	ops    []*backstore.Op
	made   int
	copied uint32 // list identifier of the last copy
	lost   bool
}

// act is a task.
type act struct {
	c     Command
	of    *actor
	name  string
	out   []byte
	gated bool
	by    waits.List
}

var memory = sharedPool()

func sharedPool() func() *buf.Pool {
	var p *buf.Pool
	return func() *buf.Pool {
		if p == nil {
			p, _ = buf.NewPool(4<<20, -1)
		}
		return p
	}
}

func (t *act) Alloc(_ *Command, n int) *buf.Ref { return memory().Get(n) }
func (*act) Affords(*Command, int) bool         { return true }
func (*act) Charge(*Command, *buf.Ref)          {}
func (*act) Contain(*Command)                   {}
func (t *act) Complete(*Command)                { t.end() }

func (t *act) Reach(_ *Command, match func(*Nexus) bool) (CSCD, bool) {
	return CSCD{Nexus: t.of.n, Lane: t.of}, match(t.of.n)
}

func (t *act) Background(c *Command, start func(*Command)) bool {
	b := &act{of: t.of, name: t.name + " behind"}
	b.c.Nexus, b.c.Lane, b.c.Port, b.c.CDB = c.Nexus, c.Lane, b, c.CDB
	t.of.behind = append(t.of.behind, b)
	b.c.Adopt(c, start)
	return true
}

func (t *act) SendDataIn(_ *Command, _ uint32, ref *buf.Ref, _ []byte, last bool) {
	if ref != nil {
		ref.Release()
	}
	if last {
		t.end()
	}
}

func (t *act) ReceiveDataOut(c *Command, off uint32, b []byte) {
	copy(b, t.out[off:])
	c.DataOut(off, uint32(len(b)))
}

func (t *act) Wake(_ *Command, work Task)      { t.of.post("wake "+t.name, work.Run) }
func (t *act) Again(_ *Command, work Task)     { t.of.post("again "+t.name, work.Run) }
func (*act) Turn(*Command) int64               { return math.MaxInt64 }
func (*act) Within(*Command, int64, Task) bool { return true }

// TryNow, Submit and Close make an actor its own lane.
func (*actor) TryNow(*backstore.Op) bool { return false }
func (*actor) Close()                    {}
func (s *actor) Submit(op *backstore.Op) bool {
	s.ops = append(s.ops, op)
	return false
}

func (s *actor) post(about string, run func()) { s.inbox = append(s.inbox, message{about, run}) }

// awaitTasks and endTasks are what target's sessions do.
func (s *actor) awaitTasks(match func(*Command) bool, done func()) {
	name := "await for " + s.w.doing
	w := s.w.waiter(name, done)
	s.post(name, func() {
		for _, t := range s.tasks {
			if match(&t.c) {
				w.Awaits(&t.by)
			}
		}
		w.Done()
	})
}

func (s *actor) endTasks(except *Command, done func()) {
	name := "end for " + except.Port.(*act).name
	w := s.w.waiter(name, done)
	s.post(name, func() {
		s.endAll(w, except)
		w.Done()
	})
}

func (s *actor) endAll(w *waits.Waiter, except *Command) {
	for _, t := range slices.Clone(s.tasks) {
		if &t.c != except && slices.Contains(s.tasks, t) {
			w.Ends(&t.by, t.c.Awaiting())
			t.abort()
		}
	}
}

// endCopies ends those in the background.
func (s *actor) endCopies(w *waits.Waiter) {
	for _, b := range slices.Clone(s.behind) {
		if b.c.Copies() {
			w.Awaits(&b.by)
			b.abort()
		}
	}
}

func (t *act) abort() {
	if t.c.Abort() {
		t.end()
	}
}

func (t *act) end() {
	s := t.of
	isIt := func(o *act) bool { return o == t }
	s.tasks, s.behind = slices.DeleteFunc(s.tasks, isIt), slices.DeleteFunc(s.behind, isIt)
	t.by.Ended()
	s.leaveIfIdle()
}

func (s *actor) leaveIfIdle() {
	if s.lost && len(s.tasks) == 0 && !s.n.ended.Load() {
		s.w.lu.Detach(s.n)
	}
}

// take carries out the next letter of the script.
func (s *actor) take() {
	next := step(s.script[0])
	s.script = s.script[1:]
	switch next {
	case reset, abortSet:
		s.manage(next == reset)
	case clearACA:
		s.clearACA()
	case takeAway:
		s.lost = true
		for _, t := range slices.Clone(s.tasks) {
			if slices.Contains(s.tasks, t) && !t.c.Aborted() {
				t.gated = false
				t.c.FailTransfer(sense.LUNotSupported)
			}
		}
		s.leaveIfIdle()
	case lose:
		s.lost = true
		s.endAll(nil, nil)
		s.leaveIfIdle()
	default:
		s.command(next)
	}
}

func (s *actor) manage(all bool) {
	s.w.asked++
	name := fmt.Sprint("reset ", s.w.asked, " by ", s.n.Initiator)
	w := s.w.waiter(name, func() { s.w.answered++ })
	s.endAll(w, nil)
	if all {
		s.endCopies(w)
		for _, o := range s.w.sessions {
			if o != s && (!o.n.ended.Load() || len(o.behind) > 0) {
				w.Add()
				o.post(name, func() {
					o.endAll(w, nil)
					o.endCopies(w)
					w.Done()
				})
			}
		}
		s.w.lu.ResetState()
	}
	w.Done()
}

// clearACA ends the ACA condition and its command.
func (s *actor) clearACA() {
	s.w.asked++
	w := s.w.waiter(fmt.Sprint("CLEAR ACA ", s.w.asked), func() { s.w.answered++ })
	for _, t := range slices.Clone(s.tasks) {
		if t.c.Attribute == ACA {
			w.Ends(&t.by, t.c.Awaiting())
			t.abort()
		}
	}
	s.w.lu.ClearACA(s.n)
	w.Done()
}

// command sends one. All of them are about the same block.
func (s *actor) command(kind step) {
	s.made++
	t := &act{of: s, name: fmt.Sprintf("%s.%c%d", s.n.Initiator[4:6], kind, s.made)}
	cdb := cdb16(0x8a, 0, 0, 1)
	t.out = make([]byte, 512)
	t.c.Attribute = Simple
	switch kind {
	case orderedWrite, gatedOrdered:
		t.c.Attribute = Ordered
	case headWrite:
		t.c.Attribute = HeadOfQueue
	case read10:
		cdb, t.out = cdb16(0x88, 0, 0, 1), nil
		t.c.HasIn, t.c.EDTL = true, 512
	case atomicWrite:
		cdb, t.out = cdb16(0x9c, 0, 0, 8), make([]byte, 4096)
	case register:
		t.out = keys(0, 7, 0)
		cdb = outCDB(reservation.RegisterAndIgnoreExistingKey, 0, t.out)
	case copying, background:
		s.copied++
		t.out = copyLID4(s.copied, [][]byte{naaCSCD(s.w.lu)}, [][]byte{blocksSegment(0, 0, 1, 0, 8, 0)})
		if kind == background {
			t.out[15] = 1
		}
		cdb = copyCDB(1, t.out)
	case abortCopy:
		cdb, t.out = append(binary.BigEndian.AppendUint32([]byte{0x83, 0x1c}, s.copied), make([]byte, 10)...), nil
	case sanitize:
		cdb, t.out = []byte{0x48, 1, 0, 0, 0, 0, 0, 0, 5, 0}, []byte{1, 0, 0, 1, 0}
	case failing:
		cdb, t.out = naca(cdb16(0x88, 0, 1<<40, 1)), nil
	case acaWrite:
		t.c.Attribute = ACA
	case preempt:
		t.out = keys(7, 0, 0)
		cdb = outCDB(reservation.PreemptAndAbort, reservation.WriteExclusiveAllRegistrants, t.out)
	}
	if len(t.out) > 0 {
		t.c.HasOut, t.c.EDTL = true, uint32(len(t.out))
	}
	copy(t.c.CDB[:], cdb)
	t.c.CDBLength, t.c.Nexus, t.c.Lane, t.c.Port = len(cdb), s.n, s, t
	s.tasks = append(s.tasks, t)
	if t.gated = kind == gatedWrite || kind == gatedOrdered; !t.gated {
		s.w.lu.Execute(&t.c)
	}
}
