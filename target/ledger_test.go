package target_test

import (
	"testing"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/scheduler"
)

// offered is how many commands were offered to the gates, of queues that are
// gone too.
func (r *rig) offered() (n int64) {
	for _, f := range r.server.QoS("").Flows {
		n += f.Counters.Offered
	}
	return n
}

// TestCountsOutliveQueues: what a session has counted stays while another of
// the same initiator uses the LUN, and goes with the last.
func TestCountsOutliveQueues(t *testing.T) {
	r := gatedRig(t, everyone(5000), scheduler.Rule{Name: "other", Initiators: []string{"iqn.elsewhere"}, Limit: scheduler.Rate{IOPS: 1}})
	one, two := r.login(initiator.Options{}), r.login(initiator.Options{ISID: [6]byte{0x80, 9}})
	for range 3 {
		for _, c := range []*initiator.Conn{one, two} {
			res, err := c.Command(cdbRead16(0, 8), 0, nil, 4096)
			mustGood(t, res, err)
		}
	}
	if n := r.offered(); n != 6 {
		t.Errorf("%d commands were offered, expected 6", n)
	}
	one.Close()
	eventually.Holds(t, "the first session has ended", func() bool { return r.server.Holding().Sessions == 1 })
	if n := r.offered(); n != 6 {
		t.Errorf("%d commands after one session has ended, expected 6", n)
	}
	two.Close()
	eventually.Holds(t, "nothing is left", func() bool { return len(r.server.QoS("").Flows) == 0 })
}
