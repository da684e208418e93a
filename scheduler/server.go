package scheduler

import (
	"lunar/internal/arith"
	"lunar/scheduler/haechi"
)

// server is a device as one event thread uses it: what pShift calls a server. It
// has its own queues, order and window, so that nobody waits for a device that
// is slower than the one that it wants.
type server struct {
	dispatcher     *Dispatcher
	window         int // dispatched commands that may be under way; 0 is no bound
	inflight       int
	done           int64 // tokens that the device has served
	slot           int
	saturated      bool  // a command waited for the window since the last report
	throttled      bool  // the device has room, and all that waits is held by limits
	throttledFor   int64 // ns of that since the last report, but for
	throttledSince int64 // what has passed since then

	device  *Device
	number  int64 // of all that the gate has made
	batch   int64 // of global tokens
	queues  int
	clients []*client
}

// client is an entity on a server, in Haechi's word: its reservation tokens there,
// and its counts.
type client struct {
	entity      *entity
	server      *server
	engine      *haechi.Engine
	number      int64 // of all that the gate has made
	queues      int   // that use it
	root        bool  // no entity around it has a reservation
	yieldedPast int64 // before the engine's period
}

func (s *server) free() bool { return s.window == 0 || s.inflight < s.window }

// throttle notes that the device has room and nothing that waits may run.
func (s *server) throttle(now int64) {
	if !s.throttled && s.dispatcher.limited > 0 {
		s.throttled, s.throttledSince = true, now
	}
}

// unthrottle notes the end of that.
func (s *server) unthrottle(now int64) {
	if s.throttled {
		s.throttled = false
		s.throttledFor += now - s.throttledSince
	}
}

// report starts the next interval, too.
func (s *server) report(r *ServerReport, now int64) {
	if s.throttled {
		s.unthrottle(now)
		s.throttle(now)
	}
	r.Device, r.Number, r.Backlogged, r.Throttled, r.Done = s.device, s.number, s.saturated, s.throttledFor, s.done
	s.saturated, s.throttledFor = !s.free() && s.dispatcher.waiting > 0, 0
	for _, p := range s.clients {
		r.Entities = append(r.Entities, p.report())
	}
}

func (p *client) report() EntityReport {
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
func (p *client) yielded() int64 { return p.yieldedPast + p.engine.Yielded() }

// grantAnew gives the engine what its rule reserves for the rest of the period,
// as far as the thread has it, until the coordinator divides it by demand.
func (p *client) grantAnew(now, end, period int64) {
	left := end - now
	if left <= 0 {
		left, end = period, now+period
	}
	p.engine.Grant(now, arith.MulDiv(arith.MulDiv(p.entity.reservation, left, 1e9), p.entity.share, whole), end)
}

// grant puts R-tokens into force.
func (p *client) grant(now, tokens, end int64, period bool) {
	if period {
		p.yieldedPast += p.engine.Yielded()
		p.engine.BeginPeriod(now, tokens)
	}
	p.engine.Grant(now, tokens, end)
}

// server finds or makes the server of a device and counts its use.
func (g *Gate) server(d *Device) *server {
	free := len(g.servers)
	for i, s := range g.servers {
		if s == nil {
			free = min(free, i)
		} else if s.device == d {
			s.queues++
			return s
		}
	}
	g.made++
	s := &server{
		device: d, slot: free, number: g.made, window: g.config.Window, batch: batchOf(0), queues: 1,
		dispatcher: NewDispatcher(g.config.Arbitration, g.config.Mode, &d.Pool),
	}
	if free == len(g.servers) {
		g.servers = append(g.servers, nil)
		g.busy.grow(len(g.servers))
	}
	g.servers[free] = s
	return s
}

// removeServers forgets servers that nobody uses. They were reported a last time.
func (g *Gate) removeServers() {
	for i, s := range g.servers {
		if s != nil && s.queues == 0 && len(s.clients) == 0 {
			g.servers[i] = nil
		}
	}
}

// client finds or makes an entity's part in a server and counts its use.
func (g *Gate) client(e *entity, s *server, now int64) *client {
	for _, p := range s.clients {
		if p.entity != e {
			continue
		}
		if p.queues == 0 {
			g.leavers--
		}
		p.queues++
		return p
	}
	g.made++
	p := &client{entity: e, server: s, number: g.made, queues: 1, engine: haechi.NewEngine(g.engineConfig(e, s))}
	e.clients++
	p.grantAnew(now, g.end, g.config.Period)
	s.clients = append(s.clients, p)
	return p
}

// windowOf is what a device's window is, of which a part may be used; 0 is all.
func (g *Gate) windowOf(part int64) int {
	if part == 0 || g.config.Window == 0 {
		return g.config.Window
	}
	return max(1, int((int64(g.config.Window)*part+whole/2)/whole))
}

// batchOf is how many global tokens are fetched at once from a device of a
// capacity, in tokens per period: Haechi's 1000 of 1.57 million. More would let
// one initiator take for itself what many wait for; 0 is not known.
func batchOf(capacity int64) int64 { return min(max(capacity/1024, 1), 1000) }
