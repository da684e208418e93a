package tcp

import (
	"math"

	"golang.org/x/sys/unix"

	"lunar/scheduler/qtcp"
)

// ahead is what a governor whose looks come late grants beyond the window, and has the kernel pace.
type ahead struct {
	qtcp.Ahead
	due     int64  // when the next look is
	granted int    // bytes
	pace    uint64 // bytes per second that leave at most, as the kernel was told; 0: it was told nothing
}

// unpaced is the kernel's word for no bound (SO_MAX_PACING_RATE of socket(7)).
const unpaced = math.MaxUint64

// paceSteps is how much the pace differs at least before the kernel is told: a part of so many.
const paceSteps = 16

// grant follows the window, of a connection that the server governs.
func (g *governor) grant() {
	if g.entry != nil {
		return
	}
	windows, window, pace := g.Windows(g.rtt), float64(g.window()), uint64(unpaced)
	g.granted = 0
	if windows > 0 {
		pace = uint64(qtcp.Pace(window, g.rtt))
		if !g.holds {
			g.granted = int(windows * window)
		}
	}
	g.paced(g.mover.fd, pace)
}

// paced has the kernel pace what leaves.
func (a *ahead) paced(fd int, pace uint64) {
	if pace == a.pace || a.pace == 0 && pace == unpaced {
		return
	}
	if off := max(pace, a.pace) - min(pace, a.pace); pace != unpaced && off < a.pace/paceSteps {
		return
	}
	a.pace = pace
	_ = unix.SetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, pace)
}

func (a *ahead) end(fd int) { a.paced(fd, unpaced) }
