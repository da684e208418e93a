package scheduler

import "lunar/internal/arith"

// Bucket paces a rate: it is a token bucket in the form of a virtual time, as
// ATM's generic cell rate algorithm. In any window of w ns it lets at most
// rate·w/1e9 + burst units pass, and one command's remainder, since a command
// that costs more than the bucket holds passes and is paid behind.
type Bucket struct {
	step  int64 // ns per unit, times 1<<stepShift
	rest  int64 // fraction of full, in 1/(1<<stepShift) ns
	full  int64 // the time at which the bucket is full again
	slack int64 // burst in ns
}

const stepShift = 16

// DefaultBurst is the burst, in ns of the rate, where none is configured: the
// window over which limits hold.
const DefaultBurst = 10e6

// MinRate and MinByteRate are the lowest rates (units/s): with them nothing
// overflows for commands of up to 16 MiB. Rules refuse lower ones.
const (
	MinRate     = 1
	MinByteRate = 4096
)

// SetRate changes rate and burst; what was taken stays taken.
func (b *Bucket) SetRate(rate, burst int64) {
	rate = max(rate, MinRate)
	b.step = (1e9 << stepShift) / rate
	b.slack = DefaultBurst
	if burst > 0 {
		b.slack = arith.MulDiv(burst, 1e9, rate)
	}
}

// Ready returns the time from which a command may pass.
func (b *Bucket) Ready() int64 { return b.full - b.slack }

// Take takes units for a command that passes at now.
func (b *Bucket) Take(units, now int64) {
	if b.full < now {
		b.full, b.rest = now, 0
	}
	b.rest += units * b.step
	b.full += b.rest >> stepShift
	b.rest &= 1<<stepShift - 1
}

// ChangeRate is SetRate at now for a part of a rate of which another has the
// rest: what the bucket holds, or owes, stays the same number of units.
func (b *Bucket) ChangeRate(rate, burst, now int64) {
	const most = 1 << 42 // ns, so that nothing overflows
	step, left := b.step, min(max(b.slack-max(0, b.full-now), -most), most)
	b.SetRate(rate, burst)
	if left >= 0 {
		b.full = now + b.slack - min(arith.MulDiv(left, b.step, step), b.slack)
	} else {
		b.full = now + b.slack + arith.MulDiv(-left, b.step, step)
	}
}
