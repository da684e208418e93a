package load

import (
	"encoding/binary"
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"lunar/internal/evloop"
	"lunar/internal/initiator"
)

// maxDepth keeps slot numbers in the lower half of an initiator task tag.
const maxDepth = 1 << 12

// slot is one outstanding command.
type slot struct {
	op         operation
	itt        uint32
	live       bool
	generation uint32 // of a verified write
	bytes      int
	started    int64  // pass time in ns
	moved      int    // bytes received, or asked for and sent
	pdus       uint32 // Data-In and R2T PDUs so far
	buffer     []byte // of its own when verifying, else the shared payload
}

// connection drives one logged-in connection. It belongs to the event thread.
type connection struct {
	engine *engine
	number int
	lun    [8]byte // field of a PDU
	fd     int
	state  *initiator.Conn // sequence numbers and parameters; its socket is fd
	pattern
	pace pace
	stream
	outbox
	slots   []slot
	free    []int32
	owed    int                     // bytes of answers that are to come, counted with InTurns
	blocked bool                    // the socket is full, the outbox holds older PDUs
	latency *hdrhistogram.Histogram // ns, of the measured time
	count   tally
}

// tally counts what the measured time brought.
type tally struct {
	reads, writes uint64
	bytes         uint64
	longest       int64 // ns, of a command
	statuses      [256]uint64
}

// Ready is a turn of the connection.
func (c *connection) Ready(events uint32) {
	if c.engine.err != nil {
		return
	}
	var err error
	if events&^unix.EPOLLOUT != 0 {
		err = c.receive()
	}
	if err != nil {
		c.fail(err)
		return
	}
	c.Run()
}

// Run is a turn without anything received.
func (c *connection) Run() {
	if err := c.turn(); err != nil {
		c.fail(err)
	}
	c.engine.checkDrained()
}

func (c *connection) fail(err error) {
	c.engine.fail(fmt.Errorf("connection %d: %w", c.number, err))
}

// turn issues what it may and sends what there is: in one go, unless an earlier
// turn left something behind a full socket.
func (c *connection) turn() error {
	if c.blocked {
		if err := c.send(); err != nil || c.blocked {
			return err
		}
	}
	inTurns := c.engine.workload.InTurns
	if !inTurns || len(c.free) == len(c.slots) {
		if err := c.issue(); err != nil {
			return err
		}
	}
	if inTurns {
		if err := evloop.SetLeast(c.fd, max(1, c.owed)); err != nil {
			return fmt.Errorf("wait for %d bytes: %w", c.owed, err)
		}
	}
	c.wait()
	return c.send()
}

// send flushes, and watches for writability while the socket is full.
func (c *connection) send() error {
	done, err := c.outbox.flush(c.fd)
	if err != nil || done != c.blocked {
		return err
	}
	c.blocked = !done
	want := uint32(unix.EPOLLIN)
	if c.blocked {
		want |= unix.EPOLLOUT
	}
	return c.engine.loop.Modify(c.fd, want)
}

// take lets a complete PDU take effect.
func (c *connection) take(p *initiator.PDU) error {
	switch p.Opcode() {
	case initiator.OpDataIn:
		return c.takeDataIn(p)
	case initiator.OpSCSIResponse:
		return c.takeResponse(p)
	case initiator.OpR2T:
		return c.takeR2T(p)
	case initiator.OpNOPIn:
		return c.takePing(p)
	case initiator.OpAsync:
		return takeAsync(p)
	}
	return fmt.Errorf("unexpected opcode %#02x, byte 2 is %#02x, data %x", p.Opcode(), p.BHS[2], p.Data)
}

func (c *connection) slotOf(p *initiator.PDU) (*slot, error) {
	itt := p.ITT()
	if i := int(itt & (1<<16 - 1)); i < len(c.slots) && c.slots[i].live && c.slots[i].itt == itt {
		return &c.slots[i], nil
	}
	return nil, wrong(p, "11.2.1.8", "initiator task tag %#08x belongs to no command", itt)
}

// takeDataIn accounts a Data-In PDU, whose data the stream placed already.
func (c *connection) takeDataIn(p *initiator.PDU) error {
	s, err := c.slotOf(p)
	if err != nil {
		return err
	}
	s.pdus++
	if !p.Has(initiator.FlagStatus) {
		return nil
	}
	return c.finish(s, p, p.BHS[3])
}

func (c *connection) takeResponse(p *initiator.PDU) error {
	s, err := c.slotOf(p)
	if err != nil {
		return err
	}
	if p.BHS[2] != 0 {
		return fmt.Errorf("target failed a command with response %#02x", p.BHS[2])
	}
	if !s.op.write && p.U32(initiator.AtDataSN) != s.pdus {
		return wrong(p, "11.4.8", "ExpDataSN %d, %d Data-In PDUs were sent", p.U32(initiator.AtDataSN), s.pdus)
	}
	return c.finish(s, p, p.BHS[3])
}

// finish completes a slot's command and frees the slot.
func (c *connection) finish(s *slot, p *initiator.PDU, status byte) error {
	good := status == initiator.StatusGood
	residual := p.U32(initiator.AtResidual)
	if good && (s.moved != s.bytes || residual != 0) {
		return wrong(p, "11.4.5.1", "GOOD after %d of %d bytes with residual %d", s.moved, s.bytes, residual)
	}
	if !good {
		c.engine.noteFailure(s, p, status)
	}
	if ledger := c.engine.ledger; ledger != nil {
		c.settle(ledger, s, good)
	}
	if observe := c.engine.workload.Observe; good && observe != nil {
		observe(c.number, s.started, c.engine.loop.Now())
	}
	if c.engine.measuring {
		c.record(s, status)
	}
	s.live = false
	c.engine.live--
	c.free = append(c.free, int32(s.itt&(1<<16-1)))
	return nil
}

func (c *connection) settle(l *ledger, s *slot, good bool) {
	switch {
	case !s.op.write && good:
		known, bad := l.check(s.buffer, s.op)
		c.engine.noteCheck(known, bad)
	case !good:
		s.generation = 0
	}
	l.release(s.op, s.generation)
}

func (c *connection) record(s *slot, status byte) {
	c.count.statuses[status]++
	if status != initiator.StatusGood {
		return
	}
	if s.op.write {
		c.count.writes++
	} else {
		c.count.reads++
	}
	c.count.bytes += uint64(s.bytes)
	// Values beyond the histogram's range are clamped, never lost.
	took := c.engine.loop.Now() - s.started
	_ = c.latency.RecordValue(min(took, maxLatency))
	c.count.longest = max(c.count.longest, took)
}

// takePing answers a target's NOP-In, ahead of the next turn's commands.
func (c *connection) takePing(p *initiator.PDU) error {
	if p.TTT() == initiator.NoTag {
		return nil
	}
	h := c.header(initiator.OpNOPOut|0x40, initiator.FlagFinal, 0)
	if h == nil {
		return errOutboxFull
	}
	copy(h[initiator.AtLUN:], p.BHS[initiator.AtLUN:initiator.AtITT])
	put(h, initiator.AtITT, initiator.NoTag)
	put(h, initiator.AtTTT, p.TTT())
	put(h, initiator.AtCmdSN, c.state.CmdSN)
	c.sealHeader(h)
	return nil
}

func put(h []byte, at int, v uint32) { binary.BigEndian.PutUint32(h[at:], v) }

func wrong(p *initiator.PDU, section, format string, args ...any) error {
	return &initiator.Violation{Section: section, Detail: fmt.Sprintf(format, args...), BHS: p.BHS}
}
