package iser_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/internal/initiator"
	"lunar/iser/isertest"
	"lunar/scheduler"
	"lunar/target"
	"lunar/target/targettest"
)

// workloads are batches of commands of one kind.
var workloads = []struct {
	name            string
	write           bool
	size, immediate int
}{
	{"read of 4 KiB", false, 4 << 10, 0},
	{"read of 64 KiB", false, 64 << 10, 0},
	{"write of 4 KiB, immediate", true, 4 << 10, 4 << 10},
	{"write of 16 KiB, half of it immediate", true, 16 << 10, 8 << 10},
	{"write of 64 KiB, fetched", true, 64 << 10, 0},
}

// ram is a store that allocates nothing itself.
func ram(t testing.TB) backstore.Store {
	s, err := backstore.NewRAM(targettest.VolumeSize, 4096)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Steady state I/O over RDMA allocates nothing, as it does over TCP. What is
// counted is the whole process, its runtime included.
func TestCommandsDoNotAllocate(t *testing.T) {
	for _, v := range workloads {
		t.Run(v.name, func(t *testing.T) {
			w := newWorld(t, options{store: ram(t)})
			_, wire := w.ready(t, 1, isertest.Options{})
			w.doesNotAllocate(t, wire.Drive(v.write, allocDepth, v.size, 512, v.immediate), 0)
		})
	}
}

// TestGovernedCommandsDoNotAllocate: nor do commands of a connection whose work waits for its
// rate, nor those of one beside classes of others, which has none.
func TestGovernedCommandsDoNotAllocate(t *testing.T) {
	network := scheduler.Network{Governor: scheduler.ServerGovernor, Delay: 10e9, Links: map[string]int64{"rxe0": 512 << 20}}
	for name, governed := range map[string]bool{classNames[scheduler.Low]: true, "iqn.2026-11.lunar:none": false} {
		for _, v := range workloads {
			t.Run(fmt.Sprintf("%s/governed=%t", v.name, governed), func(t *testing.T) {
				policy := classPolicy(t, scheduler.ServerGovernor).WithNetwork(network)
				w := newWorld(t, options{store: ram(t), server: target.Config{QoS: target.QoS{Policy: policy}}})
				c, wire := w.dial(t, initiator.Options{Initiator: name, ISID: isid(1)}, isertest.Options{})
				w.check(c.Ready(0))
				// The coordinator's reports are made anew, some fifteen allocations every 20 ms.
				w.doesNotAllocate(t, wire.Drive(v.write, allocDepth, v.size, 512, v.immediate), 1200)
				if told := w.QoS(name).Classes; (len(told) == 1) != governed {
					t.Errorf("it is told as %+v", told)
				}
			})
		}
	}
}

// allocDepth is how many commands a batch has whose allocations are counted.
const allocDepth = 16

// doesNotAllocate counts the allocations of many batches, but for so many a second.
func (w *world) doesNotAllocate(t *testing.T, d *isertest.Driver, aSecond float64) {
	t.Helper()
	const rounds = 50
	defer d.Close()
	batches := func(n int) {
		for range n {
			w.check(d.Batch())
		}
	}
	batches(20)
	least := ^uint64(0) // of many: on a loaded machine the runtime makes more of its own
	for n := 0; n < 40 && least > rounds*allocDepth/50; n++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		batches(rounds)
		runtime.ReadMemStats(&after)
		now := after.Mallocs - before.Mallocs
		least = min(least, now-min(now, uint64(aSecond*time.Since(began).Seconds())))
	}
	if least > rounds*allocDepth/50 {
		t.Errorf("%d allocations in %d commands", least, rounds*allocDepth)
	}
}

// What a command costs in this process, the fabric and the initiator included.
func BenchmarkCommands(b *testing.B) {
	for _, v := range workloads {
		for _, depth := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/depth=%d", v.name, depth), func(b *testing.B) {
				w := newWorld(b, options{store: ram(b)})
				_, wire := w.ready(b, 1, isertest.Options{})
				d := wire.Drive(v.write, depth, v.size, 512, v.immediate)
				defer d.Close()
				b.ReportAllocs()
				before := w.stats()
				b.ResetTimer()
				for n := 0; n < b.N; n += depth {
					w.check(d.Batch())
				}
				b.StopTimer()
				s, commands := w.stats(), float64(max(w.stats().Receives-before.Receives, 1))
				b.ReportMetric(float64(s.Posts-before.Posts)/commands, "posts/op")
				b.ReportMetric(float64(s.Polls-before.Polls)/commands, "polls/op")
			})
		}
	}
}
