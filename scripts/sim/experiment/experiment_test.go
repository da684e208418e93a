package experiment

import (
	"errors"
	"strings"
	"testing"
)

// TestVerdicts: criteria decide, reports do not.
func TestVerdicts(t *testing.T) {
	for _, tc := range []struct {
		name string
		add  func(*Result)
		want Verdict
	}{
		{"near, at the edge", func(r *Result) { r.Near("x", "", 101, 100, 0.01) }, Pass},
		{"near, beyond", func(r *Result) { r.Near("x", "", 101.1, 100, 0.01) }, Fail},
		{"near, below", func(r *Result) { r.Near("x", "", 98.9, 100, 0.01) }, Fail},
		{"at least", func(r *Result) { r.AtLeast("x", "", 2, 2) }, Pass},
		{"not at least", func(r *Result) { r.AtLeast("x", "", 1.9, 2) }, Fail},
		{"at most", func(r *Result) { r.AtMost("x", "", 2, 2) }, Pass},
		{"not at most", func(r *Result) { r.AtMost("x", "", 2.1, 2) }, Fail},
		{"note", func(r *Result) { r.Note("x", "", "1", "why") }, Report},
		{"within", func(r *Result) { r.Within("x", "", 2, 1, 2) }, Pass},
		{"not within", func(r *Result) { r.Within("x", "", 2.1, 1, 2) }, Fail},
		{"invariants", func(r *Result) { r.Invariants(nil) }, Pass},
		{"broken invariants", func(r *Result) { r.Invariants([]string{"lost"}) }, Fail},
	} {
		var r Result
		tc.add(&r)
		if got := r.Checks[0].Verdict; got != tc.want || r.Failed() != (tc.want == Fail) {
			t.Errorf("%s: %s (failed %t), expected %s", tc.name, got, r.Failed(), tc.want)
		}
	}
}

// TestPrecisionFitsSize: a value's precision fits its size.
func TestPrecisionFitsSize(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 1570.4: "1570", 12.345: "12.35", -3: "-3.00", 0.8347: "0.8347"} {
		if got := Num(v); got != want {
			t.Errorf("Num(%g) = %q, expected %q", v, got, want)
		}
	}
}

// TestLog: one line per decision; no writer, no log.
func TestLog(t *testing.T) {
	var text strings.Builder
	log := NewLog(&text)
	log.Line(5, "issue", 1, -2)
	log.Line(6, "turn")
	if err := log.Flush(); err != nil || text.String() != "5 issue 1 -2\n6 turn\n" {
		t.Errorf("log %q, error %v", text.String(), err)
	}
	var none *Log = NewLog(nil)
	none.Line(1, "nothing")
	if err := none.Flush(); err != nil {
		t.Error(err)
	}
}

type fullDisk struct{}

var errFull = errors.New("disk is full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// TestLogError: a write error comes out of Flush.
func TestLogError(t *testing.T) {
	log := NewLog(fullDisk{})
	log.Line(1, "issue")
	if err := log.Flush(); !errors.Is(err, errFull) {
		t.Errorf("Flush returned %v, expected %v", err, errFull)
	}
}

// TestSetUpErrorIsAFailedCheck: an error of the set-up is a failed check.
func TestSetUpErrorIsAFailedCheck(t *testing.T) {
	for _, err := range []error{nil, errors.New("no memory")} {
		r := Try(func(_ *Env, r *Result) error { r.AtLeast("x", "", 2, 1); return err })(&Env{})
		if r.Failed() != (err != nil) || r.Checks[0].Name != "x" {
			t.Errorf("error %v: %+v", err, r.Checks)
		}
	}
}
