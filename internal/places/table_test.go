package places

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

var (
	start = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	half  = Bounds{Places: 8, PerHolder: 2, PerNetwork: 4}
)

func at(c Class, addr string) Holder { return Of(c, netip.MustParseAddr(addr)) }

// fill gives a holder places and fails if it does not get them all.
func fill(t *testing.T, table *Table[string], h Holder, b Bounds, n int) {
	t.Helper()
	for i := range n {
		if _, displaced, ok := table.Take(fmt.Sprint(h.Name, "#", i), h, b, 0, start); !ok || displaced {
			t.Fatalf("place %d of %v: displaced %v, ok %v", i, h, displaced, ok)
		}
	}
}

func TestWhoLosesAPlace(t *testing.T) {
	soon := half
	soon.Patience = time.Second
	for name, test := range map[string]struct {
		held  map[Holder]int
		next  Holder
		b     Bounds
		kept  int
		after time.Duration
		want  string // who loses a place; "free" and "refused"
	}{
		"one has as many as are free":     {map[Holder]int{at(0, "10.0.0.1"): 7}, at(0, "10.0.0.1"), half, 0, 0, "free"},
		"more than its share is for hire": {map[Holder]int{at(0, "10.0.0.1"): 8}, at(0, "10.0.0.2"), half, 0, 0, "10.0.0.1#7"},
		"the oldest of what is short":     {map[Holder]int{at(0, "10.0.0.1"): 8}, at(0, "10.0.0.2"), soon, 0, 0, "10.0.0.1#0"},
		"not to itself":                   {map[Holder]int{at(0, "10.0.0.1"): 8}, at(0, "10.0.0.1"), half, 0, 0, "refused"},
		"to itself what says nothing":     {map[Holder]int{at(0, "10.0.0.1"): 8}, at(0, "10.0.0.1"), soon, 0, 0, "10.0.0.1#0"},
		"the largest loses":               {map[Holder]int{at(0, "10.0.0.1"): 3, at(0, "10.0.1.1"): 5}, at(0, "10.0.2.1"), half, 0, 0, "10.0.1.1#4"},
		"a network beyond its share": {map[Holder]int{at(0, "10.0.0.1"): 2, at(0, "10.0.0.2"): 2, at(0, "10.0.0.3"): 2, at(0, "10.0.1.1"): 2},
			at(0, "10.0.2.1"), half, 0, 0, "10.0.0.1#1"},
		"in a network that has its share, what is short": {map[Holder]int{at(0, "10.0.0.1"): 2, at(0, "10.0.0.2"): 2, at(0, "10.0.1.1"): 4},
			at(0, "10.0.0.3"), soon, 0, 0, "10.0.0.1#0"},
		"one of a network that has its share": {map[Holder]int{at(0, "10.0.0.1"): 2, at(0, "10.0.0.2"): 2, at(0, "10.0.1.1"): 4},
			at(0, "10.0.0.3"), half, 0, 0, "refused"},
		"all have their share": {map[Holder]int{at(0, "10.0.0.1"): 2, at(0, "10.0.1.1"): 2, at(0, "10.0.2.1"): 2, at(0, "10.0.3.1"): 2},
			at(0, "10.0.4.1"), half, 0, time.Hour, "refused"},
		"until patience ends":    {map[Holder]int{at(0, "10.0.0.1"): 8}, at(0, "10.0.0.1"), soon, 0, time.Second, "10.0.0.1#0"},
		"a /64 is one address":   {map[Holder]int{at(0, "2001:db8::1"): 8}, at(0, "2001:db8::ffff"), half, 0, 0, "refused"},
		"what is mapped is IPv4": {map[Holder]int{at(0, "::ffff:10.0.0.1"): 8}, at(0, "10.0.0.1"), half, 0, 0, "refused"},
		"a stranger for one who has proven": {map[Holder]int{at(0, "10.0.0.1"): 1, {Class: Proven, Name: "bob"}: 7}, Holder{Class: Proven, Name: "alice"}, half, 0, 0,
			"10.0.0.1#0"},
		"not beyond the share of who has proven": {map[Holder]int{at(0, "10.0.0.1"): 6, {Class: Proven, Name: "bob"}: 2}, Holder{Class: Proven, Name: "bob"}, half, 0, 0,
			"refused"},
		"who has proven to another one": {map[Holder]int{{Class: Proven, Name: "bob"}: 8}, Holder{Class: Proven, Name: "alice"}, half, 0, 0, "bob#7"},
		"never a stronger one":          {map[Holder]int{{Class: Proven, Name: "bob"}: 8}, at(Returning, "10.0.0.1"), half, 0, time.Hour, "refused"},
		"what is kept is not free":      {map[Holder]int{at(0, "10.0.0.1"): 2}, at(0, "10.0.1.1"), half, 6, 0, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			var table Table[string]
			for h, n := range test.held {
				fill(t, &table, h, test.b, n)
			}
			before := table.Len()
			lost, displaced, ok := table.Take("next", test.next, test.b, test.kept, start.Add(test.after))
			got := lost
			switch {
			case !ok:
				got = "refused"
			case !displaced:
				got = "free"
			}
			if got != test.want {
				t.Errorf("%s, expected %s", got, test.want)
			}
			if want := map[string]int{"refused": before, "free": before + 1}[got]; want != 0 && table.Len() != want {
				t.Errorf("%d places are taken, expected %d", table.Len(), want)
			}
		})
	}
}

// TestProgress: who has said what it wants keeps its place longer than who has not.
func TestProgress(t *testing.T) {
	b := half
	b.Patience = time.Second
	var table Table[string]
	flood := at(0, "10.0.0.1")
	fill(t, &table, flood, b, 8)
	for i := range 4 {
		table.Progress(fmt.Sprint(flood.Name, "#", i), true)
	}
	for i := range 4 {
		if lost, _, _ := table.Take(fmt.Sprint("silent", i), flood, b, 0, start); lost != fmt.Sprint(flood.Name, "#", i+4) {
			t.Errorf("%s lost its place, expected the oldest of those that are silent", lost)
		}
	}
}

// TestPassedPlaceBelongsToNobodyElse: a place that is passed on belongs to nobody else meanwhile.
func TestPassedPlaceBelongsToNobodyElse(t *testing.T) {
	var table Table[string]
	one := at(0, "10.0.0.1")
	fill(t, &table, one, half, 8)
	table.Pass("10.0.0.1#3", "new", one)
	table.Release("10.0.0.1#3")
	if _, _, ok := table.Take("other", one, half, 0, start); ok || table.Len() != 8 || table.Count(one) != 8 {
		t.Errorf("%d places are taken, of them %d", table.Len(), table.Count(one))
	}
	table.Release("new")
	if _, displaced, ok := table.Take("other", one, half, 0, start); !ok || displaced {
		t.Error("its place was not given back")
	}
}

// TestNobodyIsShutOut: whatever a crowd of strangers does, an initiator of another
// network gets its share and keeps it, and no count is ever wrong.
func TestNobodyIsShutOut(t *testing.T) {
	b := Bounds{Places: 64, PerHolder: 16, PerNetwork: 32, Patience: time.Second}
	rng := rand.New(rand.NewPCG(13, 7))
	var table Table[int]
	honest := at(Stranger, "192.0.2.1")
	crowd := func(now time.Time, key int) {
		h := at(Stranger, fmt.Sprintf("10.0.0.%d", rng.IntN(200)))
		if _, _, ok := table.Take(key, h, b, 0, now); ok && rng.IntN(3) == 0 {
			table.Progress(key, true)
		}
		if gone := rng.IntN(key + 1); table.places[gone].Holder != honest {
			table.Release(gone)
		}
	}
	now, key := start, 0
	for range 50 {
		for range 300 {
			key++
			now = now.Add(2 * time.Millisecond) // 500 a second
			crowd(now, key)
		}
		var mine []int
		for range b.PerHolder {
			key++
			if _, _, ok := table.Take(key, honest, b, 0, now); !ok {
				t.Fatalf("refused with %d places of %d in use, %d of them its own", table.Len(), b.Places, table.Count(honest))
			}
			table.Progress(key, true)
			mine = append(mine, key)
		}
		for range 50 { // 100 ms, in which it logs in
			key++
			now = now.Add(2 * time.Millisecond)
			crowd(now, key)
		}
		if table.Count(honest) != b.PerHolder || table.Len() > b.Places {
			t.Fatalf("%d of %d places are left, %d taken in all", table.Count(honest), b.PerHolder, table.Len())
		}
		for _, k := range mine {
			table.Release(k)
		}
	}
	sum := 0
	for _, n := range table.holders {
		sum += n
	}
	if sum != table.Len() {
		t.Errorf("holders have %d places, %d are taken", sum, table.Len())
	}
	for k := range key + 1 {
		table.Release(k)
	}
	if table.Len()+len(table.holders)+len(table.networks) != 0 {
		t.Errorf("something is left: %+v", table)
	}
}

// TestNewcomersGetAPlace: however many there are, the next one gets something until as many have
// come as halvings fit.
func TestNewcomersGetAPlace(t *testing.T) {
	used := 0
	for holder, want := range []int{32, 16, 8, 4, 2, 1, 1} {
		mine := 0
		for Fair(mine, used, 64) {
			mine, used = mine+1, used+1
		}
		if mine != want {
			t.Errorf("holder %d got %d, expected %d", holder, mine, want)
		}
	}
}
