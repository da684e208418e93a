package qtcp

const (
	// aheadLooks is the part of a round trip by which looks may be late without harm.
	aheadLooks = 4
	// aheadMost is how many windows are granted ahead at most.
	aheadMost = 4
	// aheadKept is by which part the latest look fades with each one.
	aheadKept = 32
	// paceGain is how many windows the pacer lets leave in a round trip: it is late, too.
	paceGain = 1.1
)

// Ahead is what a governor that looks at its flow from time to time grants beyond the window where
// its looks come late: what is acknowledged between two looks makes no room before the second one,
// and the path runs dry. What is granted ahead has to be paced by who is not as late, so that not
// much more than a window leaves in a round trip. The zero value grants nothing. Times are in ns.
type Ahead struct{ late int64 }

// Looked tells of a look, which came so much later than it should.
func (a *Ahead) Looked(late int64) { a.late = max(late, a.late-a.late/aheadKept) }

// Windows is how many windows are granted beyond the one; 0: looks come in time.
func (a *Ahead) Windows(trip int64) float64 {
	if a.late <= trip/aheadLooks {
		return 0
	}
	return min(aheadMost, float64(a.late)/float64(trip))
}

// Pace is how much of a window should leave in a second.
func Pace(window float64, trip int64) float64 { return paceGain * window * 1e9 / float64(trip) }
