package scheduler

import "slices"

// Open adds a queue for a flow at now. A flow that is open already gets
// another queue with the same entities, as sessions of one initiator do.
func (g *Gate) Open(f Flow, now int64) *Queue {
	q := g.dispatcher.Add(QueueConfig{})
	q.flow = f
	g.flows = append(g.flows, q)
	g.bind(q, now)
	return q
}

// Close removes a queue, whose commands have all ended or been cancelled.
func (g *Gate) Close(q *Queue, now int64) {
	g.flows = slices.DeleteFunc(g.flows, func(x *Queue) bool { return x == q })
	g.dispatcher.Remove(q, now)
	g.release(q.entities)
}

// Apply puts another policy into force at now. Sessions and commands that wait
// are not touched but for the rates that they get.
func (g *Gate) Apply(p *Policy, now int64) {
	g.policy, g.on = p, !p.Empty()
	for _, q := range g.flows {
		old := q.entities
		g.bind(q, now)
		g.release(old)
	}
	for _, e := range g.entities {
		e.grantAnew(now, g.end, g.config.Period)
	}
	g.dispatcher.RefreshAll(now)
}

// grantAnew gives the engine what its rule reserves for the rest of the
// period, until the coordinator divides it by demand.
func (e *entity) grantAnew(now, end, period int64) {
	left := end - now
	if left <= 0 {
		left, end = period, now+period
	}
	e.engine.Grant(now, mulDiv(mulDiv(e.reservation, left, 1e9), e.share, whole), end)
}

// bind gives a queue the entities that the policy says.
func (g *Gate) bind(q *Queue, now int64) {
	config := QueueConfig{}
	q.entities = q.entities[:0:0]
	reserved := false
	for _, found := range g.policy.Resolve(q.flow) {
		if found.Key == "" || found.Level == NexusLevel && found.Rule == nil {
			continue
		}
		e := g.entity(found, now)
		e.root, reserved = !reserved, reserved || e.reservation > 0
		q.entities = append(q.entities, e)
		config.take(e)
	}
	g.dispatcher.Configure(q, config, now)
}

// take adds what an entity means for its queues: the innermost rule's weight
// and class, all engines, the initiator's first, and all limits.
func (c *QueueConfig) take(e *entity) {
	if e.Rule != nil {
		c.Weight, c.Class = e.Rule.Weight, e.Rule.Class
	}
	c.Limits = append(c.Limits, e.limits...)
	switch {
	case e.Level == InitiatorLevel:
		c.Engines = append([]*Engine{e.engine}, c.Engines...)
	case e.reservation > 0:
		c.Engines = append(c.Engines, e.engine)
	}
}

// entity finds or makes an entity, counts its use and brings it in line with
// the policy.
func (g *Gate) entity(found Entity, now int64) *entity {
	e := g.byKey[found.Key]
	if e == nil {
		g.made++
		e = &entity{Entity: found, number: g.made, engine: NewEngine(g.engine), share: whole}
		g.byKey[found.Key] = e
		g.entities = append(g.entities, e)
		e.apply(g.policy, found.Rule, g.engine, now)
		e.grantAnew(now, g.end, g.config.Period)
	} else if e.Rule != found.Rule {
		e.apply(g.policy, found.Rule, g.engine, now)
	}
	e.queues++
	return e
}

// release gives entities back; those that no queue uses go.
func (g *Gate) release(entities []*entity) {
	for _, e := range entities {
		if e.queues--; e.queues == 0 {
			delete(g.byKey, e.Key)
			g.entities = slices.DeleteFunc(g.entities, func(x *entity) bool { return x == e })
		}
	}
}

// Report fills a report for the coordinator and starts the next interval.
func (g *Gate) Report(r *GateReport) {
	r.Thread, r.Backlogged, r.Done, r.Entities = g.thread, g.saturated, g.done, r.Entities[:0]
	g.saturated = !g.room() && g.dispatcher.waiting > 0
	for _, e := range g.entities {
		r.Entities = append(r.Entities, e.report())
	}
}

func (e *entity) report() EntityReport {
	engine := e.engine
	offered, served := engine.Totals()
	return EntityReport{
		Entity: e.Key, Number: e.number, Level: e.Level, Rule: e.rule, Root: e.root, Reservation: e.reservation, Limit: e.ceiling,
		Residual: max(0, engine.Residual()), Yielded: e.yielded(),
		Offered: offered, Served: served, Hits: engine.Hits(),
		Queued: engine.Pending(), Backlogged: engine.TakeBacklogged(),
	}
}

// Grant puts a grant of the coordinator into force at now. Entities that it
// does not name keep what they have.
func (g *Gate) Grant(grant *GateGrant, now int64) {
	g.end = grant.End
	for i := range grant.Entities {
		eg := &grant.Entities[i]
		e := g.byKey[eg.Entity]
		if e == nil {
			continue
		}
		if grant.Period {
			e.beginPeriod(now, eg.Reserved)
		}
		e.engine.Grant(now, eg.Reserved, grant.End)
		e.setShare(eg.Share)
	}
	g.dispatcher.RefreshAll(now)
}
