package target_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/scheduler"
	"lunar/scheduler/haechi"
	"lunar/target"
)

// churnTime is how long each part of the long random test of the gate goes on;
// the environment variable LUNAR_CHURN makes it longer, such as 10m.
func churnTime(t *testing.T) time.Duration {
	v := os.Getenv("LUNAR_CHURN")
	if v == "" {
		return 700 * time.Millisecond
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		t.Fatalf("LUNAR_CHURN: %v", err)
	}
	return d
}

const (
	churners    = 5
	churnDepth  = 12 // commands that an initiator has under way
	slotBlocks  = 64
	churnSlots  = 2 * churnDepth
	churnPeriod = 500 * time.Millisecond
)

// extent is a part of a logical unit that only one initiator uses, in slots of
// which each has one command at a time.
type extent struct {
	lun   uint64
	first uint64 // block
	slots [churnSlots]slot
}

// slot knows what its blocks may hold: by the number of the write, 0 are zeros.
type slot struct {
	busy  bool
	may   [slotBlocks][]uint32
	first uint64 // block
}

// block is what write number n leaves in a block.
func block(owner int, lba uint64, n uint32) []byte {
	b := make([]byte, 512)
	if n == 0 {
		return b
	}
	for i := 0; i < len(b); i += 8 {
		binary.BigEndian.PutUint64(b[i:], uint64(owner)<<56^lba<<32^uint64(n)<<8^uint64(i))
	}
	return b
}

// churner is an initiator: it logs in, uses its extents, breaks off, and again.
type churner struct {
	number  int
	addr    string
	rng     *rand.Rand
	extents []*extent
	writes  uint32
	conn    *initiator.Conn
	ops     []*churnOp
	tokens  *atomic.Int64 // of commands that were answered with GOOD
	count   map[string]int
}

// churnOp is a command of a churner.
type churnOp struct {
	task    *initiator.Task
	extent  *extent
	slot    *slot
	from, n int    // blocks of the slot
	write   uint32 // its number; 0 is a read
}

func newChurner(number int, addr string, seed uint64, tokens *atomic.Int64) *churner {
	c := &churner{number: number, addr: addr, rng: rand.New(rand.NewPCG(seed, uint64(number))), tokens: tokens, count: map[string]int{}}
	for _, lun := range []uint64{0, uint64(1 + number)} { // one that all share, one of its own
		e := &extent{lun: lun, first: uint64(number * churnSlots * slotBlocks)}
		for i := range e.slots {
			e.slots[i].first = e.first + uint64(i*slotBlocks)
			for j := range e.slots[i].may {
				e.slots[i].may[j] = []uint32{0}
			}
		}
		c.extents = append(c.extents, e)
	}
	return c
}

func churnName(number int) string { return fmt.Sprintf("iqn.2026-11.lunar:churn%d", number) }

// login may find the session of before still there and then ends it.
func (c *churner) login() (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c.conn, err = initiator.Dial(ctx, c.addr, initiator.Options{Initiator: churnName(c.number), Target: testTarget})
	if err != nil {
		return err
	}
	c.conn.Timeout = patience
	for _, e := range c.extents {
		if err := c.conn.Ready(e.lun); err != nil {
			return err
		}
	}
	return nil
}

// run is sessions until the end; the last one drains.
func (c *churner) run(stop <-chan struct{}) error {
	for {
		if err := c.login(); err != nil {
			return fmt.Errorf("login: %w", err)
		}
		ended, err := c.session(stop)
		if err != nil || ended {
			c.conn.Close()
			return err
		}
	}
}

func (c *churner) session(stop <-chan struct{}) (ended bool, err error) {
	for range 20 + c.rng.IntN(400) {
		select {
		case <-stop:
			return true, c.logout()
		default:
		}
		if err := c.step(); err != nil {
			return false, err
		}
	}
	if c.rng.IntN(3) > 0 {
		return false, c.logout()
	}
	c.count["killed"]++
	c.lose(func(*churnOp) bool { return true })
	return false, c.conn.Close()
}

// logout waits for all commands before.
func (c *churner) logout() error {
	for len(c.ops) > 0 {
		if err := c.await(); err != nil {
			return err
		}
	}
	c.count["logouts"]++
	if _, err := c.conn.Logout(0); err != nil {
		return fmt.Errorf("logout: %w", err)
	}
	return c.conn.Close()
}

func (c *churner) step() error {
	switch n := c.rng.IntN(1000); {
	case n < 10 && len(c.ops) > 0:
		return c.abort()
	case n < 14:
		return c.endTasks(c.extents[c.rng.IntN(2)], initiator.AbortTaskSet)
	case n < 16:
		return c.endTasks(c.extents[1], initiator.LogicalUnitReset)
	case len(c.ops) < churnDepth && c.conn.WindowOpen():
		return c.start()
	}
	return c.await()
}

// start sends a read or a write.
func (c *churner) start() (err error) {
	e := c.extents[c.rng.IntN(2)]
	s := &e.slots[c.rng.IntN(churnSlots)]
	if s.busy {
		return nil
	}
	op := &churnOp{extent: e, slot: s, from: c.rng.IntN(slotBlocks)}
	op.n = 1 + c.rng.IntN(slotBlocks-op.from)
	cmd := initiator.Command{LUN: e.lun, Attr: initiator.AttrSimple}
	lba := s.first + uint64(op.from)
	if c.rng.IntN(2) == 0 {
		cmd.CDB, cmd.InLen = cdbRead16(lba, uint32(op.n)), 512*op.n
	} else {
		c.writes++
		op.write = c.writes
		cmd.CDB = cdbWrite16(lba, uint32(op.n))
		for i := range op.n {
			cmd.Out = append(cmd.Out, block(c.number, lba+uint64(i), op.write)...)
		}
	}
	s.busy = true
	c.ops = append(c.ops, op)
	op.task, err = c.conn.Start(cmd)
	return err
}

// await waits for something to happen.
func (c *churner) await() error {
	if len(c.ops) == 0 {
		return nil
	}
	if _, err := c.conn.Step(0); err != nil {
		return fmt.Errorf("%d commands are not answered: %w", len(c.ops), err)
	}
	return c.reap()
}

// abort ends one command. What the target does not know it has answered.
func (c *churner) abort() error {
	op := c.ops[c.rng.IntN(len(c.ops))]
	code, err := c.conn.TaskManagement(initiator.TaskRequest{Function: initiator.AbortTask, LUN: op.extent.lun, Referenced: op.task})
	if err != nil {
		return fmt.Errorf("ABORT TASK: %w", err)
	}
	if err := c.reap(); err != nil {
		return err
	}
	if code != 0 && !op.task.Done {
		return fmt.Errorf("ABORT TASK: response %d for a command that was not answered", code)
	}
	c.count["aborted"]++
	c.lose(func(o *churnOp) bool { return o == op })
	return nil
}

// endTasks ends all commands of the initiator on a logical unit.
func (c *churner) endTasks(e *extent, function byte) error {
	code, err := c.conn.TaskManagement(initiator.TaskRequest{Function: function, LUN: e.lun})
	if err != nil || code != 0 {
		return fmt.Errorf("task management function %d: response %d, %w", function, code, err)
	}
	c.count[fmt.Sprintf("function %d", function)]++
	if err := c.reap(); err != nil {
		return err
	}
	c.lose(func(o *churnOp) bool { return o.extent == e })
	return nil
}

// lose forgets commands that get no answer: what they were to write is there
// or not.
func (c *churner) lose(lost func(*churnOp) bool) {
	c.ops = slices.DeleteFunc(c.ops, func(op *churnOp) bool {
		if !lost(op) {
			return false
		}
		c.conn.Forget(op.task)
		op.slot.busy = false
		for i := range op.n {
			if may := &op.slot.may[op.from+i]; op.write != 0 {
				*may = append(slices.Clone(*may), op.write)
			}
		}
		return true
	})
}

// reap takes the commands off that have been answered.
func (c *churner) reap() (err error) {
	c.ops = slices.DeleteFunc(c.ops, func(op *churnOp) bool {
		if op.task.Done {
			op.slot.busy = false
			err = errors.Join(err, c.judge(op))
		}
		return op.task.Done
	})
	return err
}

// judge takes an answer. Nothing but GOOD has written anything.
func (c *churner) judge(op *churnOp) error {
	result := &op.task.Result
	key, _, _ := result.SenseKey()
	switch {
	case result.Response == 0 && result.Status == initiator.StatusGood:
		c.tokens.Add(max(1, int64(op.n)*512/4096))
		c.count["good"]++
	case result.Status == initiator.StatusBusy, result.Status == initiator.StatusTaskSetFull,
		result.Status == initiator.StatusCheckCondition && key == 6: // UNIT ATTENTION
		c.count["put off"]++
		return nil
	default:
		return fmt.Errorf("response %d, status %#x, sense %x", result.Response, result.Status, result.Sense)
	}
	for i := range op.n {
		if op.write != 0 {
			op.slot.may[op.from+i] = []uint32{op.write}
		} else if err := c.compare(op.slot, op.from+i, result.In[512*i:][:512]); err != nil {
			return err
		}
	}
	return nil
}

// compare checks what a block was found to hold; once seen it stays that.
func (c *churner) compare(s *slot, i int, found []byte) error {
	lba := s.first + uint64(i)
	for _, n := range s.may[i] {
		if string(block(c.number, lba, n)) == string(found) {
			s.may[i] = []uint32{n}
			return nil
		}
	}
	return fmt.Errorf("block %d: found %x..., expected that of write %d", lba, found[:16], s.may[i])
}

// readBack checks all that the initiator has written.
func (c *churner) readBack() error {
	if err := c.login(); err != nil {
		return err
	}
	defer c.conn.Close()
	for _, e := range c.extents {
		for i := range e.slots {
			s := &e.slots[i]
			res, err := c.conn.Command(cdbRead16(s.first, slotBlocks), e.lun, nil, 512*slotBlocks)
			if err != nil || res.Status != 0 {
				return fmt.Errorf("read back: %w, %+v", err, res)
			}
			for j := range slotBlocks {
				if err := c.compare(s, j, res.In[512*j:][:512]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// churnOptions say how a part of the test differs.
type churnOptions struct {
	seed       uint64
	always     []scheduler.Rule // with them there are rules at all times
	unreserved bool             // no rule reserves anything
}

// churn lets initiators come, go and do I/O while rules change, until during
// returns. At the end all data is right and nothing is left.
func churn(t *testing.T, r *rig, o churnOptions, during func()) (tokens int64) {
	var served atomic.Int64
	var initiators []*churner
	var running, changing sync.WaitGroup
	stop, still := make(chan struct{}), make(chan struct{})
	rules := &ruleChanger{rig: r, options: o, rng: rand.New(rand.NewPCG(o.seed, 99))}
	rules.change() // before there is a rule nothing is counted
	for i := range churners {
		c := newChurner(i, r.addr, o.seed, &served)
		initiators = append(initiators, c)
		running.Go(func() {
			if err := c.run(stop); err != nil {
				t.Errorf("initiator %d: %v", c.number, err)
			}
		})
	}
	changing.Go(func() { rules.changes(still) })
	during()
	close(stop)
	running.Wait() // while rules go on changing
	close(still)
	changing.Wait()
	r.expectNothing()
	r.lift()
	for _, c := range initiators {
		t.Logf("initiator %d: %v", c.number, c.count)
		if err := c.readBack(); err != nil {
			t.Errorf("initiator %d: %v", c.number, err)
		}
	}
	r.expectNothing()
	return served.Load()
}

// checkFlows checks what the scheduler tells.
func checkFlows(t testing.TB, status target.QoSStatus) {
	for i := range status.Flows {
		f := &status.Flows[i]
		n := &f.Counters
		if n.Reserved+n.Normal+n.Opportunistic+n.Cancelled+int64(f.Waiting) != n.Offered || n.Served > n.Offered || f.Waiting < 0 {
			t.Errorf("%v on thread %d: %+v, %d waiting: not every command was dispatched, or cancelled, once", f.Flow, f.Thread, *n, f.Waiting)
		}
	}
}

// expectNothing waits until the server holds nothing on behalf of initiators.
func (r *rig) expectNothing() {
	r.t.Helper()
	type left struct {
		target.Holding
		flows, waiting int
	}
	eventually.Finds(r.t, "what is left", left{}, func() left {
		return left{r.server.Holding(), len(r.server.QoS("").Flows), r.waiting()}
	})
}

// churnRig has a device for each unit, or one of a known capacity for all.
func churnRig(t *testing.T, mode scheduler.PoolMode, capacity int64) *rig {
	qos := target.QoS{
		Gate: scheduler.GateConfig{Window: 6, Mode: mode, Period: int64(churnPeriod), Batch: 10},
		Coordinator: scheduler.CoordinatorConfig{Period: int64(churnPeriod),
			Monitor: haechi.MonitorConfig{Estimator: haechi.EstimatorConfig{Profile: capacity, Slack: 0.002}}},
	}
	o := rigOptions{lus: 3 + churners, config: target.Config{Threads: 3, QoS: qos}}
	if capacity > 0 {
		o.device = "disk"
		for range o.lus {
			store, err := backstore.NewRAM(16<<20, 512)
			if err != nil {
				t.Fatal(err)
			}
			o.stores = append(o.stores, copied{store})
		}
	}
	return newRig(t, o)
}

// TestGateChurn: initiators log in and out, connections are killed, commands are
// aborted and rules changed, or taken away, while I/O runs on several threads.
func TestGateChurn(t *testing.T) {
	churn(t, churnRig(t, scheduler.SoftPool, 0), churnOptions{seed: 1}, func() { time.Sleep(churnTime(t)) })
}

// sample is a command of which it is known that it was let pass between two
// times.
type sample struct{ sent, answered time.Duration }

// TestLimitHoldsOverThreads: an initiator with sessions on two event threads is
// held to its limit over every time, while others come and go and other rules
// change.
func TestLimitHoldsOverThreads(t *testing.T) {
	const name, rate, total = "iqn.2026-11.lunar:limited", 1000, 300
	limit := scheduler.Rule{Name: "limited", Initiators: []string{name}, Limit: scheduler.Rate{IOPS: rate}}
	r := churnRig(t, scheduler.SoftPool, 0)
	churn(t, r, churnOptions{seed: 3, always: []scheduler.Rule{limit}}, func() {
		a, b := r.limited(name, 1), r.limited(name, 2)
		r.apart(name, a, b)
		var measuring sync.WaitGroup
		var samples [2][]sample
		began := time.Now()
		measuring.Go(func() { samples[0] = probe(t, a, 0, total, began) })
		measuring.Go(func() { samples[1] = probe(t, b, 2+churners, total, began) })
		measuring.Wait()
		expectLimit(t, append(samples[0], samples[1]...), rate)
		a.Close()
		b.Close()
	})
}

// limited logs one of several sessions of an initiator in.
func (r *rig) limited(name string, session byte) *initiator.Conn {
	c := r.login(initiator.Options{Initiator: name, ISID: [6]byte{0x80, 0, 0, 0, 0, session}})
	c.Timeout = patience
	if err := c.Ready(2 + churners); err != nil {
		r.t.Fatal(err)
	}
	return c
}

// apart uses two sessions until they are served by different threads, each with
// its share of the limit.
func (r *rig) apart(name string, a, b *initiator.Conn) {
	eventually.Holds(r.t, "the sessions are on two threads, and their shares within the limit", func() bool {
		if r.areApart(name) {
			return true
		}
		for c, lun := range map[*initiator.Conn]uint64{a: 0, b: 2 + churners} {
			res, err := c.Command(cdbRead16(0, 8), lun, nil, 4096)
			mustGood(r.t, res, err)
		}
		return false
	})
}

func (r *rig) areApart(name string) bool {
	shares, sum := map[int]int64{}, int64(0)
	for _, f := range r.server.QoS(name).Flows {
		for _, e := range f.Effects {
			if e.Rule == "limited" && f.Thread >= 0 {
				shares[f.Thread] = e.Share
			}
		}
	}
	for _, n := range shares {
		sum += n
	}
	return len(shares) == 2 && sum <= 1_000_000
}

// probe runs reads of 4 KiB and keeps some under way.
func probe(t *testing.T, c *initiator.Conn, lun uint64, total int, began time.Time) (samples []sample) {
	var tasks []*initiator.Task
	var sent []time.Duration
	for len(samples) < total {
		for len(tasks) < 8 && c.WindowOpen() {
			sent = append(sent, time.Since(began))
			task, err := c.Start(initiator.Command{CDB: cdbRead16(uint64(8*len(tasks)), 8), LUN: lun, InLen: 4096})
			if err != nil {
				t.Error(err)
				return nil
			}
			tasks = append(tasks, task)
		}
		if _, err := c.Wait(tasks[0]); err != nil {
			t.Error(err)
			return nil
		}
		samples = append(samples, sample{sent[0], time.Since(began)})
		tasks, sent = tasks[1:], sent[1:]
	}
	return samples
}

// expectLimit checks that what was let pass in any time is no more than the
// limit: for two threads with a burst of 10 ms and one command each, and a tenth
// for shares that move from one to the other.
func expectLimit(t *testing.T, samples []sample, rate float64) {
	t.Helper()
	slices.SortFunc(samples, func(a, b sample) int { return int(a.answered - b.answered) })
	for _, from := range samples {
		n := 0.0
		for _, s := range samples {
			if s.sent < from.sent {
				continue
			}
			n++
			time := s.answered - from.sent
			if most := 1.1*rate*time.Seconds() + 2*rate/100 + 2; n > most {
				t.Fatalf("%.0f commands in %v, expected at most %.0f", n, time, most)
			}
		}
	}
}
