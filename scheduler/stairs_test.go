package scheduler

import (
	"testing"

	"lunar/scheduler/haechi"
)

// stairs is pShift's experiment 3c on gates: four threads with a device each,
// which serves 2 commands per ms, and four initiators, of which the i-th is on
// the first i of them with 64 commands outstanding on each.
type stairs struct {
	coord  *Coordinator
	sides  []*alone
	gates  []*Gate
	queues [][]*Queue // by thread
}

func newStairs(t *testing.T, profile int64) *stairs {
	s := &stairs{coord: NewCoordinator(CoordinatorConfig{Threads: 4, Monitor: haechi.MonitorConfig{Estimator: haechi.EstimatorConfig{Profile: profile, Slack: 0.002}}})}
	for thread := range 4 {
		a := &alone{t: t, coord: s.coord, disk: &Device{}, outstanding: map[*Queue]int{}, gate: NewGate(thread, GateConfig{Window: 16, Threads: 4})}
		a.apply(Rule{Initiators: []string{"*"}, Reservation: Rate{IOPS: 1200}, Limit: Rate{IOPS: 2400}})
		var queues []*Queue
		for i := thread; i < 4; i++ {
			queues = append(queues, a.open("iqn.c"+string(rune('1'+i)), 0))
		}
		s.sides, s.gates, s.queues = append(s.sides, a), append(s.gates, a.gate), append(s.queues, queues)
	}
	return s
}

// run is a second; it returns what each initiator got.
func (s *stairs) run() (served [4]int64) {
	for range 1000 {
		if now := s.sides[0].now; now >= s.coord.Deadline() {
			exchange(s.coord, now, s.gates...)
		} else if now/ms%20 == 0 {
			welcome(s.coord, now, s.gates...)
		}
		for thread, a := range s.sides {
			for _, task := range a.serve(2, 64, s.queues[thread]...) {
				served[task.Queue().flow.Initiator[len("iqn.c")]-'1']++
			}
		}
	}
	return served
}

// TestStairs: reservations and limits hold and the devices are used together,
// also that of the thread that only one initiator uses, whose limit is more than
// the device.
func TestStairs(t *testing.T) {
	s := newStairs(t, 2000)
	s.run()
	s.check(t)
}

// TestStairsOfUnknownDevices: what limits let a device do at first is not taken
// for all that it can do.
func TestStairsOfUnknownDevices(t *testing.T) {
	s := newStairs(t, 0)
	for range 4 {
		s.run()
	}
	s.check(t)
}

// check lets some seconds pass.
func (s *stairs) check(t *testing.T) {
	t.Helper()
	for second := range 8 {
		served, total := s.run(), int64(0)
		for i, n := range served {
			if total += n; n < 1200 || n > 2400+24+4 {
				t.Errorf("second %d: initiator %d got %d, expected 1200 to 2400", second, i+1, n)
			}
		}
		if total < 8000*99/100 {
			t.Errorf("second %d: found %v, %d in all, expected nearly 8000", second, served, total)
		}
	}
}
