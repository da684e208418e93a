package scheduler

import (
	"container/list"
	"iter"
	"slices"

	"lunar/scheduler/haechi"
)

// flows are the queues of a gate, in order of opening. Any of thousands may close.
type flows struct{ list list.List }

func (f *flows) add(q *Queue) { q.open = f.list.PushBack(q) }

func (f *flows) remove(q *Queue) { f.list.Remove(q.open) }

func (f *flows) all() iter.Seq[*Queue] {
	return func(yield func(*Queue) bool) {
		for e := f.list.Front(); e != nil && yield(e.Value.(*Queue)); e = e.Next() {
		}
	}
}

// Open adds a queue for a flow on a device at now. A flow that is open already
// gets another queue with the same entities, as sessions of one initiator do.
func (g *Gate) Open(f Flow, d *Device, now int64) *Queue { return g.open(f, d, 0, now) }

// OpenAs adds a queue for commands of a flow that have named their class, which counts
// as far as the rules let it.
func (g *Gate) OpenAs(f Flow, d *Device, c Class, now int64) *Queue {
	return g.open(f, d, TagOf(c), now)
}

func (g *Gate) open(f Flow, d *Device, tag Tag, now int64) *Queue {
	s := g.server(d)
	q := s.dispatcher.Add(QueueConfig{})
	q.flow, q.server, q.tag = f, s, tag
	g.flows.add(q)
	g.bind(q, now)
	return q
}

// Close removes a queue, whose commands have all ended or been cancelled.
func (g *Gate) Close(q *Queue, now int64) {
	g.flows.remove(q)
	g.count(q, -1)
	q.server.dispatcher.Remove(q, now)
	g.release(q.clients, g.on, now)
	q.server.queues--
	if !g.on { // nobody asks for a report
		g.removeServers()
	}
}

// Apply puts another policy into force at now. Sessions and commands that wait
// are not touched but for the rates that they get.
func (g *Gate) Apply(p *Policy, now int64) {
	g.policy, g.on = p, !p.Empty()
	for q := range g.flows.all() {
		old := q.clients
		g.bind(q, now)
		g.release(old, false, now)
	}
	g.dropLeavers(now)
	for _, s := range g.servers {
		if s == nil {
			continue
		}
		for _, p := range s.clients {
			p.engine.Configure(g.engineConfig(p.entity, s))
			p.grantAnew(now, g.end, g.config.Period)
		}
		s.dispatcher.RefreshAll(now)
	}
}

// bind gives a queue the entities that the policy says.
func (g *Gate) bind(q *Queue, now int64) {
	config := QueueConfig{}
	q.clients, q.ruled = nil, false
	reserved := false
	for _, found := range g.policy.Resolve(q.flow) {
		if found.Key == "" || found.Level == NexusLevel && found.Rule == nil {
			continue
		}
		e := g.entity(found, now)
		p := g.client(e, q.server, now)
		p.root, reserved = !reserved, reserved || e.reservation > 0
		q.clients = append(q.clients, p)
		if e.Level == InitiatorLevel {
			q.usage = &e.usage
		}
		config.take(p)
		q.ruled = q.ruled || e.Rule != nil
	}
	config.Tagged = config.Tagged && g.policy.network.Tags()
	if c, asked := q.tag.Class(); asked && config.Tagged {
		config.Class = c
	}
	g.count(q, -1)
	q.server.dispatcher.Configure(q, config, now)
	q.promised = reserved || q.class == Urgent
	g.count(q, 1)
}

// count counts a queue among those that may go before others.
func (g *Gate) count(q *Queue, n int) {
	if q.class == Urgent {
		g.urgent += n
	}
	if q.promised {
		g.promised += n
	}
}

// take adds what an entity means for its queues: the innermost rule's weight,
// class and whether commands may name another, all engines, the initiator's first, and all limits.
func (c *QueueConfig) take(p *client) {
	e := p.entity
	if e.Rule != nil {
		c.Weight, c.Class, c.Tagged = e.Rule.Weight, e.Rule.Class, e.Rule.GroupNumber
	}
	c.Limits = append(c.Limits, e.limits...)
	switch {
	case e.Level == InitiatorLevel:
		c.Engines = append([]*haechi.Engine{p.engine}, c.Engines...)
	case e.reservation > 0:
		c.Engines = append(c.Engines, p.engine)
	}
}

// entity finds or makes an entity, counts its use and brings it in line with
// the policy. Where other threads may have it, too, it has little of its limits
// until the coordinator divides them.
func (g *Gate) entity(found Entity, now int64) *entity {
	e := g.byKey[found.Key]
	if e == nil {
		e = &entity{Entity: found, share: g.safeShare()}
		g.byKey[found.Key] = e
		g.entities = append(g.entities, e)
		e.apply(g.policy, found.Rule, now)
	} else if e.Rule != found.Rule {
		e.apply(g.policy, found.Rule, now)
	}
	if e.queues == 0 {
		e.setShare(min(e.share, g.safeShare()), now)
	}
	e.queues++
	return e
}

// safeShare is an entity's part of its limits on a thread that it has just come
// to.
func (g *Gate) safeShare() int64 {
	if g.config.Threads > 1 || g.config.Nodes {
		return whole / 16
	}
	return whole
}

// release gives clients back. Those that no queue uses go, and so do entities that owe nothing; those
// with a reservation linger until the period's end: who comes anew has no more of it than is left.
func (g *Gate) release(clients []*client, linger bool, now int64) {
	for _, p := range clients {
		p.queues--
		p.entity.queues--
		switch {
		case p.queues > 0:
		case linger && p.entity.reservation > 0 && g.leavers < maxLeavers:
			g.leavers++
		default:
			g.drop(p)
		}
	}
	g.forget(now)
}

// maxLeavers bounds how many clients linger.
const maxLeavers = 1024

// drop removes a client that no queue uses.
func (g *Gate) drop(p *client) {
	p.server.device.Pool.Settle(p.engine)
	p.server.clients = slices.DeleteFunc(p.server.clients, func(x *client) bool { return x == p })
	p.entity.clients--
}

// dropLeavers removes the clients that linger.
func (g *Gate) dropLeavers(now int64) {
	if g.leavers == 0 {
		return
	}
	for _, s := range g.servers {
		if s == nil {
			continue
		}
		for _, p := range slices.Clone(s.clients) {
			if p.queues == 0 {
				g.drop(p)
			}
		}
	}
	g.leavers = 0
	g.forget(now)
}

// maxIndebted bounds how many entities are kept because they owe something to
// their limits.
const maxIndebted = 1024

// forget drops entities that no queue uses, once their limits would be as if
// they had not been there: nobody gets more by coming anew. Of too many, the
// oldest go.
func (g *Gate) forget(now int64) {
	indebted := 0
	for i := len(g.entities) - 1; i >= 0; i-- {
		e := g.entities[i]
		if e.clients > 0 {
			continue
		}
		if e.inDebt(now) && indebted < maxIndebted {
			indebted++
			continue
		}
		delete(g.byKey, e.Key)
		g.entities = slices.Delete(g.entities, i, i+1)
	}
}

// Report fills a report for the coordinator and starts the next interval.
func (g *Gate) Report(r *GateReport, now int64) {
	r.Thread, r.Done, r.Servers = g.thread, g.done, r.Servers[:0]
	for _, s := range g.servers {
		if s != nil {
			s.report(r.next(), now)
		}
	}
	g.removeServers()
	g.forget(now)
}

// Grant puts a grant of the coordinator into force at now. What it does not
// name stays as it is.
func (g *Gate) Grant(grant *GateGrant, now int64) {
	g.end = grant.End
	for _, share := range grant.Shares {
		if e := g.byKey[share.Entity]; e != nil {
			e.setShare(share.Share, now)
		}
	}
	for i := range grant.Servers {
		g.grant(&grant.Servers[i], grant, now)
	}
	if grant.Period {
		g.dropLeavers(now)
	}
	for _, s := range g.servers {
		if s != nil {
			s.dispatcher.RefreshAll(now)
		}
	}
}

// grant puts the part of one device into force.
func (g *Gate) grant(granted *ServerGrant, grant *GateGrant, now int64) {
	at := slices.IndexFunc(g.servers, func(s *server) bool { return s != nil && s.device == granted.Device })
	if at < 0 {
		return
	}
	s := g.servers[at]
	s.batch = batchOf(granted.Capacity)
	s.window = g.windowOf(granted.Window)
	entities := granted.Entities
	for _, p := range s.clients { // both in order of numbers
		for len(entities) > 0 && entities[0].Number < p.number { // it has gone since
			entities = entities[1:]
		}
		if len(entities) > 0 && entities[0].Number == p.number {
			p.engine.Configure(g.engineConfig(p.entity, s))
			p.grant(now, entities[0].Reserved, grant.End, grant.Period)
		}
	}
}
