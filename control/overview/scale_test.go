package overview

import (
	"fmt"
	"testing"
	"time"

	"lunar/control"
)

// crowded is a server with n initiators, each with a volume, a rule and a reservation.
func crowded(n int) (now, before *Snapshot) {
	now, before = &Snapshot{At: began.Add(time.Second)}, &Snapshot{At: began}
	for _, s := range []*Snapshot{now, before} {
		s.Status.QoS = &control.Explanation{}
		for i := range n {
			who, volume, rule := fmt.Sprintf("iqn.2026-11.test:host%d", i), fmt.Sprint("v", i), fmt.Sprint("r", i)
			io := control.IO{}
			if s == now {
				io.Reads = uint64(1000 + i)
			}
			s.Status.Volumes = append(s.Status.Volumes, control.Volume{Name: volume, Type: "file", IO: io})
			s.Status.Sessions = append(s.Status.Sessions, control.Session{TSIH: i, Initiator: who, Target: target, Thread: "event0", LUNs: []control.SessionLUN{{LUN: i, Volume: volume, IO: io}}})
			s.Status.QoS.Flows = append(s.Status.QoS.Flows, control.Flow{Initiator: who, Target: target, LUN: uint64(i), Open: true, Rules: []control.Effect{{Rule: rule, Level: "nexus"}}})
			s.Status.QoS.Promises = append(s.Status.QoS.Promises, control.Promised{Rule: rule, Level: "nexus", Name: fmt.Sprintf("%s %s %d", who, target, i), Reservation: 5, Periods: make([]control.Period, 60)})
			s.Status.QoS.Connections = append(s.Status.QoS.Connections, control.ClassedConnection{Initiator: who, Device: "eth0", Bottleneck: 1})
		}
	}
	return now, before
}

// BenchmarkOf is what an overview of many initiators costs, each second while somebody watches.
func BenchmarkOf(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			now, before := crowded(n)
			b.ReportAllocs()
			for b.Loop() {
				Of(now, before)
			}
		})
	}
}

// TestMany: of many answers of a kind the first ones are told, and the others counted.
func TestMany(t *testing.T) {
	o := Of(crowded(12))
	var missed []string
	for _, a := range o.Answers {
		if a.Kind == "promise" {
			missed = append(missed, a.What)
		}
	}
	if len(missed) != mostTold+1 || missed[mostTold] != "7 more promises are missed." {
		t.Errorf("found %q", missed)
	}
	if o.Initiators[0].Reserved != 5 || o.Initiators[0].Promise != "missed" {
		t.Errorf("found %+v", o.Initiators[0])
	}
}
