package tier

import (
	"fmt"
	"sync"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/internal/evloop"
	"lunar/internal/numa"
)

// BenchmarkCores is random hits of 4 KiB by several event threads at once, each
// pinned to a CPU and with a lane of its own, in caches of few and of many
// partitions. The time of an operation is that of all threads together.
func BenchmarkCores(b *testing.B) {
	cpus := numa.Allowed()
	for _, loops := range loopCounts(len(cpus)) {
		for _, partitions := range []int{1, 4, 16, 64} {
			b.Run(fmt.Sprintf("loops=%d/partitions=%d", loops, partitions), func(b *testing.B) {
				benchmarkCores(b, cpus[:loops], partitions)
			})
		}
	}
}

// loopCounts are 1, 2, 4 and so on up to most, which is one of them.
func loopCounts(most int) (list []int) {
	for n := 1; n < most; n *= 2 {
		list = append(list, n)
	}
	return append(list, most)
}

func benchmarkCores(b *testing.B, cpus []int, partitions int) {
	volume := hotVolume(b, partitions)
	var clients []*backstoretest.Client
	for _, cpu := range cpus {
		clients = append(clients, backstoretest.NewClient(b, volume, benchLoop(b, cpu, 0)))
	}
	readAll(b, clients[0])
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for i, c := range clients {
		ready.Add(1)
		done.Add(1)
		share := b.N / len(clients)
		if i < b.N%len(clients) {
			share++
		}
		c.Loop.Post(evloop.Func(func() {
			defer done.Done()
			ready.Done()
			<-begin
			hitRandomly(b, c.Lane, share, walk(i+1))
		}))
	}
	ready.Wait()
	b.ResetTimer()
	close(begin)
	done.Wait()
	b.StopTimer()
}

func hitRandomly(b *testing.B, lane backstore.Lane, n int, w walk) {
	op := backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(page)}
	for range n {
		if op.Off = w.next(benchVolume / page); !lane.TryNow(&op) {
			b.Error("a miss, expected all to be in the cache")
			return
		}
	}
}
