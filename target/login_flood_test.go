package target_test

import (
	"net"
	"testing"
	"time"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
)

// Half-open connections hold every place in login, but not for long when
// somebody means it.
func TestStaleLoginsMakeRoom(t *testing.T) {
	r := newRig(t, rigOptions{config: target.Config{Limits: target.Limits{LoginConnections: 2, LoginTimeout: time.Minute}}})
	for range 2 {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	eventually.Holds(t, "both are in login", func() bool { return r.server.Holding().Logins == 2 })
	time.Sleep(1100 * time.Millisecond) // their grace
	for range 3 {
		c := r.login(initiator.Options{})
		res, err := c.Command(make([]byte, 6), 0, nil, 0)
		mustGood(t, res, err)
	}
}
