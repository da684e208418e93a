package target

import (
	"testing"

	"pgregory.net/rapid"

	"lunar/target/pdu"
)

// TestWindowIsPaced: while many commands wait for their turn the initiator gets
// no place for those that end; it gets them one by one when fewer do, and all
// when none does.
func TestWindowIsPaced(t *testing.T) {
	w := NewCmdWindow(1, 128)
	for sn := pdu.SN(1); sn <= 100; sn++ {
		if w.Admit(sn) != Admitted {
			t.Fatalf("command %d is not admitted", sn)
		}
	}
	w.Queued(100)
	for _, step := range []struct {
		waiting int // commands that wait for their turn; the others of 100 have ended
		max     pdu.SN
	}{{100, 128}, {paceFrom, 128}, {5, 128}, {4, 128}, {3, 129}, {2, 130}, {0, 228}} {
		for w.queued > step.waiting {
			w.Queued(-1)
			w.Done()
		}
		if exp, max := w.Grant(); exp != 101 || max != step.max {
			t.Errorf("%d wait: ExpCmdSN %d, MaxCmdSN %d, expected 101 and %d", step.waiting, exp, max, step.max)
		}
	}
}

// TestWindowInvariants: MaxCmdSN never moves backwards, no more commands than
// the depth come, none is refused that was granted, and nobody who has nothing
// under way is held back.
func TestWindowInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.Uint32Range(1, 256).Draw(t, "depth")
		next := pdu.SN(rapid.Uint32().Draw(t, "first"))
		w := NewCmdWindow(next, depth)
		running, waiting, max := 0, 0, next.Add(depth-1)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				for n := rapid.IntRange(1, 40).Draw(t, "commands"); n > 0 && next.LessEq(max); n-- {
					if w.Admit(next) != Admitted {
						t.Fatalf("command %d is not admitted, MaxCmdSN is %d", next, max)
					}
					w.Queued(1)
					next, waiting = next+1, waiting+1
				}
			case 1:
				if waiting > 0 {
					w.Queued(-1)
					waiting, running = waiting-1, running+1
				}
			case 2:
				for ; running > 0; running-- {
					w.Done()
				}
			case 3:
				exp, granted := w.Grant()
				if exp != next || granted.LessThan(max) {
					t.Fatalf("ExpCmdSN %d, MaxCmdSN %d after %d and %d", exp, granted, next, max)
				}
				if waiting >= paceFrom && granted != max {
					t.Fatalf("%d wait and MaxCmdSN went from %d to %d", waiting, max, granted)
				}
				if waiting == 0 && granted != exp.Add(depth-uint32(running)-1) {
					t.Fatalf("none waits and MaxCmdSN is %d", granted)
				}
				max = granted
			}
			if uint32(waiting+running) > depth {
				t.Fatalf("%d commands, the depth is %d", waiting+running, depth)
			}
		}
	})
}
