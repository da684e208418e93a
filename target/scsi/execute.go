package scsi

import (
	"lunar/backstore"
	"lunar/backstore/protect"
	"lunar/internal/invariants"
	"lunar/target/scsi/sense"
	"lunar/target/scsi/taskset"
)

// Execute runs c, whose Nexus leads to lu. Everything that c does later
// happens on the calling event thread; c may end before Execute returns.
func (lu *LogicalUnit) Execute(c *Command) {
	if s := c.decode(); s != nil {
		c.Fail(s)
		return
	}
	if (c.Attribute > Simple || lu.tasks.watched.Load()) && !lu.enter(c) {
		return
	}
	lu.proceed(c)
}

// decode finds the command's row and checks its CDB against the usage data.
func (c *Command) decode() *sense.Data {
	if c.seg[0].cmd == nil {
		c.bind()
	}
	row, s := lookup(&c.CDB)
	if s != nil {
		return s
	}
	c.row = row
	if lu := c.Nexus.LU; row.Flags&Protectable != 0 && lu != nil && lu.protect != protect.None {
		return c.checkProtection()
	}
	return c.checkCDB(&c.CDB)
}

// checkCDB holds the CDB against the usage data of its row. NACA is not in it:
// whoever may set it costs those who do not nothing.
func (c *Command) checkCDB(cdb *CDB) *sense.Data {
	s := c.row.check(cdb)
	if s == nil || !c.hasNACA() {
		return s
	}
	plain := *cdb
	plain[controlByte(cdb)] &^= nacaBit
	return c.row.check(&plain)
}

// proceed runs a command whose turn it is in the task set.
func (lu *LogicalUnit) proceed(c *Command) {
	if s := lu.admit(c); s != nil {
		c.Fail(s)
		return
	}
	if restricted := restrictions(c.Nexus.restricted.Load()) & c.row.restricted; restricted != 0 {
		if restricted&restrictFlux != 0 {
			lu.hold(c)
			return
		}
		if restricted&restrictRelay != 0 {
			lu.relay(c)
			return
		}
		c.refuse(restricted)
		return
	}
	if c.row.Flags&ParameterList != 0 {
		c.fetch(c.row.List(&c.CDB), 0, c.row.Run)
		return
	}
	c.row.Run(c)
}

// admit makes the checks that all commands have in common.
func (lu *LogicalUnit) admit(c *Command) *sense.Data {
	row := c.row
	if row.Flags&IgnoreAttention == 0 {
		if s := c.pending(); s != nil {
			return s
		}
	}
	if row.Flags&needs != 0 && !lu.supports(row) {
		if row.Flags&(NeedsErase|NeedsCryptoErase) != 0 { // SANITIZE is there, with other service actions
			return sense.InvalidFieldInCDB(1, 4)
		}
		return sense.InvalidOpcode
	}
	state := lu.state.Load()
	if s := state.unready(row); s != nil {
		return s
	}
	return lu.forbids(c.Nexus, row, state)
}

// forbids returns why n may not run the row's command for want of the right to write, or
// nil.
func (lu *LogicalUnit) forbids(n *Nexus, row *Row, state *State) *sense.Data {
	switch {
	case row.Access == AccessWrite:
		return lu.protection(n, state)
	case row.Flags&NeedsWriter != 0 && n.ReadOnly.Load():
		return sense.WriteProtected
	}
	return nil
}

// pending returns what the initiator is to be told before anything is done for
// it: a unit attention, else a deferred error.
func (c *Command) pending() *sense.Data {
	if c.Nexus.attentions.pending.Load() {
		if asc, ok := c.Nexus.takeAttention(); ok {
			return c.sense(sense.Data{Key: sense.UnitAttention, ASC: asc})
		}
	}
	if c.Nexus.deferred.Load() != nil {
		return c.Nexus.takeDeferred()
	}
	return nil
}

// unready returns why a command of the row cannot run in the state, or nil.
func (state *State) unready(row *Row) *sense.Data {
	switch z := state.Sanitize; {
	case z != nil && row.Flags&DuringSanitize == 0:
		s := z.sense()
		return &s
	case state.Ejected && (row.Flags&IgnoreStopped == 0 || row.Flags&NeedsMedium != 0):
		return sense.MediumNotPresent
	case state.Stopped && row.Flags&IgnoreStopped == 0:
		return sense.InitializingCommandRequired
	}
	return nil
}

// supports reports whether the logical unit has the row's command.
func (lu *LogicalUnit) supports(row *Row) bool {
	return (row.Flags&NeedsDiscard == 0 || lu.traits.Load().info.Discard) &&
		(row.Flags&NeedsErase == 0 || lu.traits.Load().info.Discard && lu.traits.Load().info.DiscardZeroes) &&
		(row.Flags&NeedsCryptoErase == 0 || lu.traits.Load().info.CryptoErase) &&
		(row.Flags&NeedsAtomic == 0 || lu.traits.Load().limits.MaxAtomic > 0) &&
		(row.Flags&NeedsRemovable == 0 || lu.config.Removable) &&
		(row.Flags&NeedsType2 == 0 || lu.protect == protect.Type2) &&
		(row.Flags&NeedsExplicitAccess == 0 || lu.traits.Load().explicit)
}

// protection returns why n may not write, or nil.
func (lu *LogicalUnit) protection(n *Nexus, state *State) *sense.Data {
	switch {
	case n.ReadOnly.Load() || state.ReadOnly:
		return sense.WriteProtected
	case state.SoftProtect:
		return sense.SoftwareWriteProtected
	}
	return nil
}

// ExecuteNoLU runs c, whose LUN is not mapped: Nexus.LU is nil. The few
// commands that SAM-5 clause 5.12 answers for an incorrect LUN run; the others
// end with LOGICAL UNIT NOT SUPPORTED.
func ExecuteNoLU(c *Command) {
	s := c.decode()
	switch {
	case c.row == nil || c.row.Flags&NoLU == 0:
		c.Fail(sense.LUNotSupported)
	case s != nil:
		c.Fail(s)
	default:
		c.row.Run(c)
	}
}

// sense stores a sense value that no other command shares in c.
func (c *Command) sense(s sense.Data) *sense.Data {
	c.fault = s
	return &c.fault
}

// Good ends the command with GOOD status and without data.
func (c *Command) Good() { c.end(Good, nil) }

// Fail ends the command with CHECK CONDITION and s, which stays unchanged from
// now on. If operations are still running, nothing new is started and the end
// waits for them. The first failure of a command is the one that is reported.
func (c *Command) Fail(s *sense.Data) { c.end(CheckCondition, s) }

// FailStatus ends the command with a status other than CHECK CONDITION, under
// the same conditions as Fail.
func (c *Command) FailStatus(st Status) { c.end(st, nil) }

// FailTransfer is Fail for a transport that cannot deliver the Data-Out any
// more: nothing of it is awaited.
func (c *Command) FailTransfer(s *sense.Data) {
	c.out = 0
	if c.ending {
		c.settle() // it may have waited for nothing but that
		return
	}
	c.Fail(s)
}

// ForgoTransfer is FailTransfer with a status in place of sense.
func (c *Command) ForgoTransfer(st Status) {
	c.out = 0
	if c.ending {
		c.settle()
		return
	}
	c.FailStatus(st)
}

func (c *Command) end(st Status, s *sense.Data) {
	if c.ending {
		return
	}
	c.Status, c.Sense, c.ending = st, s, true
	c.endWait()
	c.settle()
}

// SendParameter ends the command with GOOD and parameter data: at most
// allocation bytes of data, which stays unchanged until the port has sent it.
func (c *Command) SendParameter(data []byte, allocation uint32) {
	if c.ending {
		return
	}
	c.Effort += len(data) >> 10
	c.Length = uint32(min(uint64(len(data)), uint64(allocation)))
	c.Parameter = data[:c.dataIn()]
	c.ending = true
	c.settle()
}

// answer ends the command with data, cut to the allocation length, or with
// sense if it is set.
func (c *Command) answer(data []byte, allocation uint32, sense *sense.Data) {
	if sense != nil {
		c.Fail(sense)
		return
	}
	c.SendParameter(data, allocation)
}

// settle gives the command back to the port if it is to end and nothing of it
// is under way any more. This is the only place where a command ends of its
// own accord: the caller must not touch c afterwards.
func (c *Command) settle() {
	if !c.ending || c.pumping || c.running > 0 || c.out > 0 {
		return
	}
	final := c.final
	c.final = nil
	if final == nil {
		if c.Status == CheckCondition && !c.aborted {
			c.failed()
		}
		c.release()
		c.deliver()
		return
	}
	ref := final.ref
	final.ref = nil
	c.release()
	c.Port.SendDataIn(c, final.off, ref, ref.Bytes()[:final.n], true)
}

// deliver ends a command without a final segment.
func (c *Command) deliver() {
	if len(c.Parameter) > 0 && c.Status == Good && !c.aborted {
		c.Port.SendDataIn(c, 0, nil, c.Parameter, true)
		return
	}
	c.Port.Complete(c)
}

// Abort ends the command for task management or a lost connection. Nothing new
// is started, and no Data-Out is wanted any more. True says that the command is
// the port's again, without Complete; false that Complete follows when the
// operations in the lane's hands have ended.
func (c *Command) Abort() (ended bool) {
	c.ending, c.aborted, c.final, c.out = true, true, nil, 0
	c.endWait()
	c.takeBack()
	if c.running > 0 {
		return false
	}
	c.release()
	return true
}

// takeBack ends the operations of a command that is to end which a frozen volume has
// not begun.
func (c *Command) takeBack() {
	was := c.pumping
	c.pumping = true // what ends here is counted by who called
	for i := c.head; i != c.tail; i++ {
		if s := c.at(i); s.state == running && backstore.Cancel(s.lane(), &s.op) {
			s.end()
		}
	}
	c.pumping = was
}

// Aborted reports that Abort ended the command: no status may be sent.
func (c *Command) Aborted() bool { return c.aborted }

// Resume continues the command after Port.Alloc said not now.
func (c *Command) Resume() {
	if c.starved {
		c.starved = false
		c.pump()
	}
}

// DataOut tells that the n bytes at buffer offset off that ReceiveDataOut asked
// for are in place.
func (c *Command) DataOut(off, n uint32) {
	if c.out == 0 {
		return
	}
	c.out--
	for i := c.head; i != c.tail; i++ {
		if s := c.at(i); s.off == off && s.state == receiving {
			if invariants.Enabled {
				invariants.Assert(s.n == n, "scsi: Data-Out of another length than asked for")
			}
			s.state = arrived
		}
	}
	c.pump()
}

// pump runs the command's step until it has nothing more to start. Events that
// happen while step is on the stack are seen by its next turn, so that step
// never nests.
func (c *Command) pump() {
	if c.pumping {
		c.again = true
		return
	}
	c.pumping = true
	for c.again = true; c.again && !c.ending; {
		c.again = false
		c.step(c)
	}
	c.pumping = false
	c.settle()
}

// run makes step the command's next step and takes it.
func (c *Command) run(step func(*Command)) {
	c.step = step
	c.pump()
}

// endWait takes a command that is to end out of its wait for others.
func (c *Command) endWait() {
	if c.feature != nil && c.feature.cancel(c) {
		c.running--
	}
}

// release lets go of all that an ended command holds.
func (c *Command) release() {
	if c.place != nil {
		c.exitTaskSet()
	}
	for c.head != c.tail {
		c.close()
	}
	if c.feature != nil {
		c.feature.ended(c)
	}
	if c.list != nil {
		c.list.Release()
		c.list, c.data = nil, nil
	}
}

// Hit reports, at its end, that the store behind a cache had nothing to do for the command, or that it
// was done in the memory of one that is nothing else.
func (c *Command) Hit() bool { return !c.missed }

// Reset makes an ended command ready for reuse. It leaves alone what the port
// fills in for every command and the segments, which are idle.
func (c *Command) Reset() {
	c.Immediate, c.Sense, c.Parameter, c.Status, c.Length, c.Takes, c.Effort = nil, nil, nil, Good, 0, false, 0
	c.row, c.step, c.parsed = nil, nil, nil
	c.limit, c.next, c.head, c.tail, c.fua, c.work = 0, 0, 0, 0, false, work{}
	c.turn, c.place = taskset.Turn{}, nil
	c.reads, c.sanitizes, c.elsewhere, c.feature = false, false, false, nil
	c.inline, c.shield = 0, shield{}
	c.starved, c.refused, c.missed, c.ending, c.aborted, c.again = false, false, false, false, false, false
	c.awaiting.Store(false)
}
