package load

import (
	"testing"

	"lunar/internal/initiator"
)

func TestAsynchronousEvents(t *testing.T) {
	for event, want := range map[byte]string{
		0:   "", // changed LUNs do not end a run
		1:   "the target asks for a logout",
		2:   "the target drops a connection",
		3:   "the target drops the session",
		4:   "the target asks for a new negotiation",
		255: "the target sends an asynchronous event 255",
	} {
		p := initiator.NewPDU(initiator.OpAsync, initiator.FlagFinal, nil)
		p.BHS[atAsyncEvent] = event
		found := ""
		if err := new(connection).take(p); err != nil {
			found = err.Error()
		}
		if found != want {
			t.Errorf("event %d: %q, expected %q", event, found, want)
		}
	}
}
