package target_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/scheduler"
)

// TestCopiesPay: what a copy moves counts for its initiator's limits, in the
// foreground and, when its session has gone, in the background.
func TestCopiesPay(t *testing.T) {
	r := crawlingRig(t)
	c := r.login(initiator.Options{})
	r.lift()
	data := pattern(1<<20, 5)
	res, err := c.Command(cdbWrite16(0, 2048), 0, data, 0)
	mustGood(t, res, err)
	self := naaCSCD(t, c, 0)
	for _, immediate := range []bool{false, true} {
		r.server.SetQoS(crawl(t))
		cdb, list := copyWithin(self, 2048, immediate)
		task := start(t, c, initiator.Command{CDB: cdb, Out: list})
		if immediate {
			res, err := c.Wait(task)
			mustGood(t, res, err)
			c.Close()
		}
		eventually.Holds(t, "the copy waits", func() bool { return r.waiting() == 1 })
		r.lift()
		if !immediate {
			res, err := c.Wait(task)
			mustGood(t, res, err)
		} else {
			c = r.login(initiator.Options{})
		}
		eventually.Holds(t, "the copy is there", func() bool {
			res, err := c.Command(cdbRead16(4096, 2048), 0, nil, len(data))
			mustGood(t, res, err)
			return bytes.Equal(res.In, data)
		})
		clear(data[:4096])
		res, err := c.Command(cdbWrite16(0, 8), 0, data[:4096], 0)
		mustGood(t, res, err)
	}
}

// TestRelayedCopiesPay: the same holds for a copy by a path to a node that does not own the disk. The
// owner alone has a rule: what waits there is the copy, and of the initiator's name.
func TestRelayedCopiesPay(t *testing.T) {
	r := newRelayRig(t, 2)
	owner, far := r.nodes[0], r.nodes[1].ready(1)
	data := pattern(1<<20, 5)
	self := naaCSCD(t, far, 0)
	res, err := far.Command(cdbWrite16(0, 2048), 0, data, 0)
	mustGood(t, res, err)
	for _, ending := range []string{"", "IMMED", "LOGICAL UNIT RESET"} {
		rule := everyone(1)
		rule.Initiators = []string{initiator.DefaultInitiator}
		p, err := scheduler.NewPolicy([]scheduler.Rule{rule}, nil, scheduler.Cost{Unit: 32})
		if err != nil {
			t.Fatal(err)
		}
		owner.server.SetQoS(p)
		cdb, list := copyWithin(self, 2048, ending == "IMMED")
		task := start(t, far, initiator.Command{CDB: cdb, Out: list})
		if ending == "IMMED" {
			res, err := far.Wait(task)
			mustGood(t, res, err)
		}
		eventually.Holds(t, "the copy waits", func() bool { return owner.waiting() == 1 })
		if ending == "LOGICAL UNIT RESET" {
			if response, err := far.TaskManagement(initiator.TaskRequest{Function: initiator.LogicalUnitReset}); err != nil || response != 0 {
				t.Errorf("found %d, %v", response, err)
			}
			eventually.Holds(t, "nothing waits", func() bool { return owner.waiting() == 0 })
			break
		}
		owner.lift()
		if ending == "" {
			res, err := far.Wait(task)
			mustGood(t, res, err)
		}
		eventually.Holds(t, "the copy is there", func() bool {
			res, err := far.Command(cdbRead16(4096, 2048), 0, nil, len(data))
			mustGood(t, res, err)
			return bytes.Equal(res.In, data)
		})
		clear(data[:4096])
		res, err := far.Command(cdbWrite16(0, 8), 0, data[:4096], 0)
		mustGood(t, res, err)
	}
}

// TestAbortOfACopyThatPays: task management does not wait for tokens.
func TestAbortOfACopyThatPays(t *testing.T) {
	r := crawlingRig(t)
	c := r.login(initiator.Options{})
	r.lift()
	self := naaCSCD(t, c, 0)
	r.server.SetQoS(crawl(t))
	cdb, list := copyWithin(self, 2048, false)
	start(t, c, initiator.Command{CDB: cdb, Out: list})
	eventually.Holds(t, "the copy waits", func() bool { return r.waiting() == 1 })
	if response, err := c.TaskManagement(initiator.TaskRequest{Function: initiator.LogicalUnitReset}); err != nil || response != 0 {
		t.Errorf("found %d, %v", response, err)
	}
	eventually.Holds(t, "nothing waits", func() bool { return r.waiting() == 0 })
}

// copyWithin is an EXTENDED COPY(LID4) of the first blocks of a unit to block 4096
// of the same.
func copyWithin(unit []byte, blocks uint16, immediate bool) (cdb, list []byte) {
	be := binary.BigEndian
	list = make([]byte, 48, 108)
	list[0], list[23] = 1, 7 // format; list identifier
	if immediate {
		list[15] = 1
	}
	be.PutUint16(list[42:], 32)
	be.PutUint16(list[44:], 28)
	segment := make([]byte, 28)
	segment[0], segment[3] = 0x02, 24
	be.PutUint16(segment[10:], blocks)
	be.PutUint64(segment[20:], 4096)
	list = append(append(list, unit...), segment...)
	cdb = make([]byte, 16)
	cdb[0], cdb[1], cdb[13] = 0x83, 0x01, byte(len(list))
	return cdb, list
}
