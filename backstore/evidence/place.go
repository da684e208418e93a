package evidence

import (
	"fmt"

	"lunar/backstore"
)

// Record is what is remembered of a volume's store.
type Record struct {
	Path     string
	Identity backstore.Identity
	Size     int64 // bytes that the volume had
}

// Pending counts the acknowledged or interrupted writes that the recorded store does not
// have yet.
type Pending struct {
	Dirty       int64  // bytes in the cache of a store that is not the one that is found
	Of          string // what they are of, for messages
	Interrupted int    // atomic writes in the recorded store's intent log
	LostLog     string // that log, which is gone, with its mark; empty: it is not
}

// Intention is what an administrator has said of the store that is found.
type Intention string

// The intentions.
const (
	None   Intention = ""
	Adopt  Intention = "adopt"  // it is the volume: it gets what is kept of it
	Forget Intention = "forget" // it is to be served as it is: what is kept is given up
)

// Verdict is what a start does.
type Verdict uint8

// The verdicts.
const (
	Accept Verdict = iota
	Note           // accept, and say why in the log
	Refuse
)

// Scene is all that is known of a volume's place at a start.
type Scene struct {
	Path      string
	Recorded  *Record // nil: nothing
	Found     backstore.Found
	Pending   Pending
	Intention Intention
	Owner     string // another configured volume that the found store is recorded of; empty: none
}

// rule is a row of the table: the first whose condition holds decides.
type rule struct {
	holds   func(*Scene) bool
	verdict Verdict
	why     func(*Scene) string
}

var places = []rule{
	{missing, Refuse, missingText},
	{adopted, Accept, nil},
	{forgotten, Accept, nil},
	{func(s *Scene) bool { return s.Pending.Dirty > 0 }, Refuse, pendingText},
	{first, Accept, nil},
	{func(s *Scene) bool { return s.Pending.LostLog != "" }, Refuse, lostText},
	{func(s *Scene) bool { return !s.same() && s.Pending.Interrupted > 0 }, Refuse, pendingText},
	{func(s *Scene) bool { return !s.same() && s.Owner != "" }, Refuse, ownedText},
	{shorter, Refuse, shorterText},
	{func(s *Scene) bool { return !s.same() && s.Path == s.Recorded.Path }, Note, otherText},
	{func(s *Scene) bool { return s.Path != s.Recorded.Path }, Note, elsewhereText},
	{func(*Scene) bool { return true }, Accept, nil},
}

// Place decides about what is at the path of a volume.
func Place(s Scene) (v Verdict, why string) {
	for _, r := range places {
		if !r.holds(&s) {
			continue
		}
		if r.why != nil {
			why = r.why(&s)
		}
		return r.verdict, why
	}
	return Accept, ""
}

func (s *Scene) same() bool { return !s.Found.Missing && s.Found.Identity.Same(s.Recorded.Identity) }

func first(s *Scene) bool { return s.Recorded == nil }

// missing holds also where the path is another than before: with a typo in it, an empty
// disk would be served in place of the volume.
func missing(s *Scene) bool {
	return s.Found.Missing && (s.Intention == Adopt || s.Recorded != nil && s.Intention != Forget)
}

func adopted(s *Scene) bool   { return s.Intention == Adopt }
func forgotten(s *Scene) bool { return s.Intention == Forget }

// shorter holds for what replaced a store, too: an empty file is what somebody
// finds, or has made, below a mount point.
func shorter(s *Scene) bool {
	return s.Found.Size < s.Recorded.Size && (s.same() || s.Path == s.Recorded.Path)
}

func lostText(s *Scene) string {
	return fmt.Sprintf("intent log %s: found no file, and there was one: %s may have parts of atomic writes that a crash has interrupted", s.Pending.LostLog, s.Recorded.Path)
}

func missingText(s *Scene) string {
	if s.Recorded == nil {
		return fmt.Sprintf("%s is missing", s.Path)
	}
	doubt := "is its file system mounted?"
	if s.Path != s.Recorded.Path {
		doubt = "is the path right?"
	}
	return fmt.Sprintf("%s is missing; the volume had %d bytes in %s (%s): %s", s.Path, s.Recorded.Size, s.Recorded.Path, s.Recorded.Identity, doubt)
}

func shorterText(s *Scene) string {
	if s.same() {
		return fmt.Sprintf("%s has %d bytes, the volume had %d: it was cut, and what is missing would read as zeroes", s.Path, s.Found.Size, s.Recorded.Size)
	}
	return fmt.Sprintf("%s has %d bytes and is not the store that the volume had: found %s, expected %s of %d bytes: is its file system mounted?",
		s.Path, s.Found.Size, s.Found.Identity, s.Recorded.Identity, s.Recorded.Size)
}

func ownedText(s *Scene) string {
	return fmt.Sprintf("%s is the store of volume %s (%s); the volume had %s (%s): were the two exchanged?", s.Path, s.Owner, s.Found.Identity, s.Recorded.Path, s.Recorded.Identity)
}

func otherText(s *Scene) string {
	return fmt.Sprintf("%s is another store than before: found %s, it was %s", s.Path, s.Found.Identity, s.Recorded.Identity)
}

func elsewhereText(s *Scene) string {
	return fmt.Sprintf("the volume was in %s (%s), now in %s", s.Recorded.Path, s.Recorded.Identity, s.Path)
}

func pendingText(s *Scene) string {
	text := "found"
	if s.Pending.Dirty > 0 {
		text += fmt.Sprintf(" %d bytes of unwritten data %s in the cache", s.Pending.Dirty, s.Pending.Of)
	}
	if s.Pending.Interrupted > 0 {
		if s.Pending.Dirty > 0 {
			text += " and"
		}
		text += fmt.Sprintf(" %d interrupted atomic writes", s.Pending.Interrupted)
	}
	if s.Recorded == nil {
		if s.Found.Missing {
			return text + fmt.Sprintf("; %s is missing", s.Path)
		}
		return text + fmt.Sprintf("; at %s is %s", s.Path, s.Found.Identity)
	}
	return text + fmt.Sprintf(" for what was at %s (%s); at %s is %s", s.Recorded.Path, s.Recorded.Identity, s.Path, s.Found.Identity)
}
