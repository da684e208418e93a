package ownership

import (
	"errors"
	"time"

	"lunar/cluster"
)

// New returns the machine of a volume of which nothing is known yet.
func New(c Config) *Machine { return &Machine{config: c, state: Follower} }

// State is what the machine is doing.
func (m *Machine) State() State { return m.state }

// Idle reports whether nothing is open or under way, and nobody else thinks so.
func (m *Machine) Idle() bool {
	return m.busy == Nothing && m.await == 0 && m.disk == nil && !m.mine()
}

// Failing reports that something of what opens the volume has failed here, and that it has not been
// open since.
func (m *Machine) Failing() bool { return m.failing && m.disk == nil }

// Closed reports whether nothing is open, and nothing under way that could open it.
func (m *Machine) Closed() bool { return m.disk == nil && (m.busy == Nothing || m.busy == Commit) }

// Without reports that this node owns the volume by its record, and does not serve it.
func (m *Machine) Without() bool { return m.mine() && m.record.Standing == Owned && !m.open() }

// Unlike reports that this node would present another disk than the one that was open: of another
// block size, or in another image.
func (m *Machine) Unlike() bool { return m.config.unlike(&m.record) }

// Owned tells the owner's record, and its revision; 0: there is none.
func (m *Machine) Owned(r Record, modified cluster.Revision) {
	if modified != m.modified && (modified >= m.await || modified == 0) { // what has failed was about what is no more
		m.await, m.retry = 0, time.Time{}
	}
	changed := modified != m.modified
	m.record, m.modified, m.known = r, modified, true
	if changed {
		m.doubt = false // what was to be done was, or cannot be any more
	}
	if !m.mine() || changed && m.open() && m.busy != Close && m.record.Standing == Owned {
		m.leaving = false
	}
}

// Asked tells the request of a move, nil: there is none.
func (m *Machine) Asked(r *Request, modified cluster.Revision) { m.request, m.asked = r, modified }

// Configure changes what the volume is to be, but for its name and what it is in.
func (m *Machine) Configure(owners []string, cached bool, failback time.Duration, revision int64) {
	m.config.Owners, m.config.Cached, m.config.Failback, m.config.Revision = owners, cached, failback, revision
}

// Lost tells that what was opened for an epoch is fenced.
func (m *Machine) Lost(epoch uint64) {
	if m.disk != nil && m.epoch == epoch || m.busy == Open && m.epochOf == epoch {
		m.lost, m.address = true, ""
	}
}

// Resized tells the size that what is open has got, in bytes.
func (m *Machine) Resized(size int64) {
	if m.disk != nil {
		m.disk.Size = size
	}
}

// Silent tells which store the volume is in, by a name that is the same on all nodes, and since
// when it does not answer this one; zero: it does.
func (m *Machine) Silent(store string, since time.Time) { m.store, m.silent = store, since }

// Refused has the machine ask for another instance if Ceph refuses the one that it has: it claims
// nothing by that. What is open by it hears of it by Lost.
func (m *Machine) Refused(is func(address string) bool) {
	if m.address != "" && m.disk == nil && m.busy == Nothing && is(m.address) {
		m.address = ""
	}
}

// Stop has the machine give the volume away and claim it no more.
func (m *Machine) Stop() { m.stopping = true }

// Ended tells how the action that takes time has ended.
func (m *Machine) Ended(o Outcome, now time.Time) {
	kind, epoch := m.busy, m.epochOf
	m.busy = Nothing
	if o.Err != nil && kind != Commit {
		m.pause, m.failing = now.Add(m.config.Retry), true
	}
	switch kind {
	case Connect:
		m.address = o.Address
	case Commit:
		m.committed(o, now)
	case Fence, Open:
		m.failed = 0
		switch {
		case o.Err != nil:
			m.failed, m.late, m.address = epoch, m.late || o.Late, ""
		case kind == Fence:
			m.fenced = epoch
		default:
			m.disk, m.epoch, m.late, m.opened, m.failing = &o.Disk, epoch, false, now, false
		}
	case Close:
		m.disk, m.lost, m.late = nil, false, o.Err != nil // whoever is next fences the instance
	}
}

func (m *Machine) committed(o Outcome, now time.Time) {
	switch {
	case o.Err == nil && m.modified >= o.Revision:
	case o.Err == nil: // what is begun too soon conflicts
		m.await, m.retry = o.Revision, now.Add(m.config.Retry)
	case errors.Is(o.Err, cluster.ErrConflict):
		m.retry = now.Add(m.config.Retry / 8) // the view is about to tell why
	default:
		m.retry = now.Add(m.config.Retry)
		m.doubt = m.doubt || errors.Is(o.Err, cluster.ErrUnknown)
		if m.await == 0 && (m.disk == nil || !m.doubt) {
			m.leaving = m.stopping // without a quorum nobody else can have the volume
		}
	}
}

// Step returns what is to be done at a time, and when to ask again; zero: only when
// something has changed.
func (m *Machine) Step(v *View, now time.Time) (todo []Action, next time.Time) {
	m.now = now
	if m.busy == Nothing {
		r := m.rule(v, now)
		m.state = r.state
		if r.do != nil && !now.Before(m.retry) && (r.quick || !now.Before(m.pause)) {
			if a := r.do(m, v); a.Kind != Nothing {
				m.busy, m.epochOf = a.Kind, a.Epoch
				todo = append(todo, a)
			}
		}
		next = m.next(v, now)
	}
	return append(m.tell(v, now), todo...), next
}

// next is when a rule may hold that does not now.
func (m *Machine) next(v *View, now time.Time) (next time.Time) {
	for _, t := range []time.Time{m.retry, m.pause, m.due(v), m.failback(v), m.linked(v)} {
		if t.After(now) && (next.IsZero() || t.Before(next)) {
			next = t
		}
	}
	return next
}

// tell returns what has changed of how commands are answered.
func (m *Machine) tell(v *View, now time.Time) (all []Action) {
	a := access{kind: Hold, record: m.modified}
	switch {
	case m.open() && !m.leaving && m.busy != Close:
		a = access{kind: Serve, epoch: m.epoch}
	case m.record.Standing == Owned && !m.mine() && m.vacant(v, now) == occupied && !m.Unlike():
		a.kind = Standby
	}
	until := time.Time{}
	if a.kind == Serve && m.record.Standing == Owned && m.record.Cached && m.config.Cached && v.Current {
		until = v.Until
	}
	trust := Action{Kind: Trust, Until: until}
	if !until.Equal(m.until) && until.IsZero() {
		all = append(all, trust) // before anything else
	}
	if a != m.access {
		all = append(all, Action{Kind: a.kind, Epoch: a.epoch, Record: m.record})
	}
	if !until.Equal(m.until) && !until.IsZero() {
		all = append(all, trust)
	}
	m.access, m.until = a, until
	return all
}
