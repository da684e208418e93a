package scsi

import (
	"encoding/binary"
	"errors"
	"time"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// Fields of SANITIZE (SBC-3 clause 5.24), byte 1, and of the parameter list of
// its OVERWRITE service action.
const (
	sanitizeImmediate = 0x80
	sanitizeExit      = 0x20 // AUSE: EXIT FAILURE MODE is allowed should it fail
	sanitizeHeader    = 4
	sanitizeInvert    = 0x80 // byte 0 of the list
	sanitizeTest      = 0x60
	sanitizeCount     = 0x1f
)

// sanitizeOverwrite runs SANITIZE with the service action OVERWRITE.
func sanitizeOverwrite(c *Command) {
	list, size := c.List(), c.Nexus.LU.config.BlockSize
	if c.Length <= sanitizeHeader || int(c.Length) > sanitizeHeader+size {
		c.Fail(sense.InvalidFieldInCDB(7, sense.NoBit))
		return
	}
	if len(list) < sanitizeHeader {
		c.Fail(sense.ParameterListLengthError)
		return
	}
	n := int(binary.BigEndian.Uint16(list[2:])) // INITIALIZATION PATTERN LENGTH
	switch {
	case list[0]&sanitizeTest != 0:
		c.Fail(sense.InvalidFieldInList(0, 6))
	case list[0]&sanitizeCount == 0:
		c.Fail(sense.InvalidFieldInList(0, 4))
	case n == 0 || n > size:
		c.Fail(sense.InvalidFieldInList(2, sense.NoBit))
	case sanitizeHeader+n > len(list):
		c.Fail(sense.ParameterListLengthError)
	default:
		c.sanitize(&sanitizing{
			passes: int(list[0] & sanitizeCount), invert: list[0]&sanitizeInvert != 0,
			pattern: append([]byte(nil), list[sanitizeHeader:][:n]...),
		})
	}
}

// sanitizeBlockErase runs SANITIZE with the service action BLOCK ERASE. To
// release the blocks alone would leave their data where they were on the medium
// below: they are overwritten with zeroes before.
func sanitizeBlockErase(c *Command) {
	c.sanitize(&sanitizing{passes: 1, pattern: []byte{0}, erase: true})
}

// sanitizeExitFailureMode runs SANITIZE with the service action EXIT FAILURE
// MODE.
func sanitizeExitFailureMode(c *Command) {
	lu := c.Nexus.LU
	if z := lu.state.Load().Sanitize; z != nil {
		if !z.failed.Load() {
			c.Fail(c.sense(z.sense()))
			return
		}
		if !z.exit {
			c.Fail(sense.InvalidFieldInCDB(1, 4))
			return
		}
		c.noteSanitizing(z, nil, func(c *Command, err error) { c.exitFailure(z, err) })
		return
	}
	c.Good()
}

// exitFailure makes the medium accessible again.
func (c *Command) exitFailure(z *sanitizing, err error) {
	lu := c.Nexus.LU
	if err != nil {
		c.conclusive(lu.unsanitized(err))
		return
	}
	lu.mu.Lock()
	lu.endSanitizing(z, nil)
	lu.mu.Unlock()
	c.conclusive((*Command).Good)
}

// conclusive ends the command; one that was aborted meanwhile ends as that.
func (c *Command) conclusive(end outcome) {
	if c.ending {
		c.settle()
		return
	}
	end(c)
}

// sanitize begins the operation z.
func (c *Command) sanitize(z *sanitizing) {
	lu := c.Nexus.LU
	z.exit, z.began = c.CDB[1]&sanitizeExit != 0, time.Now()
	var before *sanitizing // that has failed, or is busy
	busy := false
	lu.update(func(s *State) {
		before = s.Sanitize
		if busy = before != nil && !before.failed.Load(); !busy {
			z.total = (s.Blocks << lu.blockShift) * uint64(z.passes)
			s.Sanitize = z
		}
	})
	if busy {
		c.Fail(c.sense(before.sense()))
		return
	}
	c.noteSanitizing(z, z.note(), func(c *Command, err error) { c.startSanitize(z, before, err) })
}

// startSanitize begins the operation z, of which there is a note unless err says that
// it could not be made. The unit is as before if it cannot begin.
func (c *Command) startSanitize(z, before *sanitizing, err error) {
	lu := c.Nexus.LU
	immediate, end := c.CDB[1]&sanitizeImmediate != 0, failure(sense.InsufficientResources)
	if err != nil {
		end = lu.unsanitized(err)
	}
	run := &sanitizer{sanitizing: z}
	if !immediate && !c.ending {
		run.waiter, c.feature = c, (*sanitizeWaiter)(run) // it may have ended when Background returns
	}
	if err != nil || c.ending || !c.Port.Background(c, func(b *Command) { b.beginSanitize(run) }) {
		run.waiter, c.feature = nil, nil
		lu.mu.Lock()
		lu.endSanitizing(z, before)
		lu.mu.Unlock()
		c.noteSanitizing(before, before.note(), func(c *Command, _ error) { c.conclusive(end) })
		return
	}
	if immediate {
		c.Good()
	}
}

// beginSanitize is the background command's.
func (c *Command) beginSanitize(z *sanitizer) {
	lu := c.Nexus.LU
	lu.config.Logger.Info("sanitize operation", "volume", lu.Name(), "passes", z.passes, "crypto-erase", z.crypto, "initiator", c.Nexus.Initiator)
	c.sanitizes, c.feature = true, z
	if z.crypto {
		c.run(cryptoEraseStep)
		return
	}
	c.fetch(0, SegmentSize, func(c *Command) {
		c.work.index = 0
		c.fillPattern()
		c.run(sanitizeStep)
	})
}

// fillPattern repeats the pattern within each block of the workspace.
func (c *Command) fillPattern() {
	z, size := c.sanitizer(), c.Nexus.LU.config.BlockSize
	flip := byte(0)
	if z.invert && c.work.index%2 == 1 {
		flip = 0xff
	}
	room := c.workspace()
	for i := range size {
		room[i] = z.pattern[i%len(z.pattern)] ^ flip
	}
	for n := size; n < len(room); n *= 2 {
		copy(room[n:], room[:n])
	}
	c.work.at, c.work.left = 0, c.Nexus.LU.state.Load().Blocks
}

// sanitizeStep overwrites one piece after the other, each pass followed by a
// flush. Each piece holds its extent exclusively: a write of before has ended
// by then, and one that comes later is refused.
func sanitizeStep(c *Command) {
	s, z, lu := c.carrier(), c.sanitizer(), c.Nexus.LU
	for s.state != running {
		if s.state == done && s.op.Err != nil && !(s.op.Kind == backstore.Wipe && errors.Is(s.op.Err, backstore.ErrUnsupported)) {
			c.endSanitize(s)
			return
		}
		if s.state == done && s.op.Kind == backstore.Write {
			z.done.Add(uint64(s.op.Len))
		}
		s.state = idle
		switch {
		case !z.wiped:
			z.wiped = true
			s.op.Data, s.op.Off, s.op.Len = nil, 0, 0
			s.launch(backstore.Wipe)
		case c.work.left > 0:
			if c.paceSanitize() {
				return
			}
			c.overwritePiece(s, lu)
		case c.work.index < z.passes:
			s.op.Data, s.op.Off, s.op.Len = nil, 0, 0
			if c.work.index++; c.work.index < z.passes {
				c.fillPattern()
			}
			s.launch(backstore.Flush)
		case z.erase && c.work.index == z.passes:
			c.work.index++
			s.op.Data, s.op.Off, s.op.Len = nil, 0, lu.byteOff(lu.state.Load().Blocks)
			s.lock.cover(exclusive, 0, s.op.Len)
			s.launch(backstore.Discard)
		case z.erase && c.work.index == z.passes+1:
			c.work.index++
			s.op.Data, s.op.Off, s.op.Len = nil, 0, 0
			s.launch(backstore.Flush)
		default:
			c.endSanitize(s)
			return
		}
	}
}

func (c *Command) overwritePiece(s *segment, lu *LogicalUnit) {
	room := c.workspace()
	n := min(c.work.left, uint64(len(room))>>lu.blockShift)
	s.op.Off, s.op.Len, s.op.Data = lu.byteOff(c.work.at), int64(n<<lu.blockShift), room[:n<<lu.blockShift]
	c.work.at += n
	c.work.left -= n
	s.lock.cover(exclusive, s.op.Off, s.op.Len)
	s.launch(backstore.Write)
}

// paceSanitize keeps to the configured rate: true says that the next step comes
// later.
func (c *Command) paceSanitize() bool {
	rate := c.Nexus.LU.sanitizeRate.Load()
	later, ok := c.Port.(interface{ Later(time.Duration, Task) })
	if rate <= 0 || !ok {
		return false
	}
	z := c.sanitizer()
	early := time.Duration(float64(z.done.Load())/float64(rate)*float64(time.Second)) - time.Since(z.began)
	if early < time.Millisecond {
		return false
	}
	later.Later(early, (*nextStep)(c))
	return true
}

// nextStep is a command that has waited for time to pass.
type nextStep Command

// Run implements Task.
func (t *nextStep) Run() { (*Command)(t).pump() }

// endSanitize ends the operation: the medium is there again, or the unit has
// failed.
func (c *Command) endSanitize(s *segment) {
	z, lu := c.sanitizer(), c.Nexus.LU
	if err := s.op.Err; err != nil {
		lu.complain(s.op.Kind, uint64(s.op.Off)>>lu.blockShift, err)
		z.failed.Store(true)
		c.endWaiter(failure(sense.SanitizeFailed))
		c.Fail(sense.SanitizeFailed)
		return
	}
	c.step = awaitNote
	c.noteSanitizing(z.sanitizing, nil, (*Command).sanitized)
}

// awaitNote is the step of a command whose end is being noted: a flush that has ended at once asks
// for another step behind the last one.
func awaitNote(*Command) {}

// sanitized follows the success of the operation. If the note of it could not be
// removed, it will be found after a restart, which is on the safe side. Another server that
// has found it, however, keeps the medium to itself.
func (c *Command) sanitized(err error) {
	z, lu := c.sanitizer(), c.Nexus.LU
	end := (*Command).Good
	switch {
	case errors.Is(err, ErrElsewhere):
		end = lu.unsanitized(err)
	case err != nil:
		lu.config.Logger.Error("the end of a sanitize operation cannot be saved", "volume", lu.Name(), "err", err)
	}
	lu.mu.Lock()
	lu.endSanitizing(z.sanitizing, nil)
	lu.mu.Unlock()
	lu.config.Logger.Info("sanitize operation has ended", "volume", lu.Name(), "time", time.Since(z.began).Round(time.Millisecond))
	c.endWaiter(end)
	c.feature = nil
	c.conclusive(end)
}

// sanitizer is what the background command of a sanitize operation keeps.
type sanitizer struct {
	*sanitizing
	waiter *Command // without IMMED: the command that asked for it, on the same thread
}

// sanitizer is that of a command that makes a sanitize operation.
func (c *Command) sanitizer() *sanitizer { return c.feature.(*sanitizer) }

// cancel implements feature.
func (z *sanitizer) cancel(*Command) bool { return false }

// ended implements feature.
func (z *sanitizer) ended(c *Command) {
	if c.aborted {
		z.discarded(c, false)
	}
}

// sanitizeWaiter is what the command keeps that waits for the operation.
type sanitizeWaiter sanitizer

// cancel implements feature.
func (z *sanitizeWaiter) cancel(*Command) bool { return false }

// ended implements feature.
func (z *sanitizeWaiter) ended(c *Command) { z.waiter, c.feature = nil, nil }

// discarded implements feature.
func (z *sanitizeWaiter) discarded(*Command, bool) {}

// discarded implements feature. It tells of an operation that the end of the server
// ends: it is not resumed, and after a restart it has failed.
func (z *sanitizer) discarded(c *Command, _ bool) {
	lu := c.Nexus.LU
	lu.config.Logger.Warn("a sanitize operation was not finished: the medium is overwritten in part only", "volume", lu.Name(),
		"done", z.done.Load(), "of", z.total)
}

// endWaiter ends the command that waits for the operation, if it still does.
func (c *Command) endWaiter(end outcome) {
	z := c.sanitizer()
	w := z.waiter
	if w == nil {
		return
	}
	z.waiter, w.feature = nil, nil
	end(w)
}
