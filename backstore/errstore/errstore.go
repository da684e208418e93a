// Package errstore wraps a Store for tests and makes chosen ops fail, fail half
// way, take long, or not end until the test lets them.
package errstore

import (
	"slices"
	"sync"
	"time"

	"lunar/backstore"
	"lunar/internal/evloop"
)

// Rule chooses ops and says what becomes of them. Of several rules the first
// that matches decides. The zero Rule matches everything and changes nothing.
type Rule struct {
	Kinds    []backstore.Kind // nil is all
	Off, Len int64            // the op must touch these bytes; Len 0 is up to the end. Flush and Wipe touch all
	After    int              // matching ops that pass unharmed first
	Times    int              // how many ops it then applies to; 0 is all

	Err   error         // the op ends with this; nil carries it out
	Done  int64         // bytes of a Read or Write that are carried out before Err
	Async bool          // it ends later on the loop, never inside Submit
	Delay time.Duration // it begins later; implies Async
	Hold  bool          // it begins when Release lets it; implies Async
}

// Store is a Store with faults.
type Store struct {
	backstore.Store
	mu struct {
		sync.Mutex
		rules   []Rule
		matches []int // by rule
		held    []*fault
	}
}

// Wrap returns s with faults; it owns s from then on.
func Wrap(s backstore.Store, rules ...Rule) *Store {
	w := &Store{Store: s}
	w.SetRules(rules...)
	return w
}

// SetRules replaces the rules and restarts their counts. Ops under way keep
// what was decided for them.
func (s *Store) SetRules(rules ...Rule) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.rules, s.mu.matches = slices.Clone(rules), make([]int, len(rules))
}

// Held returns how many ops wait for Release.
func (s *Store) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mu.held)
}

// Release lets the n oldest held ops go, all of them if n is negative, and
// returns how many those were. Any goroutine may call it.
func (s *Store) Release(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < 0 || n > len(s.mu.held) {
		n = len(s.mu.held)
	}
	for _, f := range s.mu.held[:n] {
		f.lane.loop.Post(f)
	}
	s.mu.held = slices.Delete(s.mu.held, 0, n)
	return n
}

// Resize implements backstore.Resizer; no rule is about it.
func (s *Store) Resize(size int64) error { return backstore.Resize(s.Store, size) }

// Lane implements backstore.Store.
func (s *Store) Lane(l *evloop.Loop) (backstore.Lane, error) {
	inner, err := s.Store.Lane(l)
	if err != nil {
		return nil, err
	}
	return &lane{store: s, inner: inner, loop: l}, nil
}

// matches reports whether r is about op.
func (r *Rule) matches(op *backstore.Op) bool {
	if r.Kinds != nil && !slices.Contains(r.Kinds, op.Kind) {
		return false
	}
	if op.Kind == backstore.Flush || op.Kind == backstore.Wipe {
		return true
	}
	return op.Off+op.Length() > r.Off && (r.Len == 0 || op.Off < r.Off+r.Len)
}

// concerned reports whether any rule is about op, without counting it.
func (s *Store) concerned(op *backstore.Op) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.mu.rules, func(r Rule) bool { return r.matches(op) })
}

// fault counts op and returns it with the rule that applies to it now, nil if none
// does.
//
// INVARIANT: what is to be held is among the held ones before the rules can change.
// So nothing is held any more after SetRules and Release(-1).
func (s *Store) fault(op *backstore.Op, l *lane) *fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	rule, found := s.decide(op)
	if !found {
		return nil
	}
	f := &fault{rule: rule, op: op, lane: l}
	if rule.Hold {
		s.mu.held = append(s.mu.held, f)
	}
	return f
}

// decide counts op and returns the rule that applies to it. The caller holds mu.
func (s *Store) decide(op *backstore.Op) (Rule, bool) {
	for i := range s.mu.rules {
		r := &s.mu.rules[i]
		if !r.matches(op) {
			continue
		}
		s.mu.matches[i]++
		if n := s.mu.matches[i] - r.After; n > 0 && (r.Times == 0 || n <= r.Times) {
			return *r, true
		}
	}
	return Rule{}, false
}

// lane is one event thread's access to a Store.
type lane struct {
	store *Store
	inner backstore.Lane
	loop  *evloop.Loop
}

// TryNow implements backstore.Lane. It leaves what a rule is about to Submit.
func (l *lane) TryNow(op *backstore.Op) bool {
	return !l.store.concerned(op) && l.inner.TryNow(op)
}

// Submit implements backstore.Lane.
func (l *lane) Submit(op *backstore.Op) bool {
	f := l.store.fault(op, l)
	switch {
	case f == nil:
		return l.inner.Submit(op)
	case f.rule.Hold: // Release begins it, if it has not yet
	case f.rule.Delay > 0:
		f.timer.Fire = f.Run
		l.loop.Arm(&f.timer, f.rule.Delay)
	case f.rule.Async:
		l.loop.Post(f)
	default:
		return f.begin()
	}
	return false
}

// Close implements backstore.Lane.
func (l *lane) Close() { l.inner.Close() }

// fault is an op to which a rule applies.
type fault struct {
	rule  Rule
	op    *backstore.Op
	lane  *lane
	timer evloop.Timer
	part  backstore.Op // what is carried out before the error
}

// Run implements evloop.Task: it begins an op that Submit left running.
func (f *fault) Run() {
	if f.begin() {
		f.op.Done(f.op)
	}
}

// begin carries out what the rule leaves of the op and reports whether it has
// ended already; else Done follows.
func (f *fault) begin() bool {
	if f.rule.Err == nil {
		return f.lane.inner.Submit(f.op)
	}
	f.op.Err = f.rule.Err
	n := min(f.rule.Done, int64(len(f.op.Data)))
	if n == 0 || f.op.Kind != backstore.Read && f.op.Kind != backstore.Write {
		return true
	}
	f.part = backstore.Op{Kind: f.op.Kind, FUA: f.op.FUA, Off: f.op.Off, Data: f.op.Data[:n]}
	f.part.Done = func(*backstore.Op) { f.op.Done(f.op) }
	return f.lane.inner.Submit(&f.part)
}
