package places

import (
	"net/netip"
	"testing"
	"time"
)

func TestMemory(t *testing.T) {
	host := netip.MustParseAddr("10.0.0.1")
	hyper, alice, crowd := Guest{"iqn.h", "", host}, Guest{"iqn.a", "alice", host}, Guest{"iqn.z", "", netip.MustParseAddr("10.9.9.9")}
	m := NewMemory(map[Guest]int{hyper: 3, alice: 2, crowd: 50}, 6, start.Add(time.Minute))
	if !m.Has(alice, start) || m.Reserved(start) != 6 {
		t.Fatalf("%d places are kept, expected 6, first for those who have proven who they are", m.Reserved(start))
	}
	m = NewMemory(map[Guest]int{hyper: 3}, 6, start.Add(time.Minute))
	if m.Has(Guest{"iqn.h", "", crowd.Host}, start) || !m.Has(hyper, start) || !m.Expects(host, start) {
		t.Error("a place is kept for the name at its address")
	}
	for range 5 { // it has three
		m.Arrived(hyper)
	}
	if m.Reserved(start) != 0 || m.Expects(host, start) || m.Has(hyper, start) {
		t.Error("nobody is left to come back")
	}
	for range 5 {
		m.Departed(hyper, start)
	}
	if m.Reserved(start) != 3 {
		t.Errorf("%d places are kept for one that left again, expected 3", m.Reserved(start))
	}
	if m.Departed(crowd, start); m.Reserved(start) != 3 {
		t.Error("a place is kept for who had none")
	}
	if late := start.Add(time.Minute); m.Reserved(late) != 0 || m.Expects(host, late) || m.Has(hyper, late) {
		t.Error("places are kept for ever")
	}
}

func TestBuckets(t *testing.T) {
	b, r := NewBuckets[string](2), Rate{Burst: 3, Every: time.Second}
	taken := func(key string, now time.Time) (n int) {
		for b.Take(key, 1, r, now) {
			n++
		}
		return n
	}
	if n := taken("a", start); n != 3 {
		t.Errorf("%d at once, expected 3", n)
	}
	if n := taken("a", start.Add(2500*time.Millisecond)); n != 2 {
		t.Errorf("%d after 2.5 s, expected 2", n)
	}
	if n := taken("a", start.Add(time.Hour)); n != 3 {
		t.Errorf("%d after an hour, expected 3", n)
	}
	if d := b.Delay("b", 3, r, start); d != 0 {
		t.Errorf("it has to wait for %v", d)
	}
	if d := b.Delay("b", 2, r, start); d != 2*time.Second {
		t.Errorf("it has to wait for %v, expected 2s", d)
	}
	for _, key := range []string{"c", "d", "e"} {
		b.Take(key, 1, r, start)
	}
	if b.full.Len() != 2 {
		t.Errorf("%d keys are remembered, expected 2", b.full.Len())
	}
}
