package experiment

// Kind says what it is worth that a check passes.
type Kind uint8

// The kinds.
const (
	_ Kind = iota
	// Wiring: what was put in comes out. A paper's own cells added up, a rate that the
	// model was given, a constant that was fitted to the value that it is compared with.
	Wiring
	// Model: the server's code, or the model around it, against a formula of queueing, a
	// reference model or an invariant; or a figure of a paper that comes out without
	// any decision of ours.
	Model
	// Paper: a decision of the server's code reproduces what a paper shows. Without the
	// decision the check fails.
	Paper
)

// Kinds are all of them, the strongest first.
var Kinds = [...]Kind{Paper, Model, Wiring}

// String returns the kind's name; "" if there is none.
func (k Kind) String() string {
	return [...]string{"", Wiring: "wiring", Model: "model", Paper: "paper"}[k]
}

// Decision names a decision of the server's code that a run can replace by a stub.
// Packages that simulate say what each of theirs is, and what takes its place.
type Decision string

// Wiring makes all that is added from here on of this kind, as Model and Paper do.
func (r *Result) Wiring() { r.kind, r.decision = Wiring, "" }

// Model makes all that is added from here on of this kind.
func (r *Result) Model() { r.kind, r.decision = Model, "" }

// Paper makes all that is added from here on of this kind, with the decision that it
// rests on.
func (r *Result) Paper(d Decision) { r.kind, r.decision = Paper, d }

// Decides reports whether the server's code takes a decision in this run; if not, a stub
// is to do it.
func (e *Env) Decides(d Decision) bool { return e.Stub != d }

// Tally counts checks.
type Tally struct {
	Passed  map[Kind]int
	Differs int
	Reports int
	Failed  int
}

// Count adds the checks of a result.
func (t *Tally) Count(r *Result) {
	if t.Passed == nil {
		t.Passed = map[Kind]int{}
	}
	for i := range r.Checks {
		switch c := &r.Checks[i]; c.Verdict {
		case Pass:
			t.Passed[c.Kind]++
		case Differs:
			t.Differs++
		case Report:
			t.Reports++
		case Fail:
			t.Failed++
		}
	}
}
