package scsi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"lunar/target/scsi/reservation"
)

// Latest is the PERSISTENT RESERVE OUT that has made reservations what they are. Its initiator may not
// have heard of that: the server that served the unit was superseded as it saved the change, or the
// answer got lost between two servers. Then it was told that the unit is in transition, and sends the
// request again, which would meet a conflict now (SPC-4 clause 5.13.7: REGISTER has to name the key
// that is registered). As long as nothing else has changed, what it asks for is so, and it is told that.
type Latest struct {
	By      reservation.Nexus `json:"by"`
	Request string            `json:"request"`         // a digest
	Abort   bool              `json:"abort,omitempty"` // it ends tasks, which an answer waits for
}

func latestOf(r *reservation.Request) Latest {
	same := *r
	if same.Holder = ""; same.Ports != nil {
		same.Ports = []uint16{} // those of the nodes that lived then
	}
	digest := sha256.Sum256(fmt.Appendf(nil, "%#v", same))
	return Latest{r.From, hex.EncodeToString(digest[:]), r.Action == reservation.PreemptAndAbort}
}

// Doubt notes that a nexus may not have heard of what it has asked for last.
func (lu *LogicalUnit) Doubt(n *Nexus) {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	if lu.mu.latest.By == n.Identity() && !lu.mu.latest.Abort { // else its tasks may not have ended
		lu.mu.doubt = true
	}
}

// repeated reports, once, whether a request is the latest one again, whose outcome is in doubt.
func (lu *LogicalUnit) repeated(r *reservation.Request) bool {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	is := lu.mu.doubt && lu.mu.latest == latestOf(r)
	if is {
		lu.mu.doubt = false
	}
	return is
}
