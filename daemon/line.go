package daemon

import (
	"slices"
	"strings"
	"sync"
	"time"

	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
)

// waiting is a change that waits for its turn.
type waiting struct {
	by      server.Asker
	asked   control.Changes
	ended   bool // under applier.changing, and so are both below
	changed control.Changed
	err     error
}

// line is the changes that wait, in the order in which they came.
type line struct {
	mu   sync.Mutex
	all  []*waiting
	came chan struct{} // closed when one comes; nil: nobody waits for that

	// Of those that were made last; under applier.changing.
	busy  int           // how many they were, and came meanwhile
	spent time.Duration // on them
}

func (l *line) join(w *waiting) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, w)
	if l.came != nil {
		close(l.came)
		l.came = nil
	}
}

// maxGather bounds how long the next changes wait for more.
const maxGather = 20 * time.Millisecond

// gather waits for as many changes as there were a moment ago, but only a fraction of the
// time that they cost: programs that make one after the other are about to come again, and
// each would otherwise find that the others have just begun without it.
func (l *line) gather() []*waiting {
	late := time.NewTimer(min(l.spent/4, maxGather))
	defer late.Stop()
	for {
		l.mu.Lock()
		if len(l.all) >= l.busy {
			defer l.mu.Unlock()
			return l.taken()
		}
		if l.came == nil {
			l.came = make(chan struct{})
		}
		came := l.came
		l.mu.Unlock()
		select {
		case <-came:
		case <-late.C:
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.taken()
		}
	}
}

// taken is called under the lock.
func (l *line) taken() []*waiting {
	all := l.all
	l.all = nil
	return all
}

// made notes what changes have cost.
func (l *line) made(changes int, spent time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy, l.spent = changes+len(l.all), spent
}

// joins reports whether a change can be made together with others: nothing in it may
// depend on them, and none may do what another was allowed.
func (w *waiting) joins(group []*waiting) bool {
	plain := func(p *control.Permissions) bool { return !p.DryRun && !p.Yes && len(p.AllowShrink) == 0 }
	return !slices.ContainsFunc(group, func(o *waiting) bool {
		return !plain(&w.asked.Permissions) || !plain(&o.asked.Permissions) || (w.asked.Keep == control.KeepRunning) != (o.asked.Keep == control.KeepRunning) || w.meets(o)
	})
}

// meets reports whether two changes concern the same object.
func (w *waiting) meets(o *waiting) bool {
	return slices.ContainsFunc(w.asked.Edits, func(e control.Edit) bool {
		return slices.ContainsFunc(o.asked.Edits, func(f control.Edit) bool {
			one, other := objectOf(e.Path), objectOf(f.Path)
			n := min(len(one), len(other))
			return slices.Equal(one[:n], other[:n])
		})
	})
}

// objectOf is the place of what has a name in a section, or of the section.
func objectOf(path []string) []string { return path[:min(len(path), 2)] }

// concerns reports whether a text that begins with a key is about an object of the change.
func (w *waiting) concerns(text string) bool {
	return slices.ContainsFunc(w.asked.Edits, func(e control.Edit) bool {
		rest, ok := strings.CutPrefix(text, conf.Key(objectOf(e.Path)...))
		return ok && (rest == "" || rest[0] == '.' || rest[0] == ':')
	})
}
