package target

import "time"

const (
	// windowTime is how long commands are counted to know their rate.
	windowTime = 16 * time.Millisecond
	// restWindows is for how many windows a thread may rest before it is looked
	// again how fast it is without.
	restWindows = 16
	// experimentPause is how many windows pass after rests were found to cost
	// throughput, until they are tried again.
	experimentPause = 32
	// costPercent is what rests may seem to cost: windows differ by some percent
	// anyway.
	costPercent = 4
	// dropPercent is what a window with rests may lack before it is looked at once
	// how fast the thread is without.
	dropPercent = 20
	// idlePercent is how much of its time a thread must have had nothing to do: one
	// that is busy has no time to rest.
	idlePercent = 20
)

// experiment finds out whether rests cost throughput: it compares windows with rests to the
// one that follows without, because a load that has just begun grows. It has no clock
// of its own.
type experiment struct {
	phase    experimentPhase
	commands int64 // in this window
	began    int64 // the window, in nanoseconds
	left     int   // windows of the phase
	without  int64 // commands per second in the last window without rests
	with     int64 // and with
}

// experimentPhase is what a window is for.
type experimentPhase uint8

const (
	working  experimentPhase = iota // without rests
	trying                          // a window with rests
	resting                         // with rests, which cost nothing
	checking                        // a window without, to compare with
)

// resting reports whether the thread may rest in this window.
func (t *experiment) resting() bool { return t.phase == trying || t.phase == resting }

// due reports whether the window has ended.
func (t *experiment) due(now int64) bool { return now-t.began >= int64(windowTime) }

// judge ends the window, in which the thread was idle for so many nanoseconds. One
// that took far too long, because there was nothing to do, says nothing, and what comes
// behind it may be another load.
func (t *experiment) judge(now, idle int64) {
	took, commands := now-t.began, t.commands
	t.began, t.commands = now, 0
	if took > 4*int64(windowTime) {
		if t.phase != working {
			t.phase, t.left = working, 0
		}
		return
	}
	rate := commands * int64(time.Second) / took
	switch t.phase {
	case working:
		t.without = rate
		if t.left--; t.left <= 0 && idle*100 >= took*idlePercent {
			t.phase = trying
		}
	case trying:
		t.with = rate
		t.phase = checking
	case resting:
		t.with = rate
		if t.left--; t.left <= 0 || t.costs(dropPercent) {
			t.phase = checking
		}
	case checking:
		t.without = rate
		if idle*100 < took*idlePercent {
			t.stop() // rests only look free while rates differ by more than they cost
		} else {
			t.compare()
		}
	}
}

// compare decides whether to rest: not if that costs throughput.
func (t *experiment) compare() {
	if t.costs(costPercent) {
		t.stop()
	} else {
		t.phase, t.left = resting, restWindows
	}
}

// costs reports whether rests cost more than so many percent.
func (t *experiment) costs(percent int64) bool { return t.with*100 < t.without*(100-percent) }

// stop makes the thread work without rests for a while.
func (t *experiment) stop() { t.phase, t.left = working, experimentPause }
