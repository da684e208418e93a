package scheduler

// site is a device as one event thread uses it: what pShift calls a server. It
// has its own queues, order and window, so that nobody waits for a device that
// is slower than the one that it wants.
type site struct {
	dispatcher *Dispatcher
	window     int // dispatched commands that may be under way; 0 is no bound
	inflight   int
	done       int64 // tokens that the device has served
	slot       int
	saturated  bool  // a command waited for the window since the last report
	holding    bool  // the device has room, and all that waits is held by limits
	holdingFor int64 // ns of that since the last report, but for
	holdingAt  int64 // what has passed since then

	device *Device
	number int64 // of all that the gate has made
	batch  int64 // of global tokens
	queues int
	stakes []*stake
}

// stake is an entity's part in a site: its reservation tokens there, and its
// counts.
type stake struct {
	entity      *entity
	site        *site
	engine      *Engine
	number      int64 // of all that the gate has made
	queues      int   // that use it
	root        bool  // no entity around it has a reservation
	yieldedPast int64 // before the engine's period
}

func (s *site) room() bool { return s.window == 0 || s.inflight < s.window }

// hold notes that the device has room and nothing that waits may run.
func (s *site) hold(now int64) {
	if !s.holding && s.dispatcher.limited > 0 {
		s.holding, s.holdingAt = true, now
	}
}

// unhold notes the end of that.
func (s *site) unhold(now int64) {
	if s.holding {
		s.holding = false
		s.holdingFor += now - s.holdingAt
	}
}

// report starts the next interval, too.
func (s *site) report(r *SiteReport, now int64) {
	if s.holding {
		s.unhold(now)
		s.hold(now)
	}
	r.Device, r.Number, r.Backlogged, r.Held, r.Done = s.device, s.number, s.saturated, s.holdingFor, s.done
	s.saturated, s.holdingFor = !s.room() && s.dispatcher.waiting > 0, 0
	for _, p := range s.stakes {
		r.Entities = append(r.Entities, p.report())
	}
}

func (p *stake) report() EntityReport {
	e, engine := p.entity, p.engine
	offered, served := engine.Totals()
	return EntityReport{
		Entity: e.Key, Number: p.number, Level: e.Level, Rule: e.rule, Root: p.root, Reservation: e.reservation, Limit: e.ceiling,
		Residual: max(0, engine.Residual()), Yielded: p.yielded(),
		Offered: offered, Served: served, Hits: engine.Hits(),
		Queued: engine.Pending(), Backlogged: engine.TakeBacklogged(),
	}
}

// yielded is the total of tokens given back.
func (p *stake) yielded() int64 { return p.yieldedPast + p.engine.Yielded() }

// grantAnew gives the engine what its rule reserves for the rest of the period,
// as far as the thread has it, until the coordinator divides it by demand.
func (p *stake) grantAnew(now, end, period int64) {
	left := end - now
	if left <= 0 {
		left, end = period, now+period
	}
	p.engine.Grant(now, mulDiv(mulDiv(p.entity.reservation, left, 1e9), p.entity.share, whole), end)
}

// grant puts R-tokens into force.
func (p *stake) grant(now, tokens, end int64, period bool) {
	if period {
		p.yieldedPast += p.engine.Yielded()
		p.engine.BeginPeriod(now, tokens)
	}
	p.engine.Grant(now, tokens, end)
}

// site finds or makes the site of a device and counts its use.
func (g *Gate) site(d *Device) *site {
	free := len(g.sites)
	for i, s := range g.sites {
		if s == nil {
			free = min(free, i)
		} else if s.device == d {
			s.queues++
			return s
		}
	}
	g.made++
	s := &site{
		device: d, slot: free, number: g.made, window: g.config.Window, batch: batchOf(0), queues: 1,
		dispatcher: NewDispatcher(g.config.Arbitration, g.config.Mode, &d.Pool),
	}
	if free == len(g.sites) {
		g.sites = append(g.sites, nil)
		g.busy.grow(len(g.sites))
	}
	g.sites[free] = s
	return s
}

// dropSites forgets sites that no queue uses. They were reported a last time.
func (g *Gate) dropSites() {
	for i, s := range g.sites {
		if s != nil && s.queues == 0 {
			g.sites[i] = nil
		}
	}
}

// stake finds or makes an entity's part in a site and counts its use.
func (g *Gate) stake(e *entity, s *site, now int64) *stake {
	for _, p := range s.stakes {
		if p.entity == e {
			p.queues++
			return p
		}
	}
	g.made++
	p := &stake{entity: e, site: s, number: g.made, queues: 1, engine: NewEngine(g.engineConfig(e, s))}
	p.grantAnew(now, g.end, g.config.Period)
	s.stakes = append(s.stakes, p)
	return p
}

// batchOf is how many global tokens are fetched at once from a device of a
// capacity, in tokens per period: Haechi's 1000 of 1.57 million. More would let
// one initiator take for itself what many wait for; 0 is not known.
func batchOf(capacity int64) int64 { return min(max(capacity/1024, 1), 1000) }
