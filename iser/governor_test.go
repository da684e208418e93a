package iser_test

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/iser/isertest"
	"lunar/scheduler"
	"lunar/target"
)

const (
	linkRate = 16 << 20 // bytes per second
	opBytes  = 32 << 10
)

// classes are the initiators, by their class.
var classes = [...]scheduler.Class{scheduler.High, scheduler.Medium, scheduler.Low}

var classNames = scheduler.ByClass[string]{scheduler.High: "iqn.2026-11.lunar:high", scheduler.Medium: "iqn.2026-11.lunar:medium", scheduler.Low: "iqn.2026-11.lunar:low"}

// classPolicy gives each initiator its class, governed or not. Operations that take long on a
// busy machine are no congestion.
func classPolicy(t *testing.T, g scheduler.Governor) *scheduler.Policy {
	t.Helper()
	var rules []scheduler.Rule
	for _, c := range classes {
		rules = append(rules, scheduler.Rule{Name: classNames[c], Initiators: []string{classNames[c]}, Class: c})
	}
	p, err := scheduler.NewPolicy(rules, nil, scheduler.Cost{})
	if err != nil {
		t.Fatal(err)
	}
	return p.WithNetwork(scheduler.Network{Governor: g, Delay: 10e9, Links: map[string]int64{"rxe0": linkRate}})
}

// narrow is a server whose device moves linkRate each way.
func narrow(t *testing.T, g scheduler.Governor) *world {
	return newWorld(t, options{store: ram(t), immediate: -1, rate: linkRate, server: target.Config{QoS: target.QoS{Policy: classPolicy(t, g)}}})
}

// share has the initiators of all classes move bytes at once, until all together have moved
// most, and returns what each has moved since the first quarter.
func (w *world) share(t *testing.T, writes bool, most int64) (moved scheduler.ByClass[int64]) {
	t.Helper()
	var all sync.WaitGroup
	var total atomic.Int64
	var counts scheduler.ByClass[atomic.Int64]
	for n, class := range classes {
		c, _ := w.dial(t, initiator.Options{Initiator: classNames[class], ISID: isid(byte(n))}, isertest.Options{})
		w.check(c.Ready(0))
		data := pattern(opBytes, byte(n))
		lba := n << 10 // 512 KiB are its own
		next := func(i int) (*initiator.Task, error) {
			cmd := initiator.Command{CDB: read16(lba+i%8*opBytes/512, opBytes/512), Attr: initiator.AttrSimple, InLen: opBytes}
			if writes {
				cmd = initiator.Command{CDB: write16(lba+i%8*opBytes/512, opBytes/512), Attr: initiator.AttrSimple, Out: data}
			}
			return c.Start(cmd)
		}
		for i := range 8 {
			write(t, c, lba*512+i*opBytes, data)
		}
		all.Go(func() {
			var open []*initiator.Task
			for i := 0; total.Load() < most || len(open) > 0; i++ {
				if len(open) == 16 || total.Load() >= most {
					r, err := c.Wait(open[0])
					if err != nil || r.Status != 0 || !writes && !bytes.Equal(r.In, data) {
						t.Errorf("class %v: %v, %+v, or other data than written", class, err, r.Status)
						return
					}
					open = open[1:]
					if n := total.Add(opBytes); n > most/4 && n <= most {
						counts[class].Add(opBytes)
					}
				}
				if total.Load() < most {
					task, err := next(i)
					if err != nil {
						t.Error(err)
						return
					}
					open = append(open, task)
				}
			}
		})
	}
	all.Wait()
	for class := range counts {
		moved[class] = counts[class].Load()
	}
	return moved
}

// TestGovernedTransfers: what three classes read or write at once is right and ends, with a
// rate for each of them. What shares they get is a matter of time, which the pacers' own test
// has in its hands (package qrdma); on a busy machine their initiators do not keep the device
// busy.
func TestGovernedTransfers(t *testing.T) {
	for _, way := range []string{"reads", "writes"} {
		t.Run(way, func(t *testing.T) {
			w := narrow(t, scheduler.ServerGovernor)
			got := w.share(t, way == "writes", 16<<20)
			t.Logf("high %d, medium %d, low %d", got[scheduler.High], got[scheduler.Medium], got[scheduler.Low])
			for _, c := range classes {
				if told := w.QoS(classNames[c]).Classes; got[c] == 0 || len(told) != 1 || told[0].Estimate != linkRate { // the rate is that of the last moment, which may have moved nothing
					t.Errorf("class %v has moved %d bytes, told as %+v", c, got[c], told)
				}
			}
		})
	}
}

// TestGovernorComesAndGoes: what is held goes on when nothing governs any more, and a
// connection that ends leaves nothing behind; how it is governed is told.
func TestGovernorComesAndGoes(t *testing.T) {
	w := narrow(t, scheduler.ServerGovernor)
	for _, governor := range []scheduler.Governor{scheduler.ServerGovernor, scheduler.NoGovernor, scheduler.KernelGovernor} {
		w.SetQoS(classPolicy(t, governor))
		w.share(t, false, 4<<20)
		told := w.QoS(classNames[scheduler.Low]).Classes
		if governor == scheduler.NoGovernor {
			if len(told) != 0 {
				t.Errorf("%+v: told of what is not governed", told)
			}
			continue
		}
		for _, c := range told {
			if c.Form != target.Delay || c.Device != "rxe0" || c.Pace <= 0 || c.Pacing.Pace <= 0 || c.Estimate != linkRate || c.Governance.Target <= 0 || c.DSCP != 0 {
				t.Errorf("it is told as %+v", c)
			}
		}
		if len(told) == 0 {
			t.Error("nothing is told")
		}
	}
	before := w.connections()
	c, wire := w.dial(t, initiator.Options{Initiator: classNames[scheduler.Low], ISID: isid(9)}, isertest.Options{})
	w.check(c.Ready(0))
	for i := range 8 {
		if _, err := c.Start(initiator.Command{CDB: read16(i*512, 512), Attr: initiator.AttrSimple, InLen: 256 << 10}); err != nil {
			t.Fatal(err)
		}
	}
	wire.Close()
	eventually.Finds(t, "connections", before, w.connections)
}
