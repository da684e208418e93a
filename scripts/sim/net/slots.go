package net

import (
	"lunar/scheduler/qrdma"
	"lunar/scheduler/qtcp"
)

// The discrete-time model of the thesis: one slot is one round trip, or one interval of
// flows that have a rate, and what a flow has under way in it is a number of packets.

// threshold is K: from so many packets in a queue on, they are marked.
const threshold = 140

// gigabit is 1 Gb/s in packets of 1500 bytes per us.
const gigabit = 1.0 / 12

// interval is a slot of flows that have a rate, in us.
const interval = qrdma.Interval / 1e3

// slotFlow is a flow of the model.
type slotFlow struct {
	qtcp.Flow
	rate     qrdma.Flow
	class    qtcp.Class
	rule     Rule
	foreign  bool     // does not belong to the device
	offered  float64  // packets per us
	ratio    float64  // of the link, in place of the device's target; 0 is none
	from, to int      // slots in which it is there; to 0 is the end
	work     *backlog // messages that it has to send; nil: as much as is offered

	busy    bool    // in this slot
	sent    float64 // W': packets of the last slot; 0 is none yet
	quality float64 // Q of the last slot
}

// slots is the model with its state.
type slots struct {
	trip     float64 // us, the round trip without a queue
	capacity float64 // packets per us
	line     qrdma.Line
	device   qtcp.Device
	flows    []*slotFlow
	fixed    bool // the estimate stays as it is

	slot    int
	now     float64 // us
	backlog float64 // B
	rtt     float64 // R of the last slot, us
}

// newSlots returns the model of a link of so many Gb/s whose round trip takes trip us.
func newSlots(gigabits, trip float64, flows ...*slotFlow) *slots {
	c := gigabits * gigabit
	for _, f := range flows {
		f.Flow, f.rate = qtcp.NewFlow(firstWindow), qrdma.NewFlow(qrdma.NewLine(c))
	}
	return &slots{
		trip: trip, capacity: c, line: qrdma.NewLine(c), device: qtcp.NewDevice(c, qtcp.DefaultRatios),
		flows: flows, rtt: trip,
	}
}

// step runs a slot.
func (s *slots) step() {
	for _, f := range s.flows {
		s.meet(f)
	}
	p := 0.0
	if s.backlog >= threshold {
		p = 1 - (threshold-1)/s.backlog
	}
	previous := s.rtt
	s.rtt = s.trip + s.backlog/s.capacity
	if s.flows[0].rule.rated() {
		s.rtt = interval
	}
	total := 0.0
	for _, f := range s.flows {
		if f.busy {
			total += s.send(f, p, previous)
		}
	}
	s.backlog = max(0, s.backlog+total-s.capacity*s.rtt)
	s.now += s.rtt
	if s.slot++; s.slot%qtcp.EstimateEvery == 0 && !s.fixed {
		s.observe()
	}
}

// meet counts a flow while it has something to send.
func (s *slots) meet(f *slotFlow) {
	busy := s.slot >= f.from && (f.to == 0 || s.slot < f.to)
	if f.work != nil {
		busy = f.work.due(s.now)
	}
	if busy != f.busy && !f.foreign {
		if busy {
			s.device.Join(f.class)
		} else {
			s.device.Leave(f.class)
		}
	}
	f.busy = busy
}

// send runs the slot of a flow, and returns the packets that it sends.
func (s *slots) send(f *slotFlow, p, previous float64) float64 {
	f.quality = s.judge(f, previous)
	q := f.quality
	if f.rule == f.rule.plain() {
		q = qtcp.DCTCP
	}
	allowed := 0.0
	switch {
	case f.rule.rated():
		f.rate.Update(s.line, p > 0, q)
		allowed = f.rate.Rate() * s.rtt
	case f.rule == D2TCP:
		f.UpdateD2TCP(p, f.work.lateness())
		allowed = f.Window()
	default:
		f.Update(p, q)
		allowed = f.Window()
	}
	f.sent = min(allowed, f.offered*s.rtt)
	if f.work != nil {
		f.sent = f.work.take(f.sent, s.now+s.rtt)
		if f.sent < allowed {
			f.Use(max(firstWindow, 2*f.sent))
		}
	}
	f.Measure(f.sent / s.rtt)
	f.rate.Measure(f.sent / s.rtt)
	return f.sent
}

// judge is Q of a flow by what it sent in the last slot, or by how late its messages are.
func (s *slots) judge(f *slotFlow, rtt float64) float64 {
	target := s.device.Target(f.class)
	if f.ratio > 0 {
		target = f.ratio * s.capacity
	}
	switch {
	case f.sent == 0:
		return qtcp.DCTCP
	case f.rule == Timely || f.rule == TimelyRDMA:
		return f.work.lateness()
	case f.rule.rated():
		return f.rate.Quality(target)
	}
	return target * rtt / f.sent
}

func (s *slots) observe() {
	sum, slow := 0.0, false
	for _, f := range s.flows {
		if f.busy && !f.foreign {
			sum += f.Measured()
			slow = slow || f.SlowStart() && !f.rule.rated()
		}
	}
	s.device.Observe(sum, slow)
}

// run runs slots and returns the mean rate of each flow in them in Gb/s.
func (s *slots) run(n int) []float64 {
	sent := make([]float64, len(s.flows))
	began := s.now
	for range n {
		s.step()
		for i, f := range s.flows {
			if f.busy {
				sent[i] += f.sent
			}
		}
	}
	for i := range sent {
		sent[i] /= (s.now - began) * gigabit
	}
	return sent
}

// three are flows of the three classes that offer 90, 60 and 30 Gb/s.
func three(r Rule) []*slotFlow {
	flows := make([]*slotFlow, 0, len(offered)+1)
	for c, gigabits := range offered {
		flows = append(flows, &slotFlow{rule: r, class: qtcp.Class(c), offered: gigabits * gigabit})
	}
	return flows
}

// offered is what High, Medium and Low offer to a link of 100 Gb/s, in Gb/s.
var offered = [qtcp.Classes]float64{90, 60, 30}
