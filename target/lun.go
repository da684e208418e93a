package target

import (
	"cmp"
	"fmt"
	"slices"

	"lunar/backstore"
	"lunar/scheduler"
	"lunar/target/scsi"
)

// lun is one LUN of a session on the connection's event thread.
type lun struct {
	number uint64
	nexus  *scsi.Nexus
	lane   backstore.Lane
	queue  *scheduler.Queue
	ops    uint64 // commands since the connection's home was last judged

	entered bool // in the scheduler's ledger

	traffic *lunTraffic
}

// openLUNs makes the session's nexuses and opens their stores' lanes on the
// connection's thread.
func (c *core) openLUNs() error {
	c.nowhere = c.session.nexus(LUNMapping{})
	for _, seen := range c.session.view.Load().luns {
		l, err := c.openLUN(seen)
		if err != nil {
			return err
		}
		c.luns = append(c.luns, l)
	}
	return nil
}

func (c *core) openLUN(seen *seenLUN) (*lun, error) {
	if fault := c.session.trespasses(seen.LU); fault != nil {
		return nil, fault
	}
	lane, err := c.thread.lane(seen.LU)
	if err != nil {
		return nil, fmt.Errorf("lun %d, volume %s: %w", seen.LUN, seen.LU.Name(), err)
	}
	l := &lun{number: uint64(seen.LUN), nexus: c.session.nexus(seen.LUNMapping), lane: lane, traffic: seen.traffic}
	seen.LU.Attach(l.nexus)
	c.thread.gate.open(c, l)
	return l, nil
}

// relane opens the lanes on the thread that the connection has moved to.
func (c *core) relane() error {
	for _, l := range c.luns {
		lane, err := c.thread.lane(l.nexus.LU)
		if err != nil {
			return fmt.Errorf("lun %d, volume %s: %w", l.number, l.nexus.LU.Name(), err)
		}
		l.lane = lane
		c.thread.gate.open(c, l)
	}
	return nil
}

// findLUN returns the LUN that a PDU's LUN field names, or nil. LUNs are in
// ascending order and usually numbered from 0.
func (c *core) findLUN(field uint64) *lun {
	n, ok := scsi.DecodeLUN(field)
	if !ok {
		return nil
	}
	if n < uint64(len(c.luns)) && c.luns[n].number == n {
		return c.luns[n]
	}
	i, found := slices.BinarySearchFunc(c.luns, n, func(l *lun, n uint64) int { return cmp.Compare(l.number, n) })
	if !found {
		return nil
	}
	return c.luns[i]
}
