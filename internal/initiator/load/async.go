package load

import (
	"fmt"

	"lunar/internal/initiator"
)

// atAsyncEvent is where an Asynchronous Message has its AsyncEvent (RFC 7143
// section 11.9).
const atAsyncEvent = 36

// asyncEvents are the events after which a connection carries no further commands
// (RFC 7143 section 11.9.1).
var asyncEvents = map[byte]string{
	1: "asks for a logout",
	2: "drops a connection",
	3: "drops the session",
	4: "asks for a new negotiation",
}

// takeAsync ends the run with what the target announces. SCSI events, such as changed
// LUNs, concern the next command's unit attention: the run goes on.
func takeAsync(p *initiator.PDU) error {
	event := p.BHS[atAsyncEvent]
	if event == 0 {
		return nil
	}
	what, known := asyncEvents[event]
	if !known {
		what = fmt.Sprintf("sends an asynchronous event %d", event)
	}
	return fmt.Errorf("the target %s", what)
}
