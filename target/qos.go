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
	Threads    []scheduler.ThreadStatus            // in order
	Flows      []scheduler.Explanation             // by event thread; of thread -1 what queues had counted that are gone
	Attainment map[string][]scheduler.PeriodResult // by entity, as far as it has a rule
	Fulfilment map[string]scheduler.Fulfilment     // as Attainment
	Classes    []ConnectionClass                   // of connections, where the network knows them, in no order
	Lapsed     bool                                // nothing is heard of the coordinator over all nodes
}

// qos is the coordinator of the gates of all event threads. It lives on a
// goroutine of its own and reaches the gates by posting to their threads.
type qos struct {
	gates   []*gate                    // by thread
	units   func() []*scsi.LogicalUnit // that there are
	stop    chan struct{}
	ended   sync.WaitGroup
	ledger  ledger
	devices devices

	mu struct {
		sync.Mutex
		policy      *scheduler.Policy
		coordinator *scheduler.Coordinator
		threads     []scheduler.Thread
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

func newQoS(config QoS, threads int, units func() []*scsi.LogicalUnit) *qos {
	q := &qos{units: units, stop: make(chan struct{})}
	config.Coordinator.Threads = threads
	q.mu.policy = config.Policy
	if q.mu.policy == nil {
		q.mu.policy = &scheduler.Policy{}
	}
	q.mu.coordinator = scheduler.NewCoordinator(config.Coordinator)
	q.mu.threads = make([]scheduler.Thread, threads)
	q.mu.reports = make([]*scheduler.GateReport, threads)
	for i := range q.mu.reports {
		q.mu.reports[i] = new(scheduler.GateReport)
	}
	q.mu.grants = make([]scheduler.GateGrant, threads)
	return q
}

// start puts the policy into force and begins to coordinate.
func (q *qos) start() {
	q.set(q.mu.policy)
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
	q.collect(now)
	if now < c.Deadline() {
		c.Check(now)
		if !c.Welcome(now, q.mu.grants) {
			return
		}
	} else {
		c.Redistribute(now, q.mu.grants)
	}
	q.grantAll()
}

// collect takes the gates' reports.
func (q *qos) collect(now int64) {
	for i := range q.mu.reports {
		if q.ask(i) {
			q.mu.coordinator.Collect(q.mu.reports[i])
			load := q.gates[i].loop.Stats()
			q.mu.threads[i].Observe(now, q.mu.reports[i].Done, int64(load.Run-load.Idle))
		}
	}
}

func (q *qos) grantAll() {
	for i := range q.mu.grants {
		q.grant(i)
	}
}

// report fills what the coordinator over all nodes is to know.
func (q *qos) report(r *scheduler.GateReport) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.Servers = r.Servers[:0]; q.mu.policy.Empty() || q.mu.ended {
		return
	}
	q.collect(evloop.Monotonic())
	q.mu.coordinator.Report(r)
}

// obey puts a grant of that coordinator into force.
func (q *qos) obey(g *scheduler.NodeGrant) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.policy.Empty() || q.mu.ended {
		return
	}
	now := evloop.Monotonic()
	q.mu.coordinator.Take(g, now)
	q.mu.coordinator.Redistribute(now, q.mu.grants)
	q.grantAll()
}

func (q *qos) setNodes(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.coordinator.SetNodes(int64(n))
}

// ask gets a thread's report. After answerTime the report's memory belongs to
// the thread: there is a new one for the next time.
func (q *qos) ask(i int) bool {
	r, g, done := q.mu.reports[i], q.gates[i], make(chan struct{})
	g.loop.Post(evloop.Func(func() { g.Report(r, g.loop.Now()); close(done) }))
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
	grant, g := q.mu.grants[i], q.gates[i]
	q.mu.grants[i] = scheduler.GateGrant{}
	g.loop.Post(evloop.Func(func() {
		g.Grant(&grant, g.loop.Now())
		g.dispatch()
	}))
}

// forget drops the device of a logical unit that was removed, if it was the last
// one there.
func (q *qos) forget(lu *scsi.LogicalUnit) {
	if d := q.devices.forget(lu.Device(), q.units); d != nil {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.mu.coordinator.Forget(d)
	}
}

func (q *qos) set(p *scheduler.Policy) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.policy = p
	q.atGates(func(g *gate) { g.apply(p) })
	q.ledger.forget()
}

func (q *qos) setCapacities(tokens map[string]int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.coordinator.SetProfiles(tokens)
}

func (q *qos) policy() *scheduler.Policy {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.policy
}

func (q *qos) status(initiator string) QoSStatus {
	q.mu.Lock()
	defer q.mu.Unlock()
	status := QoSStatus{
		Lapsed:     q.mu.coordinator.Lapsed(),
		Attainment: map[string][]scheduler.PeriodResult{},
		Fulfilment: map[string]scheduler.Fulfilment{},
	}
	for _, d := range q.devices.ofAll(q.units()) {
		status.Devices = append(status.Devices, q.mu.coordinator.Status(d))
	}
	for i, g := range q.gates {
		status.Threads = append(status.Threads, q.mu.threads[i].Status(g.loop.Name()))
	}
	status.Flows, status.Classes = q.flows(initiator), q.classes(initiator)
	for i := range status.Flows {
		for _, e := range q.mu.policy.Resolve(status.Flows[i].Flow) {
			if e.Key != "" && e.Rule != nil {
				status.Attainment[e.Key] = q.mu.coordinator.Attainment(e.Key)
				status.Fulfilment[e.Key] = q.mu.coordinator.Fulfilment(e.Key)
			}
		}
	}
	return status
}

// flowsTries bounds how often flows looks again because queues have closed
// meanwhile, so that their counts may be there twice.
const flowsTries = 4

// flows are what all threads and the ledger have of an initiator.
func (q *qos) flows(initiator string) []scheduler.Explanation {
	_, before := q.ledger.read(initiator, nil)
	for try := 1; ; try++ {
		now, after := q.ledger.read(initiator, q.flowsAtGates(initiator))
		if after == before || try == flowsTries {
			return now
		}
		before = after
	}
}

func (q *qos) flowsAtGates(initiator string) (all []scheduler.Explanation) {
	var mu sync.Mutex
	q.atGates(func(g *gate) {
		flows := g.Explain(initiator, g.loop.Now())
		mu.Lock()
		defer mu.Unlock()
		all = append(all, flows...)
	})
	return all
}

// classes are the classes of connections on all threads.
func (q *qos) classes(initiator string) (all []ConnectionClass) {
	if !q.mu.policy.Network().Active() {
		return nil
	}
	var mu sync.Mutex
	q.atGates(func(g *gate) {
		some := g.classes(initiator)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, some...)
	})
	return all
}

// atGates runs f for the gate of every event thread, there, and waits for all. The
// caller holds mu.
func (q *qos) atGates(f func(*gate)) {
	if q.mu.ended {
		return
	}
	var done sync.WaitGroup
	for _, g := range q.gates {
		done.Add(1)
		g.loop.Post(evloop.Func(func() { defer done.Done(); f(g) }))
	}
	done.Wait()
}
