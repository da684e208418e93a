package target

import "lunar/target/pdu"

// An initiator that is slower than this server always has responses that it has
// not looked at. As long as it works them off, it does not notice when new ones
// come a little later and several at a time, while here a pass that serves several
// commands costs little more than one that serves a single one. What an initiator
// has looked at, it says itself: by the ExpStatSN of its commands. So the thread
// rests for a part of the time that the initiator with the fewest responses left
// needs for them. Who has one command at a time, or keeps up, makes the thread stay
// awake for a while: of others' rests, only the first of such commands may see one.
// Responses that are still on their way look like those that the initiator has not
// come to, so whether rests cost throughput is found out (experiment.go).

// restFrom is how many responses an initiator must have left.
const restFrom = 6

// intake is what is known of how fast an initiator takes responses.
type intake struct {
	listed bool   // commands of it came in this pass
	left   uint32 // responses that it had not looked at when it sent the last one
	seen   pdu.SN // ExpStatSN of that
	peak   uint32 // of left, fading: many initiators look at all they have got, and then send
	since  pdu.SN // ExpStatSN at the time at
	at     int64
	each   int64 // nanoseconds that it takes for a response when it has enough of them: the least, rising slowly
}

// intakeResponses are needed for an estimate of the time that one takes.
const intakeResponses = 16

// judge returns for how long the initiator can be left alone, in nanoseconds;
// negative if it keeps up.
func (p *intake) judge(now int64) int64 {
	p.peak = max(p.left, p.peak-(p.peak+7)/8)
	if p.peak < restFrom {
		p.at = 0
		return -1
	}
	switch n := int64(p.seen - p.since); {
	case p.at == 0:
		p.since, p.at, p.each = p.seen, now, 0
	case n >= intakeResponses:
		each := (now - p.at) / n
		if p.each != 0 {
			each = min(each, p.each+p.each/64+1)
		}
		p.since, p.at, p.each = p.seen, now, each
	}
	return int64(p.peak) * p.each / 3
}
