package net

import (
	"testing"

	"lunar/scheduler/qtcp"
	"lunar/scripts/sim/kernel"
)

// watcher notes when its packets arrive.
type watcher struct {
	arrived []int64
	lost    int
}

func (w *watcher) Arrived(now int64, _ *Packet)     { w.arrived = append(w.arrived, now) }
func (w *watcher) Acknowledged(int64, *Packet)      {}
func (w *watcher) Lost(int64, *Packet)              { w.lost++ }
func (w *watcher) packet(b int, l ...*Link) *Packet { return &Packet{Bytes: b, Owner: w, Path: l} }

// TestOneSwitch: 128 bytes over a switch take 1320.48 ns, a read's 4 KiB back 1757.28 ns.
func TestOneSwitch(t *testing.T) {
	for _, c := range []struct {
		packets []int
		want    int64
	}{{[]int{128}, 1_320_480}, {[]int{1500, 1500, 1216}, 1_757_280}} {
		var k kernel.Kernel
		var w watcher
		first, second := NewLink(&k, PerByte(100), Propagation+Switching), NewLink(&k, PerByte(100), Propagation)
		for _, bytes := range c.packets {
			w.packet(bytes, first, second).Send()
		}
		k.Drain()
		if got := w.arrived[len(w.arrived)-1]; got != c.want {
			t.Errorf("%v bytes arrive after %d ps, expected %d", c.packets, got, c.want)
		}
	}
	if got := WireBytes(4096); got != 1500+1500+1216 {
		t.Errorf("4 KiB need %d bytes, expected 4216", got)
	}
}

// TestUrgentWaitsForOnePacket: 128 bytes behind 1500 that have just begun wait for 120 ns,
// however many more there are.
func TestUrgentWaitsForOnePacket(t *testing.T) {
	var k kernel.Kernel
	var w watcher
	l := NewLink(&k, PerByte(100), Propagation)
	for range 10 {
		(&watcher{}).packet(MTU, l).Send()
	}
	p := w.packet(128, l)
	p.Urgent = true
	p.Send()
	k.Drain()
	const want = 120_000 + 10_240 + 500_000
	if w.arrived[0] != want {
		t.Errorf("arrived after %d ps, expected %d", w.arrived[0], want)
	}
}

// TestReserve: what is reserved for urgent packets no other gets.
func TestReserve(t *testing.T) {
	var k kernel.Kernel
	var others, urgent watcher
	l := NewLink(&k, PerByte(100), Propagation)
	l.Room, l.Reserve = 10, 2
	for range 12 {
		others.packet(MTU, l).Send()
	}
	for range 3 {
		p := urgent.packet(128, l)
		p.Urgent = true
		p.Send()
	}
	k.Drain()
	if others.lost != 4 || urgent.lost != 1 || l.Dropped != 5 {
		t.Errorf("lost %d and %d urgent, dropped %d, expected 4, 1, 5", others.lost, urgent.lost, l.Dropped)
	}
}

// TestMarks: of a queue that stays at 2K-2 packets half of what comes is marked; by step all.
func TestMarks(t *testing.T) {
	l := &Link{Mark: 51}
	marked := 0
	for range 1000 {
		if l.marks(&Packet{}, 100) {
			marked++
		}
	}
	if marked != 500 {
		t.Errorf("%d of 1000 marked, expected 500", marked)
	}
	if l.marks(&Packet{}, 50) || l.marks(&Packet{Urgent: true}, 100) {
		t.Error("marked below K, or an urgent one")
	}
	l.Step = true
	if !l.marks(&Packet{}, 51) {
		t.Error("not marked at K by step")
	}
}

// TestNothingIsLost: all bytes of messages arrive once, though the queue drops packets.
func TestNothingIsLost(t *testing.T) {
	var k kernel.Kernel
	g := NewGroup(&k, 100, 25*Microsecond, false)
	l := NewLink(&k, PerByte(100), Propagation)
	l.Room = 20
	total, ended := int64(0), 0
	var flows []*Flow
	for c := range qtcp.Classes {
		port := NewLink(&k, PerByte(100), Propagation)
		f := NewFlow(&k, NewWindowed(DCTCP, c, g), []*Link{port, l}, 20*Microsecond)
		for i := range int64(200) {
			m := &Message{Bytes: 1 + 997*i, Done: func(int64) { ended++ }}
			total += m.Bytes
			f.Send(m)
		}
		flows = append(flows, f)
	}
	k.Drain()
	got := int64(0)
	for _, f := range flows {
		got += f.Delivered
		if f.UnderWay() != 0 || f.Waiting() != 0 {
			t.Errorf("%d packets and %d messages are left", f.UnderWay(), f.Waiting())
		}
	}
	if l.Dropped == 0 || got != total || ended != 600 {
		t.Errorf("%d dropped; %d bytes of %d, %d messages of 600", l.Dropped, got, total, ended)
	}
}
