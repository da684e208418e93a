package nodes

import (
	"fmt"
	"testing"

	"lunar/scheduler"
)

// TestComeAndGo: a controller keeps nothing of nodes, initiators and devices that have gone, for however
// long they come and go, and numbers do not overflow.
func TestComeAndGo(t *testing.T) {
	c, now := NewController(Config{Term: 1}), int64(0)
	c.entered = 2*salts - 50 // as without a bound
	for round := range 100 {
		name := fmt.Sprint("n", round)
		n := &Node{Shared: func(device string) bool { return device[0] == 's' }}
		for range 2 * intervals {
			now += Interval
			a := c.Ask(name)
			report, err := n.Answer(a.Append(nil), now, func(r *scheduler.GateReport) {
				r.Servers = nil
				for i, device := range []string{"shared", "own"} {
					r.Servers = append(r.Servers, scheduler.ServerReport{
						Device: &scheduler.Device{Name: fmt.Sprint(device, round)}, Number: int64(i + 1), Threads: 1,
						Entities: []scheduler.EntityReport{{Entity: fmt.Sprint("initiator ", round), Number: 3, Level: scheduler.InitiatorLevel, Reservation: 10, Limit: 20}},
					})
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Hear(name, report, now); err != nil {
				t.Fatal(err)
			}
			c.Deal(now, []string{name})
			if salt := c.peers[name].salt; salt <= 0 {
				t.Fatalf("found salt %d, expected more than 0", salt)
			}
		}
		now += forgotten
	}
	c.Deal(now+period, nil)
	c.Deal(now+2*period, nil)
	s := c.Status()
	if len(c.devices)+len(s.Devices) > 0 || len(c.peers) > 0 || len(s.Entities) > 0 || len(c.slots) > 2 || len(c.of) > 0 {
		t.Errorf("found %d and %d devices, %d nodes, %d entities, %d slots, %d silences", len(c.devices), len(s.Devices), len(c.peers), len(s.Entities), len(c.slots), len(c.of))
	}
}
