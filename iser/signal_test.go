package iser_test

import (
	"sync"
	"testing"

	"lunar/internal/eventually"
	"lunar/iser/isertest"
	"lunar/iser/verbs"
	"lunar/iser/verbs/fake"
)

// Completions are asked for where they are of use: with what holds memory, at the
// latest at the end of its list, and else with one response in 32.
func TestSignals(t *testing.T) {
	var mu sync.Mutex
	var entries, signaled, holding, bytes int
	posted := func(work fake.Work) {
		if work.Host != "target" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		entries++
		if work.WR.Op == verbs.OpWrite {
			holding++
		}
		switch {
		case work.WR.Flags&verbs.FlagSignaled != 0:
			signaled++
			holding = 0
		case work.WR.Op == verbs.OpRead:
			t.Error("nobody hears of the end of an RDMA Read")
		}
		bytes = max(bytes, holding)
	}
	w := newWorld(t, options{fabric: fake.Options{Posted: posted}, store: ram(t)})
	for n, v := range workloads {
		_, wire := w.ready(t, byte(n), isertest.Options{})
		d := wire.Drive(v.write, 32, v.size, 512, v.immediate)
		w.check(d.Batch())
		mu.Lock()
		entries, signaled = 0, 0
		mu.Unlock()
		const batches = 20
		for range batches {
			w.check(d.Batch())
		}
		mu.Lock()
		if holding > 0 {
			t.Errorf("%s: %d RDMA Writes of which no end is told", v.name, holding)
		}
		all, told := entries, signaled
		mu.Unlock()
		most := 32 * batches // a response each, at most
		switch {
		case v.write && v.immediate == v.size:
			most = batches + 1
		case v.write: // an RDMA Read each
			most += batches + 1
		}
		if told > most || told == 0 {
			t.Errorf("%s: %d of %d entries have a completion, expected at most %d", v.name, told, all, most)
		}
		t.Logf("%s: %d of %d entries", v.name, told, all)
		d.Close()
		wire.Close()
	}
	if bytes > 32 {
		t.Errorf("%d RDMA Writes waited for one completion", bytes)
	}
	eventually.Finds(t, "connections", 0, w.connections)
}
