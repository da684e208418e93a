package target

import (
	"sync"
	"time"

	"lunar/internal/evloop"
	"lunar/scheduler"
	"lunar/target/scsi"
)

// QoS sets the token scheduler.
type QoS struct {
	Policy      *scheduler.Policy // nil: no rules
	Gate        scheduler.GateConfig
	Coordinator scheduler.CoordinatorConfig // Threads is the server's
}

// QoSStatus is what the scheduler has given and to whom.
type QoSStatus struct {
	Devices    []scheduler.DeviceStatus            // of the logical units, by name; a period is a second
	Flows      []scheduler.Explanation             // by event thread; of thread -1 what queues had counted that are gone
	Attainment map[string][]scheduler.PeriodResult // by entity, as far as it has a rule
	Kept       map[string]scheduler.Kept           // as Attainment
}

// qos is the coordinator of the gates of all event threads. It lives on a
// goroutine of its own and reaches the gates by posting to their threads.
type qos struct {
	server  *Server
	stop    chan struct{}
	ended   sync.WaitGroup
	ledger  ledger
	devices devices

	mu struct {
		sync.Mutex
		policy      *scheduler.Policy
		coordinator *scheduler.Coordinator
		reports     []*scheduler.GateReport
		grants      []scheduler.GateGrant
		ended       bool // the event threads answer no more
	}
}

const (
	// reportTime is how often the gates report: unused reservations are
	// converted as often.
	reportTime = 20 * time.Millisecond
	// answerTime bounds the wait for a thread's report. One that is late goes on
	// with what it has.
	answerTime = time.Second
)

func newQoS(s *Server, config QoS, threads int) *qos {
	q := &qos{server: s, stop: make(chan struct{})}
	config.Coordinator.Threads = threads
	q.mu.policy = config.Policy
	if q.mu.policy == nil {
		q.mu.policy = &scheduler.Policy{}
	}
	q.mu.coordinator = scheduler.NewCoordinator(config.Coordinator)
	q.mu.reports = make([]*scheduler.GateReport, threads)
	for i := range q.mu.reports {
		q.mu.reports[i] = new(scheduler.GateReport)
	}
	q.mu.grants = make([]scheduler.GateGrant, threads)
	return q
}

// start puts the policy into force and begins to coordinate.
func (q *qos) start() {
	q.server.SetQoS(q.mu.policy)
	q.ended.Go(q.run)
}

// end is called while the event threads still run: whoever has asked them gets
// an answer, and nobody asks them after it.
func (q *qos) end() {
	close(q.stop)
	q.ended.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.ended = true
}

func (q *qos) run() {
	timer := time.NewTimer(reportTime)
	defer timer.Stop()
	for {
		select {
		case <-q.stop:
			return
		case <-timer.C:
			q.coordinate()
			timer.Reset(q.pause())
		}
	}
}

// pause is how long it is until coordinate is due again: at the end of an
// interval on time, since periods that begin late would be longer than what is
// promised for them.
func (q *qos) pause() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.policy.Empty() {
		return reportTime
	}
	return max(0, min(reportTime, time.Duration(q.mu.coordinator.Deadline()-evloop.Monotonic())))
}

// coordinate takes the gates' reports and hands out what follows from them.
func (q *qos) coordinate() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.policy.Empty() {
		return
	}
	c, now := q.mu.coordinator, evloop.Monotonic()
	for i := range q.mu.reports {
		if q.ask(i) {
			c.Collect(q.mu.reports[i])
		}
	}
	if now < c.Deadline() {
		c.Check(now)
		if !c.Welcome(now, q.mu.grants) {
			return
		}
	} else {
		c.Redistribute(now, q.mu.grants)
	}
	for i := range q.mu.grants {
		q.grant(i)
	}
}

// ask gets a thread's report. After answerTime the report's memory belongs to
// the thread: there is a new one for the next time.
func (q *qos) ask(i int) bool {
	r, th, done := q.mu.reports[i], q.server.threads[i], make(chan struct{})
	th.loop.Post(evloop.Func(func() { th.gate.Report(r, th.loop.Now()); close(done) }))
	select {
	case <-done:
		return true
	case <-time.After(answerTime):
		q.mu.reports[i] = new(scheduler.GateReport)
		return false
	}
}

// grant hands a thread its grant, which is the thread's from then on.
func (q *qos) grant(i int) {
	g, th := q.mu.grants[i], q.server.threads[i]
	q.mu.grants[i] = scheduler.GateGrant{}
	th.loop.Post(evloop.Func(func() {
		th.gate.Grant(&g, th.loop.Now())
		th.gate.dispatch()
	}))
}

// forget drops the device of a logical unit that was removed, if it was the last
// one there.
func (q *qos) forget(lu *scsi.LogicalUnit) {
	if d := q.devices.forget(lu.Device(), q.server.LogicalUnits); d != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.mu.coordinator.Forget(d)
	}
}

// SetQoS puts a policy into force on all event threads before it returns.
// Sessions, and commands that wait, are not touched but for the rates that they
// get. After Shutdown there is nothing left that it could rule.
func (s *Server) SetQoS(p *scheduler.Policy) {
	s.qos.mu.Lock()
	defer s.qos.mu.Unlock()
	s.qos.mu.policy = p
	s.onThreads(func(th *thread) { th.gate.apply(p) })
	s.qos.ledger.forget()
}

// SetCapacities says what devices can do, in tokens/s by name, 0 if it is to be
// learnt: it counts for those that come from now on, and at once for those of
// which something else was said before.
func (s *Server) SetCapacities(tokens map[string]int64) {
	s.qos.mu.Lock()
	defer s.qos.mu.Unlock()
	s.qos.mu.coordinator.SetProfiles(tokens)
}

// QoSPolicy is the policy in force.
func (s *Server) QoSPolicy() *scheduler.Policy {
	s.qos.mu.Lock()
	defer s.qos.mu.Unlock()
	return s.qos.mu.policy
}

// QoS says what the scheduler does for an initiator; an empty name is all. After
// Shutdown it has no flows.
func (s *Server) QoS(initiator string) QoSStatus {
	q := s.qos
	q.mu.Lock()
	defer q.mu.Unlock()
	status := QoSStatus{
		Attainment: map[string][]scheduler.PeriodResult{},
		Kept:       map[string]scheduler.Kept{},
	}
	for _, d := range q.devices.ofAll(s.LogicalUnits()) {
		status.Devices = append(status.Devices, q.mu.coordinator.Status(d))
	}
	status.Flows = s.flows(initiator)
	for i := range status.Flows {
		for _, e := range q.mu.policy.Resolve(status.Flows[i].Flow) {
			if e.Key != "" && e.Rule != nil {
				status.Attainment[e.Key] = q.mu.coordinator.Attainment(e.Key)
				status.Kept[e.Key] = q.mu.coordinator.Kept(e.Key)
			}
		}
	}
	return status
}

// flowsTries bounds how often flows looks again because queues have closed
// meanwhile, so that their counts may be there twice.
const flowsTries = 4

// flows are what all threads and the ledger have of an initiator.
func (s *Server) flows(initiator string) []scheduler.Explanation {
	_, before := s.qos.ledger.read(initiator, nil)
	for try := 1; ; try++ {
		now, after := s.qos.ledger.read(initiator, s.flowsOnThreads(initiator))
		if after == before || try == flowsTries {
			return now
		}
		before = after
	}
}

func (s *Server) flowsOnThreads(initiator string) (all []scheduler.Explanation) {
	var mu sync.Mutex
	s.onThreads(func(th *thread) {
		flows := th.gate.Explain(initiator, th.loop.Now())
		mu.Lock()
		defer mu.Unlock()
		all = append(all, flows...)
	})
	return all
}

// onThreads runs f on every event thread and waits for all. The caller holds
// qos.mu.
func (s *Server) onThreads(f func(*thread)) {
	if s.qos.mu.ended {
		return
	}
	var done sync.WaitGroup
	for _, th := range s.threads {
		done.Add(1)
		th.loop.Post(evloop.Func(func() { defer done.Done(); f(th) }))
	}
	done.Wait()
}
