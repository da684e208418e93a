package iser

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"lunar/iser/verbs"
	"lunar/target/pdu"
)

const (
	// messageHead is the least length of a message.
	messageHead = headerLength + pdu.BHSLength
	// dataAt is where the data segment of a message lies in its slot, unless
	// the PDU has AHS: at a sector's border, so that it can be written to a
	// medium as it is.
	dataAt = 512
	// segmentMost is the longest data segment that is received.
	segmentMost = 8192
	slotSize    = dataAt + segmentMost
	// messageAt is where a message begins in its slot.
	messageAt   = dataAt - messageHead
	messageMost = messageHead + segmentMost
)

// receiver is the receiving half of a connection: slots of the login first, then
// those of full feature phase behind them.
type receiver struct {
	blocks [2]*block // of the login, of full feature phase
	slots  [2]int    // in each
	posted int       // receives that the device has
	again  []uint32  // slots to be posted again
	late   []message // that wait for the connection's turn
}

// slot returns the memory of a slot and the block that it lies in.
func (rx *receiver) slot(i uint32) ([]byte, *block) {
	b := rx.blocks[0]
	if int(i) >= rx.slots[0] {
		i, b = i-uint32(rx.slots[0]), rx.blocks[1]
	}
	return b.mem[int(i)*slotSize:][:slotSize:slotSize], b
}

// repost gives slots back to the device, all in one list.
func (c *conn) repost() error {
	rx, s := &c.rx, c.group
	for len(rx.again) > 0 && !c.ending {
		n := min(len(rx.again), workMost)
		for i, slot := range rx.again[:n] {
			mem, b := rx.slot(slot)
			s.ids[i] = c.receiveID(slot)
			s.sges[i] = verbs.SGE{Addr: verbs.Addr(mem[messageAt:]), Len: messageMost, LKey: b.lkey}
		}
		posted, err := c.qp.PostRecv(s.ids[:n], s.sges[:n])
		rx.posted += posted
		rx.again = rx.again[:copy(rx.again, rx.again[posted:])]
		if err != nil {
			return fmt.Errorf("post receives: %w", err)
		}
	}
	return nil
}

// arrived takes a message: for the login until the connection is attached.
func (c *conn) arrived(slot uint32, length int) {
	if c.ending {
		return
	}
	if !c.attached {
		c.login.arrived(message{slot, length})
		return
	}
	c.received(slot, length)
}

// received delivers the PDU of a message when it is the connection's turn.
func (c *conn) received(slot uint32, length int) {
	if c.why != nil {
		return
	}
	c.r.Heard()
	m := message{slot, length}
	if len(c.rx.late) > 0 || c.mustWait(m) {
		c.rx.late = append(c.rx.late, m)
		return
	}
	c.take(m)
}

// Resume implements target.Datamover.
func (c *conn) Resume() {
	defer c.r.Contain()
	for len(c.rx.late) > 0 && c.why == nil && !c.mustWait(c.rx.late[0]) {
		m := c.rx.late[0]
		c.rx.late = c.rx.late[:copy(c.rx.late, c.rx.late[1:])]
		c.take(m)
	}
}

// bytes returns what has arrived in the message's slot.
func (c *conn) bytes(m message) []byte {
	mem, _ := c.rx.slot(m.slot)
	return mem[messageAt:][:min(m.length, messageMost)]
}

// mustWait reports whether the connection has had its share; what is no PDU does not
// wait.
func (c *conn) mustWait(m message) bool {
	b := c.bytes(m)
	return len(b) >= messageHead && c.r.Spent((*pdu.BHS)(b[headerLength:]))
}

// take delivers the PDU of a message, and gives its slot back.
func (c *conn) take(m message) {
	if err := c.deliver(c.bytes(m)); err != nil {
		c.Close(fmt.Errorf("%w: %w", errProtocol, err), false)
		return
	}
	c.rx.again = append(c.rx.again, m.slot)
	c.schedule()
}

// deliver checks a message and hands its PDU on.
func (c *conn) deliver(m []byte) error {
	c.correct(m)
	bhs, ahs, data, err := parse(m)
	if err != nil {
		return err
	}
	if bhs.Opcode() == pdu.OpSCSICommand && m[0]&(readSTag|writeSTag) != 0 {
		h := (*header)(m)
		t := c.tags.add(bhs.ITT())
		if t == nil {
			return fmt.Errorf("found more than %d commands with STags that have not ended, expected the command window to bound them", len(c.tags.nodes))
		}
		t.read, t.write, t.unsolicited = h.read(), h.write(), uint32(len(data))
	}
	c.r.Received(bhs, ahs, data, false)
	return nil
}

// correct takes back a claim of immediate data that libiscsi before 1.20 makes: it
// negotiates them, counts them in DataSegmentLength, and sends none, but names a
// buffer for all (Write STag). No other message can look like that, because a
// reliable connection loses nothing of one.
func (c *conn) correct(m []byte) {
	if len(m) < messageHead || m[0]&(typeMask|writeSTag) != typeControl|writeSTag {
		return
	}
	bhs := (*pdu.BHS)(m[headerLength:])
	if bhs.Opcode() != pdu.OpSCSICommand || bhs.DataSegmentLength() == 0 || len(m) != messageHead+bhs.TotalAHSLength() {
		return
	}
	bhs.SetDataSegmentLength(0)
	if !c.corrected {
		c.corrected = true
		level := slog.LevelDebug // connections are as many as their initiator likes
		if s := c.group; time.Since(s.corrected) > time.Minute {
			s.corrected, level = time.Now(), slog.LevelInfo
		}
		c.log.Log(context.Background(), level, "the initiator announces immediate data and sends none, as libiscsi before 1.20: they are fetched")
	}
}

// parse takes a message apart. Padding may be there or not.
func parse(m []byte) (bhs *pdu.BHS, ahs, data []byte, err error) {
	if len(m) < messageHead {
		return nil, nil, nil, fmt.Errorf("found a message of %d bytes, expected at least %d", len(m), messageHead)
	}
	if err := (*header)(m).check(); err != nil {
		return nil, nil, nil, err
	}
	bhs = (*pdu.BHS)(m[headerLength:])
	head, n := messageHead+bhs.TotalAHSLength(), bhs.DataSegmentLength()
	if len(m) < head+n || len(m) > head+n+3 {
		return nil, nil, nil, fmt.Errorf("found a message of %d bytes, expected %d for %s with %d bytes of data",
			len(m), head+n, bhs.Opcode(), n)
	}
	return bhs, m[messageHead:head:head], m[head : head+n : head+n], nil
}
