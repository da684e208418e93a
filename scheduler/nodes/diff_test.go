package nodes

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"lunar/scheduler"
)

// history is a node's coordinator that changes at random.
type history struct {
	now  scheduler.GateReport
	made int64
}

func (h *history) change(t *rapid.T) {
	dice := rapid.IntRange(0, 5)
	if len(h.now.Servers) < 3 && dice.Draw(t, "device") == 0 {
		h.made++
		h.now.Servers = append(h.now.Servers, scheduler.ServerReport{Device: &scheduler.Device{Name: fmt.Sprint("d", h.made)}, Number: h.made})
	}
	key := fmt.Sprint("initiator ", rapid.IntRange(0, 9).Draw(t, "key"))
	h.made++
	for i := range h.now.Servers {
		s := &h.now.Servers[i]
		s.Done, s.Residual, s.Backlogged = s.Done+rapid.Int64Range(0, 1000).Draw(t, "done"), rapid.Int64Range(0, 99).Draw(t, "residual"), rapid.Bool().Draw(t, "backlogged")
		kept := s.Entities[:0:0]
		for _, e := range s.Entities {
			switch dice.Draw(t, "what") {
			case 0:
				continue // it goes
			case 1:
				e.Reservation = rapid.Int64Range(0, 3).Draw(t, "reservation")
			case 2, 3:
				e.Offered += rapid.Int64Range(0, 500).Draw(t, "offered")
				e.Served += rapid.Int64Range(0, 500).Draw(t, "served")
				e.Queued, e.Root = rapid.Int64Range(0, 9).Draw(t, "queued"), rapid.Bool().Draw(t, "root")
			}
			kept = append(kept, e)
		}
		if dice.Draw(t, "comes") < 2 {
			kept = append(kept, scheduler.EntityReport{Entity: key, Number: h.made, Level: scheduler.InitiatorLevel, Limit: 5, Queued: 1})
		}
		s.Entities = kept
	}
	for i := range h.now.Servers { // an entity is the same on all devices
		for n := range h.now.Servers[i].Entities {
			e := &h.now.Servers[i].Entities[n]
			for o := range h.now.Servers[:i] {
				for _, x := range h.now.Servers[o].Entities {
					if x.Number == e.Number {
						e.Reservation = x.Reservation
					}
				}
			}
		}
	}
}

// fill is what the coordinator's Report does.
func (h *history) fill(r *scheduler.GateReport) {
	r.Servers = r.Servers[:0]
	for i := range h.now.Servers {
		s := h.now.Servers[i]
		s.Entities = append([]scheduler.EntityReport(nil), s.Entities...)
		r.Servers = append(r.Servers, s)
	}
}

// TestReports: whatever messages are lost, the controller knows of each entity what the
// node has, and counts what came between two reports that it got.
func TestReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h, n, c := &history{}, Node{Shared: func(string) bool { return true }}, NewController(Config{Term: 5})
		offered := map[int64]int64{} // that the controller did not hear of, by entity and device
		for range rapid.IntRange(1, 20).Draw(t, "intervals") {
			h.change(t)
			a := c.Ask("n1")
			if rapid.IntRange(0, 5).Draw(t, "loss") == 0 {
				continue
			}
			report, err := n.Answer(a.Append(nil), 0, h.fill)
			if err != nil {
				t.Fatal(err)
			}
			if rapid.IntRange(0, 5).Draw(t, "loss") == 0 {
				continue
			}
			if err := c.Hear("n1", report, 0); err != nil {
				t.Fatal(err)
			}
			agree(t, h, c.peers["n1"], offered)
		}
	})
}

// agree compares what a node has with what the controller knows.
func agree(t *rapid.T, h *history, p *peer, offered map[int64]int64) {
	if len(p.report.Servers) != len(h.now.Servers) {
		t.Fatalf("found %d devices, expected %d", len(p.report.Servers), len(h.now.Servers))
	}
	for i := range h.now.Servers {
		s := &h.now.Servers[i]
		known := serverOf(&p.report, &scheduler.ServerReport{Device: s.Device, Number: s.Number + p.salt})
		if len(known.Entities) != len(s.Entities) || known.Residual != s.Residual || known.Backlogged != s.Backlogged {
			t.Fatalf("device %s: found %+v, expected %+v", s.Device.Name, known, s)
		}
		for n := range s.Entities {
			e, k := &s.Entities[n], &known.Entities[n]
			if k.Entity != e.Entity || k.Number-p.salt != e.Number || k.Reservation != e.Reservation || k.Queued != e.Queued || k.Root != e.Root {
				t.Fatalf("device %s: found %+v, expected %+v", s.Device.Name, k, e)
			}
			at := e.Number<<8 | s.Number
			if lost := e.Offered - k.Offered; lost < offered[at] {
				t.Fatalf("device %s: found %d offered, expected %d at most", s.Device.Name, k.Offered, e.Offered-offered[at])
			} else {
				offered[at] = lost
			}
		}
	}
}
