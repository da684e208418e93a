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

// grant follows a window of so many bytes whose round trips take rtt ns, from which nothing is
// granted while the connection holds back.
func (a *ahead) grant(fd, window int, rtt int64, holds bool) {
	windows, pace := a.Windows(rtt), uint64(unpaced)
	a.granted = 0
	if windows > 0 {
		pace = uint64(qtcp.Pace(float64(window), rtt))
		if !holds {
			a.granted = int(windows * float64(window))
		}
	}
	a.paced(fd, pace)
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
