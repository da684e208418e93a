package qrdma

import (
	"fmt"
	"math"
	"testing"

	"lunar/scheduler/qtcp"
)

// model is a link on which connections take turns, and connections whose initiators always
// have so many operations of one size open. Its clock is the test's.
type model struct {
	rate   float64 // bytes per second
	level  Level
	device qtcp.Device
	flows  []*sender
	due    int64
	fifo   bool
}

// sender is a connection of the model. class qtcp.Classes is that of one that nothing governs.
type sender struct {
	class  qtcp.Class
	pacer  Pacer
	size   int64
	queue  int // operations that wait to be posted
	posted []Stamp
	done   int64 // bytes, since the warm-up
	late   bool
	most   float64 // bytes per second that its initiator asks for; 0: any
	asked  float64 // bytes
}

// run lets a time pass in ns, and returns what each connection has got since the first
// quarter of it, in bytes per second.
func (m *model) run(depth int, time int64) (rates []float64, total float64) {
	const step = 10_000 // ns: how often threads and the link are looked at
	free, turn := int64(0), 0
	for _, f := range m.flows {
		f.queue = depth
	}
	for now := int64(0); now < time; now += step {
		if now == time/4 {
			for _, f := range m.flows {
				f.done = 0
			}
		}
		for _, f := range m.flows {
			for f.queue > 0 && f.wants(now) && (f.class == qtcp.Classes || f.ready(m, now)) {
				f.queue--
				f.posted = append(f.posted, f.pacer.Post(f.size, now))
			}
		}
		for free <= now {
			f := m.next(&turn)
			if f == nil {
				free = now + 1 // it was idle
				break
			}
			free += int64(float64(f.size) / m.rate * 1e9)
			if f.class != qtcp.Classes {
				f.pacer.End(f.posted[0], max(now, free))
			}
			f.posted, f.queue, f.done = f.posted[1:], f.queue+1, f.done+f.size
		}
	}
	for _, f := range m.flows {
		rate := float64(f.done) * 1e9 / float64(time-time/4)
		rates, total = append(rates, rate), total+rate
	}
	return rates, total
}

// next is the connection whose turn it is on the link.
func (m *model) next(turn *int) (first *sender) {
	if m.fifo {
		for _, f := range m.flows {
			if len(f.posted) > 0 && (first == nil || f.posted[0].At < first.posted[0].At) {
				first = f
			}
		}
		return first
	}
	for range m.flows {
		*turn++
		if f := m.flows[*turn%len(m.flows)]; len(f.posted) > 0 {
			return f
		}
	}
	return nil
}

// wants reports whether the initiator asks for more.
func (f *sender) wants(now int64) bool {
	if f.most == 0 {
		return true
	}
	if f.asked > f.most*float64(now)/1e9 {
		return false
	}
	f.asked += float64(f.size)
	return true
}

// ready reports whether a governed connection may post, as the server's governor does.
func (f *sender) ready(m *model, now int64) bool {
	if f.pacer.Due(now) {
		if now >= m.due {
			m.due = now + 5_000_000
			var demands []Demand
			for _, o := range m.flows {
				demands = append(demands, Demand{m.device.Share(o.class), o.pacer.Measured(), o.late})
			}
			m.level.Update(demands)
		}
		f.late = f.pacer.Look(now, m.level.Allowance(m.device.Share(f.class)))
	}
	return f.pacer.Wait(now) == 0
}

func newModel(rate float64, delay, size int64, classes ...qtcp.Class) *model {
	m := &model{rate: rate, level: NewLevel(rate), device: qtcp.NewDevice(rate, qtcp.DefaultRatios)}
	for _, c := range classes {
		m.flows = append(m.flows, &sender{class: c, size: size, pacer: NewPacer(NewLine(rate), delay, 0)})
		if c != qtcp.Classes {
			m.device.Join(c)
		}
	}
	return m
}

// TestPacerShares: three connections that always have something to move get 3:2:1 of their
// link, and together what they would get without pacers, in whatever order the link serves
// them. Where the bottleneck is narrower than what the link is taken for, nobody knows but by
// how long operations take: the shares are those of the classes only roughly then.
func TestPacerShares(t *testing.T) {
	const second = 1_000_000_000
	for _, v := range []struct {
		rate, told  float64
		size, delay int64
		depth       int
		near, least float64 // to the share, of all together
	}{
		{100e6, 100e6, 16 << 10, 2e6, 64, 0.1, 0.95},
		{1.25e9, 1.25e9, 256 << 10, 2e6, 32, 0.1, 0.95},
		{12.5e9, 12.5e9, 64 << 10, 1e6, 128, 0.1, 0.95},
		{1.25e9, 2.5e9, 64 << 10, 1e6, 64, 0.35, 0.8},
		{6.25e9, 12.5e9, 256 << 10, 1e6, 64, 0.35, 0.8},
	} {
		for _, fifo := range []bool{false, true} {
			t.Run(fmt.Sprintf("%g of %g, %d KiB, fifo %v", v.rate, v.told, v.size>>10, fifo), func(t *testing.T) {
				run := func(time int64, classes ...qtcp.Class) ([]float64, float64) {
					m := newModel(v.told, v.delay, v.size, classes...)
					m.rate, m.fifo = v.rate, fifo
					return m.run(v.depth, time)
				}
				_, all := run(second/2, qtcp.Classes, qtcp.Classes, qtcp.Classes)
				rates, total := run(2*second, qtcp.High, qtcp.Medium, qtcp.Low)
				t.Logf("%.3g %.3g %.3g, together %.3g", rates[0]/total, rates[1]/total, rates[2]/total, total/all)
				for i, want := range []float64{1. / 2, 1. / 3, 1. / 6} {
					if got := rates[i] / total; math.Abs(got-want) > want*v.near {
						t.Errorf("class %d has %.3f of what all have, expected %.3f", i, got, want)
					}
				}
				if total < v.least*all {
					t.Errorf("all have %.4g, expected %g of the %.4g without pacers", total, v.least, all)
				}
			})
		}
	}
}

// TestPacerLeavesTheRest: what a class does not want the others have, by their shares.
func TestPacerLeavesTheRest(t *testing.T) {
	m := newModel(1.25e9, 1e6, 64<<10, qtcp.High, qtcp.Medium, qtcp.Low)
	m.flows[0].most = 125e6
	rates, total := m.run(64, 2e9)
	for i, want := range []float64{0.1, 0.6, 0.3} {
		if got := rates[i] / m.rate; math.Abs(got-want) > want/10 {
			t.Errorf("class %d has %.3f of the link, expected %.3f", i, got, want)
		}
	}
	if total < 0.95*m.rate {
		t.Errorf("all have %.4g of a link of %.4g", total, m.rate)
	}
}

// TestPacerAlone: a connection that is alone, or whose neighbours have nothing to move, has all
// of its link.
func TestPacerAlone(t *testing.T) {
	m := newModel(1.25e9, 1e6, 64<<10, qtcp.Low)
	if _, total := m.run(32, 1e9); total < 0.95*m.rate {
		t.Errorf("one connection has %.4g of a link of %.4g", total, m.rate)
	}
}

// TestPacerMeasuresWaits: a flow that posts something every second, though it takes a fifth of
// that, has the rate of the whole second.
func TestPacerMeasuresWaits(t *testing.T) {
	const size, rate = 8 << 10, 8 << 10
	p := NewPacer(NewLine(8*rate), 10e9, 0)
	now := int64(0)
	step := func(time int64) {
		for end := now + time; now < end; now += 10e6 {
			if p.Due(now) {
				p.Look(now, rate)
			}
			p.Wait(now)
		}
	}
	for range 20 {
		s := p.Post(size, now)
		step(200e6)
		p.End(s, now)
		step(800e6)
	}
	if got := p.Measured(); math.Abs(got-rate) > rate/10 {
		t.Errorf("measured %.5g, expected about %d", got, rate)
	}
}

// TestLevelBeginsWithShares: flows of which nothing is known yet do not have the line each, or
// their first operations were a queue that drains by nothing but what is left of the line.
func TestLevelBeginsWithShares(t *testing.T) {
	l := NewLevel(600)
	l.Update([]Demand{{Share: 1. / 2}, {Share: 1. / 3}, {Share: 1. / 6, Measured: 1000}})
	for _, share := range []float64{1. / 2, 1. / 3, 1. / 6} {
		if got := l.Allowance(share); math.Abs(got-600*share) > 1e-6 {
			t.Errorf("a flow with %.3f of the line may have %.4g, expected %.4g", share, got, 600*share)
		}
	}
}

// TestPacerGoesOn: whatever happened, something may be posted after a while, and a rate that
// was cut to the least recovers while nothing is under way.
func TestPacerGoesOn(t *testing.T) {
	const rate = 1.25e9
	p := NewPacer(NewLine(rate), 1e6, 0)
	now := int64(0)
	for range 200 { // each operation ends a second late
		s := p.Post(1<<20, now)
		now += 1e9
		p.End(s, now)
		p.late = true
		p.Look(now, rate/1000)
	}
	if p.Rate() > rate/500 {
		t.Fatalf("the rate is %.4g after 200 late operations, expected about %.4g", p.Rate(), rate*lowest)
	}
	p.Post(1<<20, now)
	p.underway = 0
	for looks := 0; p.Wait(now) > 0; looks++ {
		if looks > 1000 {
			t.Fatalf("after %d looks nothing may be posted: the rate is %.4g", looks, p.Rate())
		}
		now += p.Interval()
		if p.Due(now) {
			p.Look(now, rate)
		}
	}
	for range 1000 {
		now += p.Interval()
		p.Look(now, rate)
	}
	if p.Rate() < rate/2 {
		t.Errorf("the rate is %.4g after a long quiet time, expected that of the line, %.4g", p.Rate(), rate)
	}
}
