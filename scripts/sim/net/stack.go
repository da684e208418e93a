package net

import "math"

// control is a congestion control of the sender's kernel.
type control uint8

const (
	cubic control = iota // RFC 9438
	dctcp                // RFC 8257
)

// Constants of the kernel's congestion controls.
const (
	cubicCut    = 0.7
	cubicScale  = 0.4
	cubicFriend = 3 * (1 - cubicCut) / (1 + cubicCut) // packets by which TCP's window would grow in a round trip
	dctcpGain   = 1. / 16
)

// stack is the congestion window of the sender's kernel, which bounds a connection beside the
// governor's: it is cut once per round trip that had marks or losses, and grows only while it is
// what bounds.
type stack struct {
	control control
	window  float64 // packets
	slow    bool

	recovered int64 // the last packet that was sent before the last cut
	alpha     float64
	end       int64 // of the round trip by which alpha goes, a packet
	delivered int64
	marked    int64
	most      float64 // cubic: the window before the last cut
	friend    float64 // and what TCP's would be
	began     int64   // and when that was
}

func newStack(c control) stack { return stack{control: c, window: firstWindow, slow: true} }

// acknowledged takes an acknowledgement at now of a packet, which tells of a mark or a loss, or not.
func (s *stack) acknowledged(now int64, f *Flow, p *Packet, marked bool) {
	s.delivered++
	if marked {
		s.marked++
	}
	if p.Tag > s.end {
		s.alpha += dctcpGain * (float64(s.marked)/float64(s.delivered) - s.alpha)
		s.end, s.delivered, s.marked = f.Sent, 0, 0
	}
	switch {
	case p.Tag <= s.recovered:
	case marked:
		s.cut(now, f)
	case float64(f.UnderWay()+2) > s.window:
		s.grow(now)
	}
}

func (s *stack) cut(now int64, f *Flow) {
	s.recovered, s.slow = f.Sent, false
	s.most, s.began = s.window, now
	if s.control == cubic {
		s.window *= cubicCut
	} else {
		s.window *= 1 - s.alpha/2
	}
	s.window = max(2, s.window)
	s.friend = s.window
}

func (s *stack) grow(now int64) {
	switch {
	case s.slow:
		s.window++
	case s.control == dctcp:
		s.window += 1 / s.window
	default:
		s.friend += cubicFriend / s.window
		t := float64(now-s.began)/float64(Second) - math.Cbrt(s.most*(1-cubicCut)/cubicScale)
		aim := max(s.friend, cubicScale*t*t*t+s.most)
		s.window += max(0, min(aim-s.window, s.window/2)) / s.window
	}
}
