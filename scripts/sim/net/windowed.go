package net

import "lunar/scheduler/qtcp"

// firstWindow is in packets.
const firstWindow = 10

// Windowed is the Control of TCP with explicit congestion notification.
type Windowed struct {
	qtcp.Flow
	Rule  Rule // DCTCP or QTCP
	Class qtcp.Class
	Group *Group

	began     int64 // of the round trip; 0 is none yet
	end       int64 // number of the last packet that was sent before it began
	bytes     int64 // acknowledged before it began
	delivered int64 // packets in it
	marked    int64
}

// NewWindowed returns the control of a flow of a class. The group counts it; nil is none.
func NewWindowed(rule Rule, c qtcp.Class, g *Group) *Windowed {
	w := &Windowed{Flow: qtcp.NewFlow(firstWindow), Class: c, Rule: rule, Group: g}
	if g != nil {
		g.Device.Join(c)
		g.flows = append(g.flows, w)
	}
	return w
}

// Gap implements Control.
func (w *Windowed) Gap(int) int64 { return 0 }

// Lost implements Control: a loss is worth a mark.
func (w *Windowed) Lost() {
	w.delivered++
	w.marked++
}

// Acknowledged implements Control.
func (w *Windowed) Acknowledged(now int64, f *Flow, p *Packet) {
	w.delivered++
	if p.Marked {
		w.marked++
	}
	if p.Tag <= w.end {
		return
	}
	if w.began > 0 {
		w.round(now, f)
	}
	w.began, w.end, w.bytes, w.delivered, w.marked = now, f.Sent, f.Acked, 0, 0
}

// round ends a round trip.
func (w *Windowed) round(now int64, f *Flow) {
	window := w.Window()
	w.Measure(float64(f.Acked-w.bytes) * 8000 / float64(now-w.began))
	share := float64(w.marked) / float64(w.delivered)
	w.Update(share, w.quality())
	if filled, limited := f.use(); !limited {
		w.Use(max(firstWindow, min(window, 2*float64(filled))))
	}
}

func (w *Windowed) quality() float64 {
	if w.Rule == QTCP {
		return w.Quality(w.Group.Device.Target(w.Class))
	}
	return qtcp.DCTCP
}

func (w *Windowed) rate(now int64) float64 {
	if now-w.began > stale*w.Group.trip {
		return 0
	}
	return w.Measured()
}
