package scsi

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lunar/backstore"
	"lunar/internal/buf"
	"lunar/internal/waits"
	"lunar/target/scsi/reservation"
)

// What follows looks for circles of those who wait for each other. A world is a logical
// unit with sessions that carry out a script: commands, resets, and their own end. All
// that happens in it is events that the test chooses: a command arrives, an operation of
// the store ends, a message from one thread to another is taken. explore tries every
// order, and in every one all has to end: nothing here but time-outs would undo a circle.
//
// The logical unit, its task set, registrar and atomic writes, and internal/waits are
// the real ones. A session here does what target's does with its tasks.

// step is a letter of a script.
type step byte

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
	lose         step = 'x' // the session's last connection
	allSteps          = "worhagOkpRAx"
)

// world is the server. Its event loop is the test.
type world struct {
	lu       *LogicalUnit
	sessions []*actor
	asked    int // functions
	answered int
	doing    string                   // the event that is being carried out
	names    map[*waits.Waiter]string // of those who wait
}

// waiter is waits.New with a name by which states are told apart.
func (w *world) waiter(name string, passed func()) *waits.Waiter {
	waiter := waits.New(passed)
	w.names[waiter] = name
	return waiter
}

// actor is a session on a thread of its own.
type actor struct {
	w      *world
	n      *Nexus
	script string // that is left
	inbox  []message
	tasks  []*act // listed
	ops    []*backstore.Op
	made   int
	lost   bool
}

// message is what was posted to a thread.
type message struct {
	about string
	run   func()
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

func (t *act) Alloc(_ *Command, n int) *buf.Ref             { return memory().Get(n) }
func (*act) Affords(*Command, int) bool                     { return true }
func (*act) Charge(*Command, *buf.Ref)                      {}
func (*act) Reach(*Command, func(*Nexus) bool) (CSCD, bool) { return CSCD{}, false }
func (*act) Background(*Command, func(*Command)) bool       { return false }
func (*act) Contain(*Command)                               {}
func (t *act) Complete(*Command)                            { t.end() }

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

func (t *act) Wake(_ *Command, work Task) { t.of.post("wake "+t.name, work.Run) }

// TryNow, Submit and Close make an actor its own lane.
func (*actor) TryNow(*backstore.Op) bool { return false }
func (*actor) Close()                    {}
func (s *actor) Submit(op *backstore.Op) bool {
	s.ops = append(s.ops, op)
	return false
}

func (s *actor) post(about string, run func()) { s.inbox = append(s.inbox, message{about, run}) }

// newWorld is one in which all sessions are registered, and whoever preempts, preempts
// all others.
func newWorld(t testing.TB, script []string) *world {
	lu, err := NewLogicalUnit(LUConfig{Name: "v", Store: infoStore{diskInfo()}, Logger: quietLogger, Reservations: allRegistered()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{lu: lu, names: make(map[*waits.Waiter]string)}
	for i, text := range script {
		s := &actor{w: w, script: text}
		s.n = &Nexus{LU: lu, Initiator: portName(i), Target: "iqn.t", TargetTag: 1, Ports: func() []uint16 { return []uint16{1} }, Map: func() []uint64 { return []uint64{0} }}
		s.n.AwaitTasks, s.n.EndTasks = s.awaitTasks, s.endTasks
		lu.Attach(s.n)
		w.sessions = append(w.sessions, s)
	}
	return w
}

var quietLogger = testLogger(io.Discard)

func portName(i int) string { return reservation.PortName(fmt.Sprint("iqn.h", i), 1) }

func allRegistered() *reservation.State {
	s := new(reservation.State)
	for i := range 3 {
		from := reservation.Nexus{Initiator: portName(i), Target: "iqn.t", Port: 1}
		change, refusal := s.Apply(&reservation.Request{Action: reservation.Register, From: from, ServiceKey: 7})
		if refusal != nil {
			panic(refusal)
		}
		if i == 2 {
			change, refusal = change.Next.Apply(&reservation.Request{Action: reservation.Reserve, From: from, Key: 7, Type: reservation.WriteExclusiveAllRegistrants})
			if refusal != nil {
				panic(refusal)
			}
		}
		s = change.Next
	}
	return s
}

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

func (t *act) abort() {
	if t.c.Abort() {
		t.end()
	}
}

func (t *act) end() {
	s := t.of
	s.tasks = slices.DeleteFunc(s.tasks, func(o *act) bool { return o == t })
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
		for _, o := range s.w.sessions {
			if o != s && !o.n.ended.Load() {
				w.Add()
				o.post(name, func() {
					o.endAll(w, nil)
					w.Done()
				})
			}
		}
		s.w.lu.ResetState()
	}
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

// events are what can happen next.
func (w *world) events() (all []message) {
	for i, s := range w.sessions {
		if len(s.script) > 0 && !s.lost {
			all = append(all, message{fmt.Sprintf("session %d: %c", i, s.script[0]), s.take})
		}
		if len(s.inbox) > 0 {
			m := s.inbox[0]
			all = append(all, message{fmt.Sprintf("session %d takes %q", i, m.about), func() { s.inbox = s.inbox[1:]; m.run() }})
		}
		for j, op := range s.ops {
			all = append(all, message{fmt.Sprintf("session %d: an operation ends", i), func() { s.ops = slices.Delete(s.ops, j, j+1); op.Done(op) }})
		}
		for _, t := range s.tasks {
			if t.gated {
				all = append(all, message{"the gate opens for " + t.name, func() { t.gated = false; w.lu.Execute(&t.c) }})
			}
		}
	}
	return all
}

// calm waits until no goroutine but the test's does anything, and takes away what would
// hide circles or commands: time-outs and unit attentions.
func (w *world) calm() {
	for r := &w.lu.registrar; ; runtime.Gosched() {
		r.mu.Lock()
		busy := r.mu.running
		r.mu.Unlock()
		if !busy {
			break
		}
	}
	for _, t := range w.lu.atomics.turns {
		if t.patience != nil {
			t.patience.Stop()
		}
	}
	for _, s := range w.sessions {
		for s.n.attentions.pending.Load() {
			s.n.takeAttention()
		}
	}
}

// forget gives back the memory of a world that is left as it is.
func (w *world) forget() {
	for _, s := range w.sessions {
		for _, t := range s.tasks {
			for i := range t.c.seg {
				if ref := t.c.seg[i].ref; ref != nil {
					ref.Release()
				}
			}
			if t.c.list != nil {
				t.c.list.Release()
			}
		}
	}
}

// unended tells what has not ended; empty if all has.
func (w *world) unended() string {
	var b strings.Builder
	for _, s := range w.sessions {
		for _, t := range s.tasks {
			fmt.Fprintf(&b, "%s (dormant %v, aborted %v, running %d, awaiting %v) ", t.name, t.c.Dormant(), t.c.Aborted(), t.c.running, t.c.Awaiting())
		}
	}
	if w.asked != w.answered {
		fmt.Fprintf(&b, "%d functions ", w.asked-w.answered)
	}
	if len(w.lu.atomics.turns) > 0 || w.lu.tasks.watched.Load() {
		fmt.Fprintf(&b, "%d turns, task set watched %v", len(w.lu.atomics.turns), w.lu.tasks.watched.Load())
	}
	return b.String()
}

// fingerprint is the same for states that differ in nothing that matters.
func (w *world) fingerprint() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d%d|", w.asked, w.answered)
	for _, s := range w.sessions {
		fmt.Fprintf(&b, "%s %v", s.script, s.lost)
		for _, m := range s.inbox {
			fmt.Fprint(&b, ",", m.about)
		}
		for _, op := range s.ops {
			fmt.Fprint(&b, ";", op.Kind)
		}
		for _, t := range s.tasks {
			c := &t.c
			fmt.Fprint(&b, "/", t.name, t.gated, c.running, c.ending, c.aborted, c.awaiting, c.reads, c.turn)
			if c.place != nil {
				fmt.Fprint(&b, c.place.granted, c.place.Turn)
			}
			if c.atomic != nil {
				fmt.Fprint(&b, c.atomic.state, slices.Index(w.lu.atomics.turns, c.atomic))
			}
			if c.tail > c.head {
				fmt.Fprint(&b, c.at(c.head).state, c.at(c.head).phase)
			}
			for _, waiter := range t.by {
				fmt.Fprint(&b, "<", w.names[waiter])
			}
		}
		b.WriteByte('|')
	}
	for _, r := range w.lu.reservations.Load().Registrations() {
		fmt.Fprint(&b, r.Initiator)
	}
	return b.String()
}

// explore tries every order of events of a script and returns how many states there
// are, and the first way to one in which something waits for ever.
func explore(t testing.TB, script []string) (states int, circle string) {
	seen := make(map[string]struct{})
	var path, choices []int
	for {
		w, i := newWorld(t, script), 0
		w.calm()
		var trace []string
		for ; ; i++ {
			events := w.events()
			if len(events) == 0 {
				if left := w.unended(); left != "" {
					return len(seen), fmt.Sprintf("%s wait for ever after:\n\t%s", left, strings.Join(trace, "\n\t"))
				}
				break
			}
			if i == len(path) {
				state := w.fingerprint()
				if _, known := seen[state]; known {
					break
				}
				seen[state] = struct{}{}
				path, choices = append(path, 0), append(choices, len(events))
			}
			event := events[path[i]]
			trace = append(trace, event.about)
			w.doing = event.about
			event.run()
			w.calm()
		}
		w.forget()
		for i = len(path) - 1; i >= 0 && path[i]+1 == choices[i]; i-- {
			path, choices = path[:i], choices[:i]
		}
		if i < 0 {
			return len(seen), ""
		}
		path[i]++
	}
}

// scripts calls f with all scripts of n of the letters for up to three sessions, but for
// those that differ from another one only in which session is which.
func scripts(letters string, n int, f func([]string)) {
	var words func(prefix string, n int, then func(string))
	words = func(prefix string, n int, then func(string)) {
		if n == 0 {
			then(prefix)
			return
		}
		for _, letter := range letters {
			if !strings.HasSuffix(prefix, string(lose)) {
				words(prefix+string(letter), n-1, then)
			}
		}
	}
	for a := 1; a <= n; a++ {
		for b := (n - a + 1) / 2; b <= min(a, n-a); b++ {
			words("", a, func(first string) {
				words("", b, func(second string) {
					words("", n-a-b, func(third string) {
						if (a > b || first >= second) && (b > n-a-b || second >= third) {
							f([]string{first, second, third})
						}
					})
				})
			})
		}
	}
}

// TestNobodyWaitsInACircle explores all that sessions can do with few tasks, in every
// order. LUNAR_CIRCLES=4 tries more of them, and makes a larger crowd.
func TestNobodyWaitsInACircle(t *testing.T) {
	rounds := []struct {
		letters string
		tasks   int
	}{{allSteps, 2}, {"pkow", 3}}
	if n, err := strconv.Atoi(os.Getenv("LUNAR_CIRCLES")); err == nil {
		rounds[0].tasks, rounds[1].tasks = min(n, 3), n
	}
	for _, r := range rounds {
		n, states := 0, 0
		scripts(r.letters, r.tasks, func(script []string) {
			more, circle := explore(t, script)
			n, states = n+1, states+more
			if circle != "" {
				t.Fatalf("%q: %s", script, circle)
			}
		})
		t.Logf("%d scripts of %d of %s, %d states", n, r.tasks, r.letters, states)
	}
}

// TestCrowd: three sessions with four tasks each, of which there are too many to try
// every order.
func TestCrowd(t *testing.T) {
	walks := 2000
	if n, err := strconv.Atoi(os.Getenv("LUNAR_CIRCLES")); err == nil {
		walks *= 100 * n
	}
	for seed := range walks {
		random := rand.New(rand.NewPCG(uint64(seed), 3))
		script := make([]string, 3)
		for i := range script {
			for range 4 {
				script[i] += string(allSteps[random.IntN(len(allSteps))])
			}
		}
		w := newWorld(t, script)
		for events := w.events(); len(events) > 0; events = w.events() {
			events[random.IntN(len(events))].run()
			w.calm()
		}
		if left := w.unended(); left != "" {
			t.Fatalf("seed %d, %q: %s wait for ever", seed, script, left)
		}
	}
}
