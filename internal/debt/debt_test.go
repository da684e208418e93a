package debt

import (
	"testing"
	"time"
)

var terms = Terms{Patience: 15 * time.Second, Rate: 1000}

const second = int64(time.Second)

func TestClaim(t *testing.T) {
	c := Claim{Since: 5 * second, Bytes: 4000}
	for _, at := range []struct {
		second  int64
		overdue bool
	}{{5, false}, {24, false}, {25, true}} {
		if got := c.Overdue(at.second*second, terms); got != at.overdue {
			t.Errorf("after %d s: overdue %v", at.second-5, got)
		}
	}
	if (Claim{Since: 1, Bytes: 20 << 30}).Overdue(100*second, terms) {
		t.Error("20 GiB are overdue at once")
	}
	if (Claim{}).Overdue(1<<60, terms) {
		t.Error("nothing is overdue")
	}
}

// A machine that stood still for an hour gives everybody the rest of his time.
func TestPause(t *testing.T) {
	clock := Clock{Every: time.Second}
	clock.Start(5 * second)
	claim, account := Claim{Since: clock.Now(5 * second)}, Account{}
	for at, late := range map[int64]bool{1: false, 14: false, 16: true} {
		clock, account := clock, account
		for s := range at + 1 {
			now := (5 + s) * second
			if s >= 3 {
				now += 3600 * second
			}
			judged := clock.Look(now)
			if claim.Overdue(judged, terms) != (late && s == at) || account.Look(judged, true, 0, terms) != (late && s == at) {
				t.Errorf("a claim or an account is judged wrong %d s after it began and an hour", s)
			}
		}
	}
}

// What a peer pays in each second decides whether it is ever overdue, and when.
func TestAccount(t *testing.T) {
	for name, c := range map[string]struct {
		paid func(second int64) uint64
		owed func(second int64) bool
		when int64 // 0: never
	}{
		"nothing":        {paid: func(int64) uint64 { return 0 }, when: 16},
		"a byte":         {paid: func(int64) uint64 { return 1 }, when: 16},
		"a third":        {paid: func(int64) uint64 { return 333 }, when: 23},
		"the rate":       {paid: func(int64) uint64 { return 1000 }},
		"faster":         {paid: func(int64) uint64 { return 100000 }},
		"far faster":     {paid: func(int64) uint64 { return 1 << 40 }},
		"much, then not": {paid: func(s int64) uint64 { return uint64(max(0, 100-s)) * 1e6 }, when: 115},
		"all now and then": {paid: func(int64) uint64 { return 0 },
			owed: func(s int64) bool { return s%10 != 9 }},
	} {
		var a Account
		var paid uint64
		var when int64
		for s := range int64(1000) {
			paid += c.paid(s)
			if a.Look((s+7)*second, c.owed == nil || c.owed(s), paid, terms) {
				when = s
				break
			}
		}
		if when != c.when {
			t.Errorf("%s: overdue after %d s, expected %d", name, when, c.when)
		}
	}
}
