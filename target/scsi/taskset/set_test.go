package taskset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// commandOf makes a command of a word such as "O:write@8+4 b NACA": attribute,
// class, extent (the whole medium if not given) and nexus (a if not given).
func commandOf(t *testing.T, text string) *Command {
	t.Helper()
	words := strings.Fields(text)
	c := &Command{Nexus: "a", Extent: Whole, Owner: text}
	attribute, what, _ := strings.Cut(words[0], ":")
	class, extent, bounded := strings.Cut(what, "@")
	if bounded {
		if _, err := fmt.Sscanf(extent, "%d+%d", &c.Extent.First, &c.Extent.Count); err != nil {
			t.Fatal(err)
		}
	}
	c.Attribute = map[string]Attribute{"S": Simple, "O": Ordered, "H": HeadOfQueue, "A": ACA}[attribute]
	c.Class = map[string]Class{"free": Free, "query": Query, "read": Read, "write": Write, "alter": Alter}[class]
	for _, word := range words[1:] {
		switch word {
		case "NACA":
			c.NACA = true
		case "preempts":
			c.Preempts = true
		case "alone":
			c.Alone = true
		default:
			c.Nexus = word
		}
	}
	return c
}

// TestStories: each step is a command that enters, or something that happens to
// one that has, and what follows: the verdict, and who is enabled.
func TestStories(t *testing.T) {
	verdicts := map[Verdict]string{Enabled: "enabled", Dormant: "dormant", ACAActive: "ACA ACTIVE", Busy: "BUSY", NoACA: "no ACA"}
	for name, steps := range map[string][]string{
		"simple commands are forgotten": {
			"1 = S:write > enabled", "2 = S:write > enabled", "watched > no",
		},
		"ordered is a barrier": {
			"1 = O:write@0+8 > dormant", "watched > yes",
			"2 = S:write@100+8 > dormant", "3 = S:read@200+1 > dormant", "4 = S:free > enabled", "5 = S:query b > dormant",
			"settle 1 > 1", "leave 1 > 2 3 5", "watched > no",
		},
		"ordered after ordered": {
			"1 = O:write > dormant", "2 = O:write > dormant", "3 = S:write > dormant",
			"settle 1 > 1", "leave 1 >", "settle 2 > 2", "leave 2 > 3",
		},
		"a dormant command is aborted": {
			"1 = O:write > dormant", "2 = S:write > dormant", "leave 2 >", "leave 1 >", "watched > no",
		},
		"a dormant barrier is aborted": {
			"1 = O:write > dormant", "2 = S:write > dormant", "leave 1 > 2", "watched > no",
		},
		"head of queue passes all": {
			"1 = O:write > dormant", "2 = H:read@0+8 > enabled", "settle 1 >", "leave 2 > 1", "leave 1 >", "watched > no",
		},
		"head of queue holds back what interferes": {
			"1 = H:write@8+8 > enabled",
			"2 = S:read@0+8 > enabled", "3 = S:read@0+9 > dormant", "4 = S:read@15+1 > dormant", "5 = S:read@16+1 > enabled",
			"6 = S:write@100+1 > dormant", "7 = S:query > enabled", "8 = S:alter > dormant", "9 = S:free > enabled",
			"leave 1 > 3 4 6 8",
		},
		"nobody else waits for one alone": {
			"1 = H:read alone > enabled", "2 = O:read alone > dormant", "3 = S:write b > enabled", "4 = S:alter b > enabled", "5 = S:read > dormant",
			"6 = O:write b > dormant", "settle 6 > 6", "leave 6 >", "settle 2 > 2", "leave 2 > 5", "leave 1 >", "watched > no",
		},
		"reads do not interfere": {
			"1 = H:read > enabled", "2 = S:read > enabled", "3 = S:write > dormant", "leave 1 > 3",
		},
		"several at the head": {
			"1 = H:alter > enabled", "2 = H:alter > enabled", "3 = S:read > dormant", "leave 2 >", "leave 1 > 3",
		},
		"an ACA condition": {
			"1 = S:write NACA > enabled", "fail 1 >", "watched > yes",
			"2 = S:write > ACA ACTIVE", "3 = O:free > ACA ACTIVE", "4 = S:free b > BUSY", "5 = S:read b NACA > ACA ACTIVE", "6 = A:read b > ACA ACTIVE",
			"7 = A:read > enabled", "8 = A:read > ACA ACTIVE", "leave 7 >", "9 = A:write > enabled", "leave 9 >",
			"clear b >", "10 = S:read > ACA ACTIVE", "clear a >", "watched > no", "11 = A:read > no ACA", "12 = S:read > enabled",
		},
		"an ACA command that fails ends the condition": {
			"1 = S:write NACA > enabled", "fail 1 >", "2 = A:read > enabled", "fail 2 >", "leave 2 >", "watched > no",
		},
		"or makes a new one": {
			"1 = S:write NACA > enabled", "fail 1 >", "2 = A:read NACA > enabled", "fail 2 >", "leave 2 >", "3 = S:read > ACA ACTIVE",
		},
		"without NACA there is none": {"1 = S:write > enabled", "fail 1 >", "watched > no"},
		"dormant commands wait for the end of the condition": {
			"1 = O:write NACA > dormant", "2 = S:read b > dormant", "settle 1 > 1", "fail 1 >", "leave 1 >", "clear a > 2",
		},
		"PREEMPT AND ABORT of another gets through": {
			"1 = S:write NACA > enabled", "fail 1 >", "2 = S:free b preempts > enabled", "3 = S:free preempts > ACA ACTIVE", "clear * >", "watched > no",
		},
		"what came before a barrier does not wait for it": {
			"1 = O:write > dormant", "2 < 1 S:write > enabled", "3 = O:read > dormant", "4 < 3 S:write > dormant", "leave 1 > 4",
		},
		"what came before a barrier keeps its order": {
			"1 = O:write > dormant", "2 < 1 S:write > enabled", "3 < 1 O:write > dormant", "4 < 1 S:write > dormant",
			"settle 3 > 3", "leave 3 > 4", "leave 4 >", "settle 1 > 1", "leave 1 >", "watched > no",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s Set
			commands := map[string]*Command{}
			names := func(list []*Command) string {
				var out []string
				for _, c := range list {
					for name, known := range commands {
						if known == c {
							out = append(out, name)
						}
					}
				}
				return strings.Join(out, " ")
			}
			for _, step := range steps {
				what, want, _ := strings.Cut(step, ">")
				words := strings.Fields(what)
				var got string
				switch words[0] {
				case "watched":
					got = map[bool]string{true: "yes", false: "no"}[s.Watched()]
				case "settle":
					got = names(s.Settled(commands[words[1]]))
				case "leave":
					got = names(s.Remove(commands[words[1]]))
				case "fail":
					got = names(s.Failed(commands[words[1]]))
				case "clear":
					if words[1] == "*" {
						got = names(s.Clear(nil))
					} else {
						got = names(s.Clear(words[1]))
					}
				default:
					rest := words[2:]
					before := words[1] == "<"
					if before {
						rest = words[3:]
					}
					c := commandOf(t, strings.Join(rest, " "))
					if before {
						c.Turn = commands[words[2]].Turn.Ahead()
					}
					commands[words[0]] = c
					got = verdicts[s.Enter(c)]
				}
				if got != strings.TrimSpace(want) {
					t.Errorf("%s: %q, expected %q", step, got, strings.TrimSpace(want))
				}
			}
		})
	}
}

// TestMatrix: interference does not depend on who asks, and FREE has none.
func TestMatrix(t *testing.T) {
	for a := Free; a <= Alter; a++ {
		for b := Free; b <= Alter; b++ {
			if interferences[a][b] != interferences[b][a] {
				t.Errorf("%d with %d: %d, the other way round %d", a, b, interferences[a][b], interferences[b][a])
			}
		}
		if interferences[Free][a] != never {
			t.Errorf("free interferes with %d", a)
		}
	}
}

// member is a command of TestRandom that has entered.
type member struct {
	*Command
	enabled bool
	arrival int
}

// TestRandom lets commands come, settle and go at random, as an owner does that
// settles ORDERED commands when all before them have ended. No ORDERED command
// runs beside an older one, no newer SIMPLE one beside it, HEAD OF QUEUE never
// waits, and everything ends.
func TestRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 27))
	for range 300 {
		var s Set
		var present []*member
		run := func(list []*Command) {
			for _, c := range list {
				i := slices.IndexFunc(present, func(m *member) bool { return m.Command == c })
				if i < 0 || present[i].enabled {
					t.Fatal("enabled without being dormant")
				}
				present[i].enabled = true
			}
		}
		for arrival := 0; arrival < 60 || len(present) > 0; arrival++ {
			if arrival < 60 {
				c := &Command{
					Attribute: Attribute(rng.IntN(3)), Class: Class(rng.IntN(5)), Nexus: rng.IntN(2),
					Extent: Extent{uint64(rng.IntN(20)), uint64(rng.IntN(5))},
				}
				verdict := s.Enter(c)
				present = append(present, &member{c, verdict == Enabled, arrival})
				if c.Attribute == HeadOfQueue && verdict != Enabled {
					t.Fatal("HEAD OF QUEUE waits")
				}
			}
			if enabled := slices.DeleteFunc(slices.Clone(present), func(m *member) bool { return !m.enabled }); len(enabled) > 0 && rng.IntN(3) > 0 {
				m := enabled[rng.IntN(len(enabled))]
				present = slices.DeleteFunc(present, func(o *member) bool { return o == m })
				run(s.Remove(m.Command))
			}
			for i, m := range present {
				if m.Attribute == Ordered && !m.settled && !slices.ContainsFunc(present[:i], func(o *member) bool { return true }) {
					run(s.Settled(m.Command))
				}
			}
			for i, m := range present {
				for _, newer := range present[i+1:] {
					switch {
					case newer.enabled && newer.Attribute == Ordered:
						t.Fatalf("an ORDERED command runs beside an older one")
					case newer.enabled && newer.Attribute == Simple && newer.Class != Free && m.Attribute == Ordered:
						t.Fatalf("a SIMPLE command runs beside an older ORDERED one")
					}
				}
			}
			if arrival > 10000 {
				t.Fatalf("%d commands do not end", len(present))
			}
		}
		if s.Watched() {
			t.Fatal("the empty set is watched")
		}
	}
}
