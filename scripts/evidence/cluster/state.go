package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"lunar/cluster"
	"lunar/cluster/etcd"
	"lunar/scripts/evidence/notes"
)

// times are sorted when they are asked.
type times []time.Duration

func (t times) at(part float64) time.Duration {
	slices.Sort(t)
	return t[min(int(part*float64(len(t))), len(t)-1)]
}

func (t times) row(what string) []string {
	cells := []string{what, fmt.Sprint(len(t))}
	for _, part := range []float64{0.5, 0.99, 1} {
		cells = append(cells, t.at(part).Round(10*time.Microsecond).String())
	}
	return cells
}

var timeColumns = []string{"", "count", "p50", "p99", "worst"}

const key = "/evidence/key"

// commits measures compare and swap, how soon a watch sees it, and reading, one at a time.
func commits(ctx context.Context, o options, count int) (r notes.Result, err error) {
	m, err := newMembers(ctx, o.LunarEtcd, count)
	if err != nil {
		return r, err
	}
	defer m.end()
	s := m.once
	at, err := s.Commit(ctx, nil, []cluster.Change{{Key: key}})
	if err != nil {
		return r, err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	seen := s.Watch(ctx, key, at)
	var commit, watch, get times
	value := make([]byte, 200)
	for until := time.Now().Add(time.Duration(o.Seconds) * time.Second); time.Now().Before(until); {
		began := time.Now()
		if at, err = s.Commit(ctx, []cluster.Condition{{Key: key, Modified: at}}, []cluster.Change{{Key: key, Value: value}}); err != nil {
			return r, err
		}
		commit = append(commit, time.Since(began))
		if b := <-seen; b.Err != nil || b.Revision != at {
			return r, fmt.Errorf("the watch found revision %d, expected %d (error: %v)", b.Revision, at, b.Err)
		}
		watch = append(watch, time.Since(began))
		began = time.Now()
		if _, _, err = s.Get(ctx, key); err != nil {
			return r, err
		}
		get = append(get, time.Since(began))
	}
	r.How = "One after the other, 200 bytes, each condition being the revision of the one before."
	r.Columns = timeColumns
	r.Rows = [][]string{commit.row("compare and swap"), watch.row("until a watch sees it"), get.row("read")}
	return r, nil
}

// writer commits numbers. Each is one above the one before: what was lost or came twice is
// found.
type writer struct {
	s     *etcd.State
	at    cluster.Revision
	n     int
	asked int // after an unknown outcome
}

func (w *writer) step(ctx context.Context) error {
	_, err := w.s.Commit(ctx, []cluster.Condition{{Key: key, Modified: w.at}}, []cluster.Change{{Key: key, Value: fmt.Append(nil, w.n+1)}})
	if err == nil || errors.Is(err, cluster.ErrNoQuorum) && !errors.Is(err, cluster.ErrUnknown) {
		if err == nil {
			return w.read(ctx)
		}
		return nil
	}
	w.asked++
	return w.read(ctx)
}

// read finds out where the numbers are. Nothing but this writer has changed them.
func (w *writer) read(ctx context.Context) error {
	items, _, err := w.s.Get(ctx, key)
	if err != nil {
		return nil // again
	}
	var found int
	if len(items) > 0 {
		w.at = items[0].Modified
		_, _ = fmt.Sscan(string(items[0].Value), &found)
	}
	if found != w.n && found != w.n+1 {
		return fmt.Errorf("found number %d behind %d", found, w.n)
	}
	w.n = found
	return nil
}

// knowing is how long it takes at most until who opened the state of one member knows of
// the others.
const knowing = 11 * time.Second

// leaders kills etcd's leader again and again, while numbers are committed and a lease of
// 2 s is held.
func leaders(ctx context.Context, o options) (r notes.Result, err error) {
	m, err := newMembers(ctx, o.LunarEtcd, 3)
	if err != nil {
		return r, err
	}
	defer m.end()
	l, err := m.once.Lease(ctx, 2*time.Second)
	if err != nil {
		return r, err
	}
	w, missed := &writer{s: m.once}, 0
	pause(ctx, knowing)
	if err := w.read(ctx); err != nil {
		return r, err
	}
	var gaps, left times
	for range o.Kills {
		if err := within(ctx, "three members that answer", func() bool { return m.voters(ctx) == 3 }); err != nil {
			return r, err
		}
		leader, err := m.leader(ctx)
		if err != nil {
			return r, err
		}
		if err := leader.killEtcd(); err != nil {
			return r, err
		}
		gap, least, err := w.through(ctx, l)
		if err != nil {
			return r, err
		}
		gaps, left = append(gaps, gap), append(left, least)
		if least < 0 {
			missed++
		}
		pause(ctx, 2*time.Second) // so that the killed one is there again
	}
	r.How = "A number is raised by compare and swap without a pause; the gap is from the kill to the first answer to what was sent after it. The lease's least rest is what was left until its deadline at worst."
	r.Columns = timeColumns
	r.Rows = [][]string{gaps.row("gap")}
	r.Facts = []notes.Fact{
		notes.Found("numbers lost, or there twice", fmt.Sprintf("0 of %d; %d outcomes were unknown at first", w.n, w.asked), true),
		notes.Found("least rest of a lease of 2 s", left.at(0).Round(time.Millisecond).String(), true),
		notes.Found("kills in which its deadline passed", fmt.Sprintf("%d of %d", missed, o.Kills), true),
	}
	select {
	case <-l.Done():
		r.Facts = append(r.Facts, notes.Found("the lease", "has ended", false))
	default:
	}
	return r, nil
}

// through writes until something that was sent from now on was answered and three seconds
// have passed, and returns how long the first took and the lease's least rest.
func (w *writer) through(ctx context.Context, l cluster.Lease) (gap, least time.Duration, err error) {
	began, before := time.Now(), w.n
	least = time.Until(l.Deadline())
	stop := make(chan struct{})
	watched := make(chan time.Duration)
	go func() {
		rest := least
		for {
			select {
			case <-stop:
				watched <- rest
				return
			case <-time.After(5 * time.Millisecond):
				rest = min(rest, time.Until(l.Deadline()))
			}
		}
	}()
	for err == nil && ctx.Err() == nil && (gap == 0 || time.Since(began) < 3*time.Second) {
		if err = w.step(ctx); w.n > before && gap == 0 {
			gap = time.Since(began)
		}
	}
	close(stop)
	return gap, <-watched, errors.Join(err, ctx.Err())
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// leases measures how soon others see that a holder is gone.
func leases(ctx context.Context, o options) (r notes.Result, err error) {
	m, err := newMembers(ctx, o.LunarEtcd, 3)
	if err != nil {
		return r, err
	}
	defer m.end()
	const rounds = 3
	pause(ctx, knowing)
	var guarded, silent, both times
	for range rounds {
		for _, c := range []struct {
			to            *times
			guard, leader bool
		}{{&guarded, true, false}, {&silent, false, false}, {&both, false, true}} {
			took, err := m.leaseEnds(ctx, c.guard, c.leader)
			if err != nil {
				return r, err
			}
			*c.to = append(*c.to, took)
		}
	}
	r.How = "Leases of 2 s on three members, from the death of the holder until a watch of another node sees that its key is gone."
	r.Columns = timeColumns
	r.Rows = [][]string{
		guarded.row("the process dies, its node's member lives"),
		silent.row("the node is silent"),
		both.row("the node is silent, and etcd's leader dies with it"),
	}
	return r, nil
}

// leaseEnds measures one end.
func (m *members) leaseEnds(ctx context.Context, guarded, leader bool) (took time.Duration, err error) {
	if err := within(ctx, "three members", func() bool { return m.voters(ctx) == 3 }); err != nil {
		return 0, err
	}
	holder, err := m.all[0].open()
	if err != nil {
		return 0, err
	}
	defer holder.Close()
	l, err := holder.Lease(ctx, 2*time.Second)
	if err != nil {
		return 0, err
	}
	at, err := m.once.Commit(ctx, nil, []cluster.Change{{Key: key, Lease: l.ID()}})
	if err != nil {
		return 0, err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	gone := m.once.Watch(ctx, key, at)
	pause(ctx, time.Second)
	dying, err := net.Dial("unix", m.all[0].dir.Socket())
	if err != nil {
		return 0, err
	}
	defer dying.Close()
	if guarded {
		fmt.Fprintf(dying, "lease %d\n", l.ID())
	}
	if leader {
		n, err := m.leader(ctx)
		if err != nil {
			return 0, err
		}
		if err := n.killEtcd(); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	_ = holder.Close() // it is not kept alive any more, and not ended
	dying.Close()
	b := <-gone
	if b.Err != nil || len(b.Events) == 0 || !b.Events[0].Deleted {
		return 0, fmt.Errorf("found %+v, expected the deletion of a key", b)
	}
	took = time.Since(began)
	pause(ctx, 2*time.Second)
	return took, nil
}
