package evidence

import (
	"fmt"
	"time"

	"lunar/backstore"
)

// Noted is what a process that served a store has noted of it.
type Noted struct {
	Stamp backstore.Stamp
	Size  int64 // of the volume, in bytes
	// Settled says that the process has changed nothing after it noted the stamp. Otherwise it
	// may have been writing when it ended, and the stamp is an older one.
	Settled bool
	Alive   int64 // Unix time in ns when it was alive for certain; 0: not known
}

// Seen is what the next process finds.
type Seen struct {
	Stamp backstore.Stamp
	OK    bool  // there is a stamp
	Size  int64 // of the volume, in bytes
	Exact bool  // see backstore.Watched
}

// Belief is what that says of the bytes of the store.
type Belief uint8

// The beliefs.
const (
	Same    Belief = iota // they are as the process has left them
	Doubt                 // somebody else may have changed them
	Changed               // somebody else has, or it is another store
)

// late is how long after Alive a process that was not settled may still have written: so long
// it takes at most until a process notes again that it is alive.
const late = int64(2 * time.Second)

// trait is a row of the table: the first whose condition holds decides.
type trait struct {
	holds  func(*Noted, *Seen) bool
	belief Belief
	why    string
}

var contents = []trait{
	{func(_ *Noted, s *Seen) bool { return !s.OK }, Doubt, "nothing tells whether somebody else has written to the store"},
	{func(n *Noted, _ *Seen) bool { return n.Stamp.Medium == [3]uint64{} }, Doubt, "which store it was is not known"},
	{func(n *Noted, s *Seen) bool { return n.Stamp.Medium != s.Stamp.Medium }, Changed, "it is another store"},
	{func(n *Noted, _ *Seen) bool { return n.Settled && n.Stamp.State == [3]uint64{} }, Doubt, "its state was not noted"},
	{recounted, Doubt, "the kernel counts the writes to it anew"},
	{touched, Changed, "somebody else has changed the store: its data have the same time as before, but its inode has not (owner, mode, name, a hard link; or data, and their time was put back)"},
	{func(n *Noted, s *Seen) bool { return n.Settled && n.Stamp.State != s.Stamp.State }, Changed, "somebody else has written to the store"},
	{func(n *Noted, s *Seen) bool { return n.Size != s.Size }, Doubt, "its size has changed"},
	{func(n *Noted, _ *Seen) bool { return n.Settled }, Same, ""},
	{func(_ *Noted, s *Seen) bool { return !s.Exact }, Doubt, "it was being written, and its times and counters are not exact"},
	{func(n *Noted, s *Seen) bool { return n.Stamp.State == s.Stamp.State }, Same, ""},
	{func(_ *Noted, s *Seen) bool { return s.Stamp.Device() }, Doubt, "it was being written: the last writes cannot be told from those of others"},
	{after, Changed, "somebody else has written to the store after the last process ended"},
	{before, Changed, "the store is older than it was: it was restored"},
	{func(n *Noted, s *Seen) bool { return changeTime(s.Stamp) <= n.Alive }, Same, ""},
	{func(*Noted, *Seen) bool { return true }, Doubt, "it was written in the last moment: by the last process or by somebody else"},
}

// Content decides about a store that was served before.
func Content(n Noted, s Seen) (b Belief, why string) {
	for _, t := range contents {
		if !t.holds(&n, &s) {
			continue
		}
		if t.why != "" {
			why = t.why + details(n, s)
		}
		return t.belief, why
	}
	return Doubt, ""
}

// details are what was compared.
func details(n Noted, s Seen) string {
	switch {
	case !s.OK:
		return ""
	case n.Stamp.Medium != s.Stamp.Medium:
		return fmt.Sprintf(" (found %x, expected %x)", s.Stamp.Medium, n.Stamp.Medium)
	case s.Stamp.Device():
		return fmt.Sprintf(" (found %d sectors written and %d discarded, noted %d and %d)", s.Stamp.State[1], s.Stamp.State[2], n.Stamp.State[1], n.Stamp.State[2])
	}
	at := func(ns int64) string { return time.Unix(0, ns).Format("2006-01-02 15:04:05.000000") }
	return fmt.Sprintf(" (found %d bytes, changed at %s; noted %d bytes, changed at %s, alive at %s)",
		s.Stamp.State[0], at(changeTime(s.Stamp)), n.Stamp.State[0], at(changeTime(n.Stamp)), at(n.Alive))
}

// changeTime is a file's ctime, which nobody can set.
func changeTime(s backstore.Stamp) int64 { return int64(s.State[2]) }

// touched holds for a file of which only the ctime differs. Whoever restores a backup with
// its times leaves the same as chown does, so that it is not told from writing.
func touched(n *Noted, s *Seen) bool {
	was, is := n.Stamp.State, s.Stamp.State
	return n.Settled && !s.Stamp.Device() && was[0] == is[0] && was[1] == is[1] && was[2] != is[2]
}

// recounted holds for a device that was taken away and came again.
func recounted(n *Noted, s *Seen) bool {
	was, is := n.Stamp.State, s.Stamp.State
	return s.Stamp.Device() && (was[0] != is[0] || is[1] < was[1] || is[2] < was[2])
}

func after(n *Noted, s *Seen) bool { return n.Alive > 0 && changeTime(s.Stamp) > n.Alive+late }

// before does not hold if the clock was set back while the process lived.
func before(n *Noted, s *Seen) bool {
	return changeTime(s.Stamp) < changeTime(n.Stamp) && n.Alive >= changeTime(n.Stamp)
}
