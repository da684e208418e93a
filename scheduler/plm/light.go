package plm

// Writes is PLMLight's write handling: a window's first writes go to the slow device, and
// what exceeds them to the fast one.
type Writes struct {
	PerWindow int64 // that the slow device takes
	// Large is the size in bytes from which writes go to the slow device at all, where
	// sizes are mixed (0: all do).
	Large int64

	taken int64
}

// Begin begins a window.
func (w *Writes) Begin() { w.taken = 0 }

// Slow reports whether a write of n bytes goes to the slow device, and counts it there.
func (w *Writes) Slow(n int64) bool {
	if w.Spent() || n < w.Large {
		return false
	}
	w.taken++
	return true
}

// Spent reports whether the slow device takes no more: it is not deterministic until the
// next window begins.
func (w *Writes) Spent() bool { return w.taken >= w.PerWindow }

// Way is how a read goes to the slow device.
type Way uint8

// The ways.
const (
	Now      Way = iota // at once, within the promised time
	Anyhow              // at once, whatever it takes
	Deferred            // when the device is not deterministic
)

// Reads is PLMLight's division of a window's reads: 4:2:1, whatever the classes ask. What
// is not used lapses.
type Reads struct {
	PerWindow int64

	left Counts
}

// Begin begins a window.
func (r *Reads) Begin() { r.left = Divide(r.PerWindow) }

// Take says how a read goes, and counts it.
func (r *Reads) Take(c Class) Way {
	switch {
	case r.left[c] > 0:
		r.left[c]--
		return Now
	case c == Low:
		return Deferred
	}
	return Anyhow
}

// BasisOf is what a window serves of the n commands that it gets on average: 80 %.
func BasisOf(n int64) int64 { return n * 4 / 5 }
