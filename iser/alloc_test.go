package iser_test

import (
	"fmt"
	"runtime"
	"testing"

	"lunar/backstore"
	"lunar/iser/isertest"
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
	const depth, rounds = 16, 50
	for _, v := range workloads {
		t.Run(v.name, func(t *testing.T) {
			w := newWorld(t, options{store: ram(t)})
			_, wire := w.ready(t, 1, isertest.Options{})
			d := wire.Drive(v.write, depth, v.size, 512, v.immediate)
			defer d.Close()
			batches := func(n int) {
				for range n {
					w.check(d.Batch())
				}
			}
			batches(20)
			least := ^uint64(0) // of many: on a loaded machine the runtime makes more of its own
			for n := 0; n < 40 && least > rounds*depth/50; n++ {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				batches(rounds)
				runtime.ReadMemStats(&after)
				least = min(least, after.Mallocs-before.Mallocs)
			}
			if least > rounds*depth/50 {
				t.Errorf("%d allocations in %d commands", least, rounds*depth)
			}
		})
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
