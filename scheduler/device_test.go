package scheduler

import (
	"testing"

	"lunar/scheduler/haechi"
)

// apart are two devices of different speed that one event thread serves, each by
// a gate's commands in order of dispatch.
type apart struct {
	*alone
	disks []*Device
	speed []int // commands per ms; below 0 one in so many
	busy  [][]*Task
	count map[*Queue]int64
}

func newApart(t *testing.T, threads int, speed []int, rules ...Rule) *apart {
	a := &apart{alone: newAlone(t, GateConfig{Window: 16, Threads: threads}, rules...), speed: speed, busy: make([][]*Task, len(speed)), count: map[*Queue]int64{}}
	a.coord = NewCoordinator(CoordinatorConfig{Threads: max(1, threads), Profiles: map[string]int64{"fast": 10_000, "slow": 1000},
		Monitor: haechi.MonitorConfig{Estimator: haechi.EstimatorConfig{Slack: 0.002}}})
	a.disks = []*Device{{Name: "fast"}, {Name: "slow"}}
	return a
}

func (a *apart) open(initiator string, disk int) *Queue {
	return a.gate.Open(Flow{Initiator: initiator, Target: "iqn.target", LUN: uint64(disk)}, a.disks[disk], a.now)
}

// run is so many milliseconds in which initiators keep depth commands
// outstanding on each queue.
func (a *apart) run(milliseconds, depth int, queues ...*Queue) {
	for range milliseconds {
		if a.now >= a.coord.Deadline() {
			exchange(a.coord, a.now, a.gate)
		}
		a.refill(depth, queues)
		for i, n := range a.speed {
			if n < 0 {
				n = 1 - min(1, int(a.now/ms)%-n)
			}
			for ; n > 0 && len(a.busy[i]) > 0; n-- {
				t := a.busy[i][0]
				a.busy[i] = a.busy[i][1:]
				a.gate.Done(t, a.now)
				a.outstanding[t.Queue()]--
				a.count[t.Queue()]++
				a.refill(depth, queues)
			}
		}
		a.now += ms
		a.gate.Tick(a.now)
	}
}

func (a *apart) refill(depth int, queues []*Queue) {
	for _, q := range queues {
		for ; a.outstanding[q] < depth; a.outstanding[q]++ {
			if t := (&Task{Cost: 1, Bytes: 4096}); a.gate.Admit(q, t, a.now) {
				a.begin(t)
			}
		}
	}
	for t := a.gate.Next(a.now); t != nil; t = a.gate.Next(a.now) {
		a.begin(t)
	}
}

func (a *apart) begin(t *Task) {
	for i, d := range a.disks {
		if t.Queue().server.device == d {
			a.busy[i] = append(a.busy[i], t)
		}
	}
}

// TestSlowDeviceThrottlesNobody: of two devices of 10:1 on one thread each is
// used in full, by an initiator that is on both, by those on one, and by who has
// reserved something; a flood on the slow one takes nothing from the fast one.
func TestSlowDeviceThrottlesNobody(t *testing.T) {
	a := newApart(t, 1, []int{10, 1}, Rule{Name: "r", Initiators: []string{"iqn.r"}, Reservation: Rate{IOPS: 4000}})
	both, fast, slow := []*Queue{a.open("iqn.both", 0), a.open("iqn.both", 1)}, a.open("iqn.fast", 0), a.open("iqn.slow", 1)
	reserved := a.open("iqn.r", 0)
	a.run(4000, 64, both[0], both[1], fast, slow, reserved)
	within(t, "the fast device", a.count[both[0]]+a.count[fast]+a.count[reserved], 40_000, 0)
	within(t, "the slow device", a.count[both[1]]+a.count[slow], 4000, 0)
	within(t, "who is on both, on the fast one", a.count[both[0]], a.count[fast], 200)
	within(t, "who is on both, on the slow one", a.count[both[1]], a.count[slow], 40)
	if a.count[reserved] < 4*4000 {
		t.Errorf("reserved: found %d of 16000", a.count[reserved])
	}
	for i, want := range []int64{10_000, 1000} {
		if got := a.coord.Status(a.disks[i]); got.Capacity < want*95/100 || got.Capacity > want*105/100 || len(got.History) != 4 {
			t.Errorf("device %s: found %+v, expected a capacity of about %d", got.Name, got, want)
		}
	}
}

// TestReservationOverDevices: a reservation is a total, which goes where the
// demand is: what the slow device cannot carry the fast one does, and what
// another has reserved there is left to it.
func TestReservationOverDevices(t *testing.T) {
	a := newApart(t, 1, []int{10, 1},
		Rule{Name: "r", Initiators: []string{"iqn.r"}, Reservation: Rate{IOPS: 5000}},
		Rule{Name: "s", Initiators: []string{"iqn.s"}, Reservation: Rate{IOPS: 700}})
	r, s := []*Queue{a.open("iqn.r", 0), a.open("iqn.r", 1)}, a.open("iqn.s", 1)
	noise := []*Queue{a.open("iqn.a", 0), a.open("iqn.b", 0), a.open("iqn.c", 1), a.open("iqn.d", 1)}
	all := append([]*Queue{r[0], r[1], s}, noise...)
	a.run(1000, 32, all...)
	clear(a.count)
	a.run(4000, 32, all...)
	if n := a.count[r[0]] + a.count[r[1]]; n < 4*5000*99/100 {
		t.Errorf("over both devices: found %d of 20000", n)
	}
	if n := a.count[s]; n < 4*700*99/100 {
		t.Errorf("beside it on the slow device: found %d of 2800", n)
	}
	for _, b := range a.coord.devices {
		if b.reserved > b.monitor.Capacity() {
			t.Errorf("device %s: %d are reserved of %d", b.device.Name, b.reserved, b.monitor.Capacity())
		}
	}
	clear(a.count) // all that it wants is on the fast one now
	a.run(1000, 32, append([]*Queue{r[0], s}, noise...)...)
	if n := a.count[r[0]]; n < 5000*97/100 {
		t.Errorf("on the fast device alone: found %d of 5000", n)
	}
}

// TestLimitOverDevices: a limit is a total over all devices, and who waits for
// it on both has its turn on both.
func TestLimitOverDevices(t *testing.T) {
	a := newApart(t, 1, []int{10, 1}, Rule{Name: "l", Initiators: []string{"iqn.l"}, Limit: Rate{IOPS: 1500}})
	l, other := []*Queue{a.open("iqn.l", 0), a.open("iqn.l", 1)}, a.open("iqn.o", 0)
	a.run(4000, 16, l[0], l[1], other)
	fast, slow := a.count[l[0]], a.count[l[1]]
	if n := fast + slow; n > 4*1500+15+1 || n < 4*1500-40 {
		t.Errorf("found %d in 4 s, expected 6000", n)
	}
	if slow < 2800 {
		t.Errorf("found %d of them on the slow device, expected its half", slow)
	}
	within(t, "the fast device", fast+a.count[other], 40_000, 0)
}

// TestStuckDevice: commands for a device that does not move wait for it alone,
// and no time is named at which looking again would help.
func TestStuckDevice(t *testing.T) {
	a := newApart(t, 1, []int{10, 0}, Rule{Name: "l", Initiators: []string{"*"}, Limit: Rate{IOPS: 5000}})
	fast, stuck := a.open("iqn.a", 0), a.open("iqn.b", 1)
	a.run(1000, 32, fast, stuck)
	if a.count[stuck] != 0 || a.count[fast] < 4950 {
		t.Errorf("found %d of 5000 beside a device that does nothing", a.count[fast])
	}
	for a.outstanding[fast] = 1 << 30; len(a.busy[0]) > 0 || fast.Pending() > 0; {
		a.run(1, 0)
	}
	if at := a.gate.Wake(); at <= a.now {
		t.Errorf("found that looking again would help at %d, now is %d", at, a.now)
	}
}

// TestForgottenDevice: of a device that no volume is on nothing is left, once
// nobody uses it.
func TestForgottenDevice(t *testing.T) {
	a := newApart(t, 1, []int{10, 1}, Rule{Initiators: []string{"*"}})
	queues := []*Queue{a.open("iqn.a", 0), a.open("iqn.a", 1)}
	a.run(300, 0, queues...)
	a.coord.Forget(a.disks[0])
	a.run(300, 0)
	if len(a.coord.devices) != 2 {
		t.Errorf("found %d devices while both are in use", len(a.coord.devices))
	}
	a.gate.Close(queues[0], a.now)
	a.run(2000, 0)
	if len(a.coord.devices) != 1 || len(a.coord.byDevice) != 1 || len(a.coord.servers) != 1 || a.gate.servers[0] != nil {
		t.Errorf("found %d devices and %d servers, expected one", len(a.coord.devices), len(a.coord.servers))
	}
	a.apply()
	a.gate.Close(queues[1], a.now)
	if a.gate.servers[1] != nil {
		t.Error("found a server that nobody uses")
	}
}
