package scsi

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"lunar/internal/racetest"
)

// What follows looks for circles of those who wait for each other. A world is a logical
// unit with sessions that carry out a script: commands, resets, and their own end. All
// that happens in it is events that the test chooses: a command arrives, an operation of
// the store ends, a message from one thread to another is taken. explore tries every
// order, and in every one all has to end: nothing here but time-outs would undo a circle.
//
// The logical unit, its task set, registrar and atomic writes, and internal/waits are
// the real ones. A session here does what target's does with its tasks.

// step is a letter of a script.
type step byte

// explore tries every order of events of a script and returns how many states there
// are, and the first way to one in which something waits for ever.
func explore(t testing.TB, script []string) (states int, circle string) {
	seen := make(map[string]struct{})
	var path, choices []int
	for {
		w, i := newWorld(t, script), 0
		w.calm()
		var trace []string
		for ; ; i++ {
			events := w.events()
			if len(events) == 0 {
				if left := w.unended(); left != "" {
					return len(seen), fmt.Sprintf("%s wait for ever after:\n\t%s", left, strings.Join(trace, "\n\t"))
				}
				break
			}
			if i == len(path) {
				state := w.fingerprint()
				if _, known := seen[state]; known {
					break
				}
				seen[state] = struct{}{}
				path, choices = append(path, 0), append(choices, len(events))
			}
			event := events[path[i]]
			trace = append(trace, event.about)
			w.doing = event.about
			event.run()
			w.calm()
		}
		w.forget()
		for i = len(path) - 1; i >= 0 && path[i]+1 == choices[i]; i-- {
			path, choices = path[:i], choices[:i]
		}
		if i < 0 {
			return len(seen), ""
		}
		path[i]++
	}
}

// scripts calls f with all scripts of n of the letters for up to three sessions, but for
// those that differ from another one only in which session is which.
func scripts(letters string, n int, f func([]string)) {
	var words func(prefix string, n int, then func(string))
	words = func(prefix string, n int, then func(string)) {
		if n == 0 {
			then(prefix)
			return
		}
		for _, letter := range letters {
			if !strings.HasSuffix(prefix, string(lose)) {
				words(prefix+string(letter), n-1, then)
			}
		}
	}
	for a := 1; a <= n; a++ {
		for b := (n - a + 1) / 2; b <= min(a, n-a); b++ {
			words("", a, func(first string) {
				words("", b, func(second string) {
					words("", n-a-b, func(third string) {
						if (a > b || first >= second) && (b > n-a-b || second >= third) {
							f([]string{first, second, third})
						}
					})
				})
			})
		}
	}
}

// TestNobodyWaitsInACircle explores all that sessions can do with few tasks, in every
// order: two tasks of all kinds, and three of those that have waited for each other when
// a rule was removed. Three sessions with four tasks each cannot be tried that way: 2, 3,
// 4 and 5 tasks of "pR" alone, up to which session is which, have 164, 2,287, 23,492 and
// 228,546 states, ten times as many for each task, so that 12 have some 10^12. What waits
// does so for one task at a time, and without the rule of waits.Ends two sessions with
// three tasks are enough for a circle; TestCrowd walks through the rest at random.
// LUNAR_CIRCLES=4 tries more of them, and makes a larger crowd.
func TestNobodyWaitsInACircle(t *testing.T) {
	rounds := []struct {
		letters string
		tasks   int
	}{{allSteps, 2}, {"pkow", 3}, {"nO", 3}, {"abe", 3}}
	if n, err := strconv.Atoi(os.Getenv("LUNAR_CIRCLES")); err == nil {
		rounds[0].tasks, rounds[1].tasks = min(n, 3), n
	}
	if racetest.Enabled {
		rounds = rounds[:1] // a world is one goroutine
	}
	for _, r := range rounds {
		n, states := 0, 0
		scripts(r.letters, r.tasks, func(script []string) {
			more, circle := explore(t, script)
			n, states = n+1, states+more
			if circle != "" {
				t.Fatalf("%q: %s", script, circle)
			}
		})
		t.Logf("%d scripts of %d of %s, %d states", n, r.tasks, r.letters, states)
	}
}

// TestCrowd: three sessions with four tasks each, of which there are too many to try
// every order.
func TestCrowd(t *testing.T) {
	walks := 500
	if racetest.Enabled {
		walks = 50
	}
	if n, err := strconv.Atoi(os.Getenv("LUNAR_CIRCLES")); err == nil {
		walks *= 100 * n
	}
	for seed := range walks {
		random := rand.New(rand.NewPCG(uint64(seed), 3))
		script := make([]string, 3)
		for i := range script {
			for range 4 {
				script[i] += string(allSteps[random.IntN(len(allSteps))])
			}
		}
		w := newWorld(t, script)
		for events := w.events(); len(events) > 0; events = w.events() {
			events[random.IntN(len(events))].run()
			w.calm()
		}
		if left := w.unended(); left != "" {
			t.Fatalf("seed %d, %q: %s wait for ever", seed, script, left)
		}
	}
}
