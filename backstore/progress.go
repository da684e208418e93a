package backstore

import (
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// inlineSpan bounds what the event thread may zero or release by itself.
const inlineSpan = 1 << 20

// begin checks op and prepares its first call. A true result means that op has
// ended.
func (v *volume) begin(op *Op) bool {
	st := &op.lane
	st.done, st.settling = 0, false
	op.Err = v.admit(op)
	if op.Err != nil || op.Kind != Flush && op.Kind != Wipe && op.Length() == 0 {
		return true
	}
	return v.prepare(op)
}

// prepare chooses the next call of op. A true result means that none is needed
// or possible: op has ended.
func (v *volume) prepare(op *Op) bool {
	st := &op.lane
	c := &st.call
	c.verb, c.needs, c.flags, c.data = noCall, 0, 0, nil
	c.off, c.n = op.Off+st.done, op.Length()-st.done
	switch {
	case st.settling || op.Kind == Flush:
		c.verb = syncCall
	case op.Atomic || op.Kind == Wipe:
		v.prepareSlow(op)
	case op.Kind == Read:
		c.verb, c.data = readCall, op.Data[st.done:]
	case op.Kind == Write:
		v.prepareWrite(op, op.Data[st.done:])
	case op.Kind == Discard:
		v.prepareDiscard(op)
	case op.Kind == WriteZeroes:
		v.prepareZeroes(op)
	case op.Kind == Map:
		v.prepareMap(op)
	}
	return c.verb == noCall
}

func (v *volume) prepareWrite(op *Op, data []byte) {
	c := &op.lane.call
	c.verb, c.data = writeCall, data
	if v.stable(op) && v.has(dsync) {
		c.flags, c.needs = unix.RWF_DSYNC, dsync
	}
}

func (v *volume) prepareDiscard(op *Op) {
	c := &op.lane.call
	switch {
	case !v.has(punchHole):
		op.Err = fmt.Errorf("%v on %s: %w", op.Kind, v.path, ErrUnsupported)
	case v.trims:
		c.verb, c.needs = trimCall, punchHole
	default:
		c.verb, c.needs, c.flags = allocCall, punchHole, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE
	}
}

func (v *volume) prepareZeroes(op *Op) {
	c := &op.lane.call
	if v.has(zeroRange) {
		c.verb, c.needs, c.flags = allocCall, zeroRange, unix.FALLOC_FL_ZERO_RANGE|unix.FALLOC_FL_KEEP_SIZE
		return
	}
	v.prepareWrite(op, v.zeroes[:min(c.n, zeroChunk)])
}

// prepareMap takes all for provisioned where holes are unknown.
func (v *volume) prepareMap(op *Op) {
	if !v.has(seekHole) {
		op.Mapped = true
		return
	}
	op.lane.call.verb, op.lane.call.needs = seekCall, seekHole
}

// advance takes the result of op's current call and prepares the next one. A
// true result means that op has ended.
func (v *volume) advance(op *Op, res int64) bool {
	st := &op.lane
	c := &st.call
	if res < 0 {
		return v.recover(op, unix.Errno(-res))
	}
	switch c.verb {
	case syncCall:
		return true
	case seekCall:
		op.Mapped, op.Len = c.mapped, res
		return true
	case intentCall:
		return true
	case readCall, writeCall:
		if res == 0 {
			op.Err = v.stalled(c)
			return true
		}
		st.done += res
	default:
		st.done += c.n
	}
	return v.settled(op) || v.prepare(op)
}

// settled reports whether all of op is done. What was not stable by itself is
// followed by a flush.
func (v *volume) settled(op *Op) bool {
	st := &op.lane
	if st.done < op.Length() {
		return false
	}
	st.settling = v.stable(op) && !st.call.durable()
	return !st.settling
}

// stalled explains a transfer of no bytes.
func (v *volume) stalled(c *call) error {
	if c.verb == readCall {
		return v.truncated(c.off)
	}
	return io.ErrShortWrite
}

// recover goes on without an ability that the kernel refused, or ends op.
func (v *volume) recover(op *Op, errno unix.Errno) bool {
	c := &op.lane.call
	if errno != unix.EOPNOTSUPP || c.needs == 0 {
		op.Err = v.fail(op, errno)
		return true
	}
	v.forgo(c.needs)
	return v.prepare(op)
}
