package thirdparty

import (
	"testing"
	"time"

	"lunar/internal/refusals"
	"lunar/target/scsi/sense"
)

// TestTokenExpires: a token that is not used expires, each use begins its time anew, and
// one that was deleted is gone with its last use.
func TestTokenExpires(t *testing.T) {
	var tokens Tokens
	now := time.Now()
	token := NewToken("a", Creator{}, []Extent{{0, 4096}}, defaultTokenTimeout)
	if !tokens.Add(token, now, new(refusals.Counters)) {
		t.Fatal("no room for a token")
	}
	use := func(remove bool) *sense.Data {
		s := tokens.Use(token, now)
		if s == nil {
			tokens.Release(token, remove, now)
		}
		return s
	}
	now = now.Add(defaultTokenTimeout - 5*time.Second)
	if s := use(false); s != nil {
		t.Errorf("%+v before the timeout", s)
	}
	now = now.Add(defaultTokenTimeout - 5*time.Second)
	if s := use(false); s != nil {
		t.Errorf("%+v before the timeout after a use", s)
	}
	now = now.Add(2 * defaultTokenTimeout)
	if s := use(false); s != sense.TokenExpired {
		t.Errorf("%+v after the timeout", s)
	}
	now = now.Add(-2 * defaultTokenTimeout)
	if s := use(true); s != nil {
		t.Errorf("%+v of a token that is to be deleted", s)
	}
	if s := use(false); s != sense.TokenUnknown || tokens.list.Load() != nil {
		t.Errorf("%+v of a token that was deleted", s)
	}
}

// TestRecordsAreBounded: the oldest of those that have ended are forgotten.
func TestRecordsAreBounded(t *testing.T) {
	var records Records
	for id := range uint32(MaxRecords + 10) {
		r, s := records.Begin(Asker{By: "a"}, id, 0, 1, new(refusals.Counters))
		if s != nil {
			t.Fatalf("copy %d: %+v", id, s)
		}
		r.End(Completed)
	}
	if n := len(records.all); n != MaxRecords {
		t.Errorf("%d records", n)
	}
	for id, known := range map[uint32]bool{9: false, 10: true} {
		if got := records.Find("a", id) != nil; got != known {
			t.Errorf("copy %d is known: %v, expected %v", id, got, known)
		}
	}
}
