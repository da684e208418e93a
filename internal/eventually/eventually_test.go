package eventually

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// failing records how a test would have failed.
type failing struct {
	testing.TB
	text string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.text = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// failure is the text with which wait fails; "" if it does not.
func failure(t *testing.T, wait func(testing.TB)) string {
	f, ended := &failing{TB: t}, make(chan struct{})
	go func() { defer close(ended); wait(f) }()
	<-ended
	return f.text
}

// TestWaits: a state that comes late is waited for, and one that does not come within
// the patience fails the test with what was found.
func TestWaits(t *testing.T) {
	for _, test := range []struct {
		name  string
		comes time.Duration
		fails string
	}{{"at once", 0, ""}, {"late", Patience - time.Second, ""}, {"too late", Patience + time.Second, "found"}} {
		for what, wait := range map[string]func(t testing.TB, since func() time.Duration){
			"Holds": func(t testing.TB, since func() time.Duration) {
				Holds(t, "the state is found", func() bool { return since() >= test.comes })
			},
			"Finds": func(t testing.TB, since func() time.Duration) {
				Finds(t, "the state", true, func() bool { return since() >= test.comes })
			},
			"Passes": func(t testing.TB, since func() time.Duration) {
				if found := Passes(t, "the time", since, func(d time.Duration) bool { return d >= test.comes }); found < test.comes {
					t.Fatalf("returned %v too early", found)
				}
			},
			"Says": func(t testing.TB, since func() time.Duration) {
				Says(t, func() string { return strings.Repeat("a b", int(since()/max(test.comes, 1))) }, "a")
			},
		} {
			t.Run(what+" "+test.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					text := failure(t, func(tb testing.TB) {
						wait(tb, func() time.Duration { return max(time.Since(began), 1) })
					})
					if (test.fails == "") != (text == "") || !strings.Contains(text, test.fails) {
						t.Errorf("failed with %q, expected %q", text, test.fails)
					}
				})
			})
		}
	}
}

// TestSaysNamesTheMissingWord: all words must be there, and the failure names the first
// that is not.
func TestSaysNamesTheMissingWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := failure(t, func(tb testing.TB) { Says(tb, func() string { return "one three" }, "one", "two", "four") })
		if text != "found no \"two\" in\none three" {
			t.Errorf("failed with %q", text)
		}
	})
}
