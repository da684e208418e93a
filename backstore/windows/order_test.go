package windows

import (
	"bytes"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/memstore"
)

// TestNewerSegmentGoesBeforeTheOther: when the segments of a log change places before either
// was written back, a start after a crash takes the newer data, of a log that is new and of
// one that was there without records.
func TestNewerSegmentGoesBeforeTheOther(t *testing.T) {
	for name, prepare := range map[string]func(*testing.T, ExcessConfig){
		"new": func(*testing.T, ExcessConfig) {},
		"empty": func(t *testing.T, c ExcessConfig) {
			if err := openExcess(t, c).Close(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			slow, fast := mem(t, crashSize), mem(t, ExcessLeast)
			// All writes go to the log, and nothing is written back by itself.
			config := func(slow, fast backstore.Store) ExcessConfig {
				return ExcessConfig{Name: "v", Slow: known{slow, 1}, Fast: fast, Large: 1 << 40, Window: time.Hour}
			}
			prepare(t, config(slow, fast))
			slow, fast = slow.CrashClone(1), fast.CrashClone(1)
			x := openExcess(t, config(slow, fast))
			t.Cleanup(func() { _ = x.Close() })
			k := backstoretest.NewClient(t, x, backstoretest.NewLoop(t, false))
			var want []byte
			for version := range uint64(2) {
				want = backstoretest.Pattern(memstore.Sector, version+1)
				data := backstoretest.Buffer(len(want))
				copy(data, want)
				k.Must(t, backstore.Op{Kind: backstore.Write, Data: data, FUA: true})
				if _, swapped := x.journal.swap(); version == 0 && !swapped {
					t.Fatal("the segments did not change places")
				}
			}
			again := openExcess(t, config(slow.CrashClone(2), fast.CrashClone(3)))
			t.Cleanup(func() { _ = again.Close() })
			c := backstoretest.NewClient(t, again, backstoretest.NewLoop(t, false))
			if !bytes.Equal(c.Read(t, 0, len(want)), want) {
				t.Error("found the older data")
			}
		})
	}
}
