package target_test

import (
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/internal/latency"
)

// TestLatency: commands that use the medium are timed by volume and initiator, reads and
// writes apart, others are not, and one that waits for the store takes that long.
func TestLatency(t *testing.T) {
	ram, err := backstore.NewRAM(16<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	store := errstore.Wrap(ram)
	r := newRig(t, rigOptions{store: store})
	c := r.login(initiator.Options{})
	for range 3 {
		res, err := c.Command(cdbRead16(0, 8), 0, nil, 4096)
		mustGood(t, res, err)
	}
	res, err := c.Command([]byte{0x12, 0, 0, 0, 96, 0}, 0, nil, 96) // INQUIRY
	mustGood(t, res, err)
	store.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Hold: true})
	task, err := c.Start(initiator.Command{CDB: cdbWrite16(0, 8), Out: make([]byte, 4096)})
	if err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "a write that waits for the store", func() bool { return store.Held() > 0 })
	began := time.Now()
	eventually.Holds(t, "some time", func() bool { return time.Since(began) > 5*time.Millisecond })
	store.SetRules()
	store.Release(-1)
	if res, err := c.Wait(task); err != nil || res.Status != 0 {
		t.Fatalf("the write ended with %v, %v", res, err)
	}
	eventually.Finds(t, "commands counted", [latency.Operations]uint64{3, 1, 0}, func() (n [latency.Operations]uint64) {
		for _, v := range r.server.Latency().Volumes {
			for op := range v.Total {
				n[op] += v.Total[op].Count()
			}
		}
		return n
	})
	r.server.TurnLatency(time.Now())
	report := r.server.Latency()
	if len(report.Uses) != 1 || report.Uses[0].Key != (latency.Key{Volume: r.lu.Name(), Initiator: initiator.DefaultInitiator}) {
		t.Fatalf("found uses %+v", report.Uses)
	}
	reads, writes := report.Uses[0].Last[latency.Read], report.Uses[0].Last[latency.Write]
	if writes.Max < int64(5*time.Millisecond) || writes.Quantile(.5) < float64(4*time.Millisecond) || writes.Quantile(.5) > float64(writes.Max) {
		t.Errorf("a write that waited for at least 5 ms took %v ns, at most %d", writes.Quantile(.5), writes.Max)
	}
	if reads.Max <= 0 || reads.Sum == 0 || len(report.Initiators) != 1 || report.Initiators[0].Total[latency.Read].Sum != reads.Sum {
		t.Errorf("found reads %v, initiators %+v", reads.Sum, report.Initiators[0].Total)
	}
}
