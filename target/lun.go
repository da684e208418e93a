package target

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lunar/backstore"
	"lunar/internal/evloop"
	"lunar/internal/latency"
	"lunar/internal/refusals"
	"lunar/scheduler"
	"lunar/target/login"
	"lunar/target/scsi"
)

// lun is one LUN of a session on the connection's event thread.
type lun struct {
	number uint64
	field  uint64 // the LUN field that initiators are told for it
	nexus  *scsi.Nexus
	lane   backstore.Lane
	queue  *scheduler.Queue
	tagged *scheduler.ByClass[*scheduler.Queue] // of commands that have named their class; nil: there were none
	ops    uint64                               // commands since the connection's home was last judged

	entered bool // in the scheduler's ledger

	traffic *lunTraffic
	latency *latency.Slot // of the thread; nil: it has not been used there
}

// openLUNs makes the session's nexuses and opens their stores' lanes on the
// connection's thread.
func (c *sessionState) openLUNs() {
	c.nowhere = c.session.nexus(LUNMapping{})
	v := &view{}
	for _, seen := range c.session.view.Load().luns {
		if l := c.offer(seen); l != nil {
			c.luns, v.luns = append(c.luns, l), append(v.luns, seen)
		}
	}
	c.session.view.Store(v)
}

// offer returns a LUN, or nil if the session does not get it: that is no reason to take
// the others from it.
func (c *sessionState) offer(seen *seenLUN) *lun {
	l, err := c.openLUN(seen)
	if err == nil {
		return l
	}
	var fault *login.Error
	if errors.As(err, &fault) {
		c.session.node.refuse(refusals.LoginPort)
	}
	c.log.Error("LUN withheld from the session: the others are there", "lun", seen.LUN, "volume", seen.LU.Name(), "reason", err)
	return nil
}

func (c *sessionState) openLUN(seen *seenLUN) (*lun, error) {
	if fault := c.session.trespasses(seen.LU); fault != nil {
		return nil, fault
	}
	lane, err := c.thread.lane(seen.LU)
	if err != nil {
		return nil, err
	}
	l := &lun{number: uint64(seen.LUN), field: scsi.EncodeLUN(uint64(seen.LUN)), nexus: c.session.nexus(seen.LUNMapping), lane: lane, traffic: seen.traffic}
	seen.LU.Attach(l.nexus)
	c.thread.gate.open(c, l)
	return l, nil
}

// relane opens the lanes on the thread that the connection has moved to.
func (c *sessionState) relane() error {
	for _, l := range c.luns {
		lane, err := c.thread.lane(l.nexus.LU)
		if err != nil {
			return fmt.Errorf("lun %d, volume %s: %w", l.number, l.nexus.LU.Name(), err)
		}
		l.lane, l.latency = lane, nil
		c.thread.gate.open(c, l)
	}
	return nil
}

// findLUN returns the LUN that a PDU's LUN field names, or nil. LUNs are in
// ascending order and usually numbered from 0.
func (c *sessionState) findLUN(field uint64) *lun {
	if i := field >> 48 & scsi.MaxLUN; i < uint64(len(c.luns)) && c.luns[i].field == field {
		return c.luns[i]
	}
	n, ok := scsi.DecodeLUN(field)
	if !ok {
		return nil
	}
	i, found := slices.BinarySearchFunc(c.luns, n, func(l *lun, n uint64) int { return cmp.Compare(l.number, n) })
	if !found {
		return nil
	}
	return c.luns[i]
}

// openLatency gives a LUN its slot for now.
func (c *sessionState) openLatency(l *lun) *latency.Slot {
	c.thread.latency.record() // before a slot is given to another
	f := c.session.flow(l.number)
	k := latency.Key{Volume: l.nexus.LU.Name(), Initiator: strings.ToValidUTF8(f.Initiator, "\uFFFD"), User: f.User}
	l.latency = c.thread.latency.Open(k, f.User == "" && c.session.initiator.Proof.Proven(), evloop.Monotonic())
	return l.latency
}

// retryLatencies lets LUNs try for a slot of their own that share one with others.
func (c *sessionState) retryLatencies() {
	for _, l := range c.luns {
		if l.latency != nil && l.latency.Initiator == "" {
			l.latency = nil
		}
	}
}
