package evidence

import (
	"strings"
	"testing"
	"time"

	"lunar/backstore"
)

// TestContent is the table of what a store may look like after its process has ended.
func TestContent(t *testing.T) {
	const second = int64(time.Second)
	file := func(size, mtime, ctime int64) backstore.Stamp {
		return backstore.Stamp{Medium: [3]uint64{1, 2, 3}, State: [3]uint64{uint64(size), uint64(mtime), uint64(ctime)}}
	}
	disk := func(seq, written, discarded uint64) backstore.Stamp {
		return backstore.Stamp{Medium: [3]uint64{1<<63 | 1}, State: [3]uint64{seq, written, discarded}}
	}
	other := file(100, 10*second, 10*second)
	other.Medium[1]++
	settled := func(s backstore.Stamp) Noted { return Noted{Stamp: s, Size: 100, Settled: true, Alive: 20 * second} }
	open := func(s backstore.Stamp) Noted { return Noted{Stamp: s, Size: 100, Alive: 20 * second} }
	seen := func(s backstore.Stamp) Seen { return Seen{Stamp: s, OK: true, Size: 100, Exact: true} }
	inexact, unknown, grown := seen(file(100, 0, 30*second)), seen(backstore.Stamp{}), seen(file(100, 10*second, 10*second))
	inexact.Exact, unknown.OK, grown.Size = false, false, 200
	was := file(100, 10*second, 10*second)
	for name, test := range map[string]struct {
		noted Noted
		seen  Seen
		want  Belief
	}{
		"no stamp":                         {settled(was), unknown, Doubt},
		"no stamp before":                  {Noted{Size: 100, Settled: true}, seen(was), Doubt},
		"settled, the same":                {settled(was), seen(was), Same},
		"settled, another store":           {settled(was), seen(other), Changed},
		"settled, written":                 {settled(was), seen(file(100, 21*second, 21*second)), Changed},
		"settled, written at once":         {settled(was), seen(file(100, 10*second, 10*second+1)), Changed},
		"settled, mtime put back":          {settled(was), seen(file(100, 10*second, 11*second)), Changed},
		"settled, cut":                     {settled(was), seen(file(99, 10*second, 10*second)), Changed},
		"settled, grown as configured":     {settled(was), grown, Doubt},
		"state not noted":                  {settled(backstore.Stamp{Medium: was.Medium}), seen(was), Doubt},
		"writing, the same":                {open(was), seen(was), Same},
		"writing, another store":           {open(was), seen(other), Changed},
		"writing, its own":                 {open(was), seen(file(100, 19*second, 19*second)), Same},
		"writing, the last moment":         {open(was), seen(file(100, 21*second, 21*second)), Doubt},
		"writing, later":                   {open(was), seen(file(100, 23*second, 23*second)), Changed},
		"writing, later, mtime put back":   {open(was), seen(file(100, 5*second, 23*second)), Changed},
		"writing, restored":                {open(was), seen(file(100, 9*second, 9*second)), Changed},
		"writing, the clock was set back":  {Noted{Stamp: file(100, 30*second, 30*second), Size: 100, Alive: 20 * second}, seen(file(100, 19*second, 19*second)), Same},
		"writing, another clock":           {open(was), inexact, Doubt},
		"writing, never noted alive":       {Noted{Stamp: was, Size: 100}, seen(file(100, 50*second, 50*second)), Doubt},
		"writing, grown as configured":     {open(was), grown, Doubt},
		"disk, the same":                   {settled(disk(5, 7, 8)), seen(disk(5, 7, 8)), Same},
		"disk, written":                    {settled(disk(5, 7, 8)), seen(disk(5, 8, 8)), Changed},
		"disk, discarded":                  {settled(disk(5, 7, 8)), seen(disk(5, 7, 9)), Changed},
		"disk, plugged again":              {settled(disk(5, 7, 8)), seen(disk(6, 0, 0)), Doubt},
		"disk, counted anew":               {settled(disk(5, 7, 8)), seen(disk(5, 6, 8)), Doubt},
		"disk, being written, the same":    {open(disk(5, 7, 8)), seen(disk(5, 7, 8)), Same},
		"disk, being written, and written": {open(disk(5, 7, 8)), seen(disk(5, 9, 8)), Doubt},
	} {
		if got, why := Content(test.noted, test.seen); got != test.want || (why == "") != (got == Same) {
			t.Errorf("%s: found %d, %q, expected %d", name, got, why, test.want)
		}
	}
}

// TestTouchedIsToldAsSuch: of a file of which only the inode has changed it is not said
// that somebody has written to it.
func TestTouchedIsToldAsSuch(t *testing.T) {
	for mtime, written := range map[uint64]bool{10: false, 11: true} {
		was := backstore.Stamp{Medium: [3]uint64{1}, State: [3]uint64{100, 10, 10}}
		is := was
		is.State[1], is.State[2] = mtime, 12
		b, why := Content(Noted{Stamp: was, Size: 100, Settled: true}, Seen{Stamp: is, OK: true, Size: 100, Exact: true})
		if b != Changed || strings.Contains(why, "has written") != written || strings.Contains(why, "owner, mode") == written {
			t.Errorf("found %d, %s", b, why)
		}
	}
}
