// Package eventually lets tests wait for a state that another goroutine, thread or
// process brings about. Tests wait here rather than sleep: a fixed sleep is too short
// on a loaded machine and too long on every other.
package eventually

import (
	"strings"
	"testing"
	"time"
)

// Patience is how long a test waits for what must happen: on a loaded machine threads
// stand still for seconds.
const Patience = 2 * time.Minute

// The time between two looks is a tenth of what was waited until then, within these: what
// is looked at has the processor meanwhile.
const (
	shortestPause = 2 * time.Millisecond
	longestPause  = 50 * time.Millisecond
)

// Holds waits until holds returns true. It fails the test with what after Patience.
func Holds(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !until(holds) {
		t.Fatalf("has not happened: %s", what)
	}
}

// Finds waits until look returns what is wanted. It fails the test after Patience, with
// what look returned last.
func Finds[T comparable](t testing.TB, what string, want T, look func() T) {
	t.Helper()
	Passes(t, what, look, func(found T) bool { return found == want })
}

// Passes waits until look returns something that passes, and returns it. It fails the
// test after Patience, with what look returned last.
func Passes[T any](t testing.TB, what string, look func() T, passes func(T) bool) T {
	t.Helper()
	var found T
	if !until(func() bool { found = look(); return passes(found) }) {
		t.Fatalf("%s: found %+v", what, found)
	}
	return found
}

// Says waits until text contains all words. It fails the test after Patience, with the
// first word that is missing and the text.
func Says(t testing.TB, text func() string, words ...string) {
	t.Helper()
	var found, missing string
	if !until(func() bool { found = text(); missing = firstMissing(found, words); return missing == "" }) {
		t.Fatalf("found no %q in\n%s", missing, found)
	}
}

func firstMissing(text string, words []string) string {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return w
		}
	}
	return ""
}

func until(holds func() bool) bool {
	for began := time.Now(); !holds(); {
		waited := time.Since(began)
		if waited > Patience {
			return false
		}
		time.Sleep(min(max(waited/10, shortestPause), longestPause))
	}
	return true
}
