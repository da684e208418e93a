package target_test

import (
	"context"
	"testing"
	"time"

	"lunar/internal/initiator"
	"lunar/internal/initiator/load"
	"lunar/scheduler"
	"lunar/target"
)

// TestInterruptedConnections: with turns of a nanosecond every command of one initiator is
// interrupted by another's, in the middle of what one read of its socket has brought, of a
// transfer, and of what it is sent. All bytes are checked.
func TestInterruptedConnections(t *testing.T) {
	const gold = "iqn.2026-11.lunar:gold"
	p, err := scheduler.NewPolicy([]scheduler.Rule{{Name: "gold", Initiators: []string{gold}, Reservation: scheduler.Rate{IOPS: 1e6}}}, nil, scheduler.Cost{})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, rigOptions{config: target.Config{Threads: 1, QoS: target.QoS{Policy: p, Gate: scheduler.GateConfig{Turn: 1}}}})
	unit := load.Unit{BlockSize: 512, Blocks: 16 << 20 / 512}
	run := func(name string, first uint64, depth int, sizes ...load.Share) <-chan error {
		var conns []*initiator.Conn
		for i := range byte(2) {
			conns = append(conns, r.login(initiator.Options{Initiator: name, ISID: [6]byte{0x80, 0, 0, 0, 0, i + 1}}))
		}
		ended := make(chan error, 1)
		go func() {
			_, err := load.Run(context.Background(), conns, unit, load.Workload{
				Depth: depth, Sizes: sizes, ReadPercent: 50, Random: true, FirstLBA: first, Blocks: unit.Blocks / 2, Verify: true, Runtime: time.Second, CPU: -1,
			})
			ended <- err
		}()
		return ended
	}
	both := []<-chan error{
		run("iqn.2026-11.lunar:hog", 0, 16, load.Share{Bytes: 4096, Weight: 8}, load.Share{Bytes: 256 << 10, Weight: 1}),
		run(gold, unit.Blocks/2, 8, load.Share{Bytes: 4096, Weight: 8}, load.Share{Bytes: 64 << 10, Weight: 1}),
	}
	for _, ended := range both {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
