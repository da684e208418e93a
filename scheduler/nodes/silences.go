package nodes

import (
	"maps"
	"slices"

	"lunar/scheduler"
)

// silences are what nodes have of limits that live and do not report: as long as grants hold
// what they were granted, and afterwards their even part, as all that hear nothing.
type silences struct {
	of    map[string]*silence
	began int64 // the first Deal; 0: there was none
	// first are the parts, millionths by entity, that nodes had before the first Deal. As long as
	// grants of an earlier controller hold, who does not report has what these leave.
	first map[string]int64
}

// silence is one node's.
type silence struct {
	until   int64            // its grants hold
	had     map[string]int64 // of limits, millionths by entity; nil: it has come, and has little
	unknown bool             // it may have grants of an earlier controller
}

// little is what a node has of a limit that has not been granted any, or has stood still, while
// others may not know that it is there.
func little(nodes int64) int64 { return scheduler.Whole / scheduler.Newcomers / nodes }

// speak has a node be silent no more, if it was, that has told of its entities.
func (s *silences) speak(node string, had map[int64]Entity) {
	if one := s.of[node]; one != nil && one.unknown {
		s.had(had)
	}
	delete(s.of, node)
}

// had adds what a node had before the first Deal.
func (s *silences) had(all map[int64]Entity) {
	if s.first == nil {
		s.first = map[string]int64{}
	}
	for _, e := range all {
		s.first[e.Key] += e.Share
	}
}

// fall has a node be silent whose grants hold until a time.
func (s *silences) fall(node string, until int64, had map[string]int64) {
	if s.of == nil {
		s.of = map[string]*silence{}
	}
	s.of[node] = &silence{until: until, had: had}
}

// listen notes which nodes live at now and are not heard. It reports whether it is to be told what
// those had that are: before the first Deal, if there is a silent one.
func (s *silences) listen(now int64, living []string, heard func(node string) bool) bool {
	begins := s.began == 0
	if begins {
		s.began = max(now, 1)
	}
	maps.DeleteFunc(s.of, func(node string, _ *silence) bool { return !slices.Contains(living, node) })
	for _, node := range living {
		if !heard(node) && s.of[node] == nil {
			s.fall(node, now+Holds, nil)
			s.of[node].unknown = begins
		}
	}
	if now >= s.began+Holds {
		s.first = nil
	}
	return begins && len(s.of) > 0
}

// silent are the nodes that live and are not heard, in order.
func (s *silences) silent() []string { return slices.Sorted(maps.Keys(s.of)) }

// elsewhere says what of an entity's limits, in millionths, silent nodes have at now; nil: nothing.
func (s *silences) elsewhere(now, nodes int64) func(entity string) int64 {
	if len(s.of) == 0 {
		return nil
	}
	return func(entity string) (part int64) {
		unknown := false
		for _, one := range s.of {
			had, known := one.had[entity]
			switch {
			case now >= one.until:
				part += (scheduler.Whole + nodes - 1) / nodes
			case one.unknown:
				unknown = true
			case known:
				part += had
			default:
				part += little(nodes)
			}
		}
		if unknown {
			part += max(0, scheduler.Whole-s.first[entity])
		}
		return part
	}
}
