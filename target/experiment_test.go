package target

import (
	"testing"
	"time"
)

// TestTrial: a thread rests as long as that costs no throughput.
func TestTrial(t *testing.T) {
	for name, tt := range map[string]struct {
		with, without int64 // commands in a window
		idle          int64 // percent
		atLeast, most int   // of 200 windows with rests
	}{
		"costs nothing":     {4000, 4000, 50, 180, 190},
		"is even faster":    {4400, 4000, 50, 180, 190},
		"costs throughput":  {3000, 4000, 50, 5, 7},
		"costs one percent": {3960, 4000, 50, 180, 190},
		"no time to rest":   {4000, 4000, 10, 0, 0},
	} {
		var tr experiment
		now, rests := int64(1), 0
		for range 200 {
			tr.began = now
			tr.commands = tt.without
			if tr.resting() {
				tr.commands = tt.with
				rests++
			}
			if tr.due(now) {
				t.Fatalf("%s: a window is over as it begins", name)
			}
			now += int64(windowTime)
			if !tr.due(now) {
				t.Fatalf("%s: a window is not over after its time", name)
			}
			tr.judge(now, int64(windowTime)*tt.idle/100)
		}
		if rests < tt.atLeast || rests > tt.most {
			t.Errorf("%s: rests in %d of 200 windows, expected %d to %d", name, rests, tt.atLeast, tt.most)
		}
	}
}

// windows ends one window for each number of commands, half of it idle.
func (t *experiment) windows(commands ...int64) {
	for _, n := range commands {
		t.commands = n
		t.judge(t.began+int64(windowTime), int64(windowTime)/2)
	}
}

// TestTrialAfterPause: a window in which there was hardly anything to do says nothing
// of rests, and what comes then is tried anew.
func TestTrialAfterPause(t *testing.T) {
	var tr experiment
	tr.windows(4000, 4000, 4000)
	if tr.phase != resting {
		t.Fatalf("phase %d, expected rests that cost nothing", tr.phase)
	}
	tr.commands = 1
	tr.judge(tr.began+10*int64(windowTime), 0)
	if tr.resting() || tr.commands != 0 {
		t.Errorf("phase %d, %d commands: expected a window without rests", tr.phase, tr.commands)
	}
	if tr.windows(4000); !tr.resting() {
		t.Error("it does not try to rest behind a pause")
	}
}

// TestTrialOfGrowingLoad: rests do not look free because there was still less to do
// before they began.
func TestTrialOfGrowingLoad(t *testing.T) {
	var tr experiment
	tr.windows(1000, 2000)
	if tr.resting() {
		t.Error("it rests before it knows what it can do without")
	}
	if tr.windows(4000); tr.resting() {
		t.Error("it rests, which costs half of the throughput")
	}
}

// TestTrialLooksAgain: when less is done with rests than without, it looks at once
// whether it is for them.
func TestTrialLooksAgain(t *testing.T) {
	var tr experiment
	tr.windows(4000, 4000, 4000, 4000, 3900, 3000)
	if tr.phase != checking {
		t.Fatalf("phase %d, expected a window without rests", tr.phase)
	}
	if tr.windows(3000); tr.phase != resting {
		t.Errorf("phase %d, expected further rests: there is less to do without them, too", tr.phase)
	}
	if tr.windows(2000, 4000); tr.resting() {
		t.Errorf("phase %d, expected no rests", tr.phase)
	}
}

// TestTrialOfBusyThread: one that has rested while there was little to do stops when
// it finds itself busy without rests, whatever the rates seem to say.
func TestTrialOfBusyThread(t *testing.T) {
	tr := experiment{phase: checking, with: 4000}
	tr.commands = 4000 * int64(windowTime) / int64(time.Second)
	tr.judge(int64(windowTime), int64(windowTime)/100)
	if tr.resting() {
		t.Error("it goes on resting, expected it to stop: it had nothing to do in 1 % of the time")
	}
}
