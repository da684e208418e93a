package hearing

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"lunar/cluster/link"
)

// TestLongWord: whatever there is to say has place in a beat: without beats there would be no link.
func TestLongWord(t *testing.T) {
	names := func(what string, length int) (all []string) {
		for i := range 200 {
			all = append(all, fmt.Sprintf("%s-%03d-%s", what, i, strings.Repeat("x", length)))
		}
		return all
	}
	for name, c := range map[string]struct {
		nodes, length   int
		others, volumes bool // that are told of
	}{
		"short":       {3, 10, true, true},
		"many nodes":  {16, 50, false, true},
		"long stores": {3, 600, false, false},
	} {
		w := Word{Without: names("volume", 50), Stores: names("pool", c.length), Silent: []string{"mute"}, Hears: map[string]Voice{}}
		for i := range c.nodes {
			w.Hears[fmt.Sprint("n", i)] = Voice{Incarnation: "a", Age: time.Second, Without: names("volume", c.length), Stores: names("pool", c.length)}
		}
		text := w.encode()
		var back Word
		if err := json.Unmarshal(text, &back); err != nil || len(text) > link.MaxBeat || len(back.Hears) != c.nodes {
			t.Errorf("%s: found %d bytes, %d nodes, %v", name, len(text), len(back.Hears), err)
		}
		if (len(back.Hears["n1"].Without) > 0) != c.others || (len(back.Without) > 0) != c.volumes || (back.Stores != nil) != c.volumes || (back.Silent != nil) != c.volumes {
			t.Errorf("%s: found %d volumes of another node, %d of this one, %d stores", name, len(back.Hears["n1"].Without), len(back.Without), len(back.Stores))
		}
		if len(w.Hears["n1"].Without) == 0 {
			t.Errorf("%s: what was to be said has changed", name)
		}
	}
}

// TestStores: a store answers where it does for each of its volumes, and is silent where it is for
// one. Of others nothing is known.
func TestStores(t *testing.T) {
	now := time.Now()
	all := Stores{}
	for _, v := range []struct {
		store        string
		silent, last time.Time
	}{
		{"answers", time.Time{}, now}, {"answers", time.Time{}, now},
		{"stood still", time.Time{}, now.Add(-time.Minute)}, {"stood still", time.Time{}, now},
		{"silent for one", time.Time{}, now}, {"silent for one", now.Add(-time.Second), now},
		{"", now, now},
	} {
		all.Note(v.store, v.silent, v.last)
	}
	w := NewWord(nil, all)
	if fmt.Sprint(w.Stores, w.Silent) != "[answers] [silent for one]" {
		t.Errorf("found that %q answer and %q do not", w.Stores, w.Silent)
	}
}
