package target

// parts are the Data-In and R2T PDUs that a connection keeps (recall.go): in the order in
// which they were sent, and by task, so that an acknowledgement costs what it forgets,
// however much else is kept.
type parts struct {
	first, last *part
	spare       *part            // nodes to use again, linked by next
	tasks       map[uint32]chain // by Initiator Task Tag
	n           int
	bytes       int // of their data
}

// part is one of them.
type part struct {
	recalled
	before, after *part // of all
	next          *part // of the task
}

// chain is a task's parts, in the order in which they were sent.
type chain struct{ first, last *part }

// add puts a part behind all others.
func (ps *parts) add(s recalled) {
	if ps.tasks == nil {
		ps.tasks = make(map[uint32]chain)
	}
	p, itt := ps.node(), s.bhs.ITT()
	p.recalled, p.before = s, ps.last
	if ps.last == nil {
		ps.first = p
	} else {
		ps.last.after = p
	}
	ps.last = p
	if c, ok := ps.tasks[itt]; ok {
		c.last.next = p
		ps.tasks[itt] = chain{c.first, p}
	} else {
		ps.tasks[itt] = chain{p, p}
	}
	ps.n++
	ps.bytes += len(s.data)
}

// node returns a part that is not in use.
func (ps *parts) node() *part {
	p := ps.spare
	if p == nil {
		return new(part)
	}
	ps.spare, p.next = p.next, nil
	return p
}

// of returns the first part of a task, nil if there is none.
func (ps *parts) of(itt uint32) *part { return ps.tasks[itt].first }

// discardFirst forgets the oldest part, which is the first of its task, too.
func (ps *parts) discardFirst() {
	p := ps.first
	itt := p.bhs.ITT()
	ps.rechain(itt, chain{p.next, ps.tasks[itt].last})
	p.release()
	ps.unlink(p)
}

// discard forgets the parts of a task.
func (ps *parts) discard(itt uint32) {
	for p := ps.of(itt); p != nil; {
		next := p.next
		p.release()
		ps.unlink(p)
		p = next
	}
	delete(ps.tasks, itt)
}

// forget takes the parts of a task that match, and returns them: their buffers are the
// caller's.
func (ps *parts) forget(itt uint32, match func(*recalled) bool) (gone []recalled) {
	var left chain
	for p := ps.of(itt); p != nil; {
		next := p.next
		p.next = nil
		switch {
		case match(&p.recalled):
			gone = append(gone, p.recalled)
			ps.unlink(p)
		case left.first == nil:
			left = chain{p, p}
		default:
			left.last.next = p
			left.last = p
		}
		p = next
	}
	ps.rechain(itt, left)
	return gone
}

func (ps *parts) rechain(itt uint32, c chain) {
	if c.first == nil {
		delete(ps.tasks, itt)
	} else {
		ps.tasks[itt] = c
	}
}

// unlink takes a part out of the order of all. It may be used again at once.
func (ps *parts) unlink(p *part) {
	if p.before == nil {
		ps.first = p.after
	} else {
		p.before.after = p.after
	}
	if p.after == nil {
		ps.last = p.before
	} else {
		p.after.before = p.before
	}
	ps.n--
	ps.bytes -= len(p.data)
	*p = part{next: ps.spare}
	ps.spare = p
}
