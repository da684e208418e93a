package fake

import (
	"time"

	"lunar/iser/verbs"
)

// link is one way to or from a device that has a rate.
type link struct{ free time.Time }

// late is how much of the time in which nobody made use of a link, though somebody waited for
// it, is made up for: the goroutine of the fabric does not run at all times.
const late = 100 * time.Millisecond

// way is the link that an operation moves by.
func (d *Device) way(op verbs.Op) *link {
	if op == verbs.OpRead {
		return &d.links[1]
	}
	return &d.links[0]
}

// open reports whether an operation may have the link now.
func (d *Device) open(op verbs.Op) bool {
	return d.options.Rate == 0 || !d.way(op).free.After(time.Now())
}

// carry has the link busy with bytes of an operation.
func (d *Device) carry(op verbs.Op, bytes uint32) {
	if d.options.Rate == 0 {
		return
	}
	l := d.way(op)
	if latest := time.Now().Add(-late); l.free.Before(latest) {
		l.free = latest
	}
	l.free = l.free.Add(time.Duration(int64(bytes) * int64(time.Second) / d.options.Rate))
}

// opens is how long it is until a link opens that is busy; 0: none is.
func (f *Fabric) opens() (in time.Duration) {
	for _, d := range f.devices {
		for i := range d.links {
			if left := time.Until(d.links[i].free); left > 0 && (in == 0 || left < in) {
				in = left
			}
		}
	}
	return in
}
