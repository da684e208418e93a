package events

import (
	"fmt"
	"math/rand/v2"

	"lunar/scheduler/batch"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// Times of figure 5-12, in ns, fitted to it: a client with one outstanding request
// has 25.5K/s; a loop that does nothing but events has 160K/s.
const (
	cycle     = 39_200
	event     = 6_250
	cores     = 32
	hyper     = 1.15  // what a core with two loops does more
	postShare = 2_050 // of event, the post
)

// clients simulates n clients with one outstanding request each for ns and returns
// requests per second. Loop i serves those that it is for; rest passes in between.
func clients(k *kernel.Kernel, n int, serve func(client int, done func()), rest func() int64, ns int64) float64 {
	count := 0
	var again func(client int)
	again = func(client int) {
		serve(client, func() {
			count++
			k.After(rest(), kernel.Arrival, func() { again(client) })
		})
	}
	for client := range n {
		k.After(0, kernel.Arrival, func() { again(client) })
	}
	k.Run(ns)
	return float64(count) / float64(ns) * 1e9
}

// central is figure 5-12 with one loop for all events; what follows them is done by
// others.
func central(n int, ns int64) float64 {
	var k kernel.Kernel
	s := kernel.NewStation(&k)
	return clients(&k, n, func(_ int, done func()) { s.Serve(event, done) }, func() int64 { return cycle - event }, ns)
}

// decentralised is figure 5-12 with a loop for each client's LU, which does all of a
// request; loops beyond the cores share them.
func decentralised(n int, ns int64) float64 {
	var k kernel.Kernel
	loops := make([]*kernel.Station, n)
	for i := range loops {
		loops[i] = kernel.NewStation(&k)
	}
	return clients(&k, n, func(client int, done func()) {
		cost := int64(cycle)
		if sharing := sharers(client, n); sharing > 1 {
			cost = int64(float64(cost*int64(sharing)) / hyper)
		}
		loops[client].Serve(cost, done)
	}, func() int64 { return 0 }, ns)
}

// sharers is how many of n loops are on the core of one.
func sharers(loop, n int) int { return (n - loop%cores + cores - 1) / cores }

// runClients is figure 5-12.
func runClients(env *experiment.Env, r *experiment.Result) error {
	ns := int64(1e9)
	if env.Reduced {
		ns /= 10
	}
	one, many := experiment.Series{Name: "one loop"}, experiment.Series{Name: "a loop for each LU"}
	top, linear := 0.0, 0.0
	single := decentralised(1, ns)
	for n := 1; n <= 64; n *= 2 {
		c, d := central(n, ns)/1e3, decentralised(n, ns)/1e3
		one.Points = append(one.Points, experiment.Point{X: float64(n), Y: c})
		many.Points = append(many.Points, experiment.Point{X: float64(n), Y: d})
		top = max(top, c)
		if n == 32 {
			linear = d * 1e3 / single / 32
		}
		r.Note(fmt.Sprintf("%d clients, K", n), "", fmt.Sprintf("%s → %s", experiment.Num(c), experiment.Num(d)), "")
	}
	last, before := many.Points[len(many.Points)-1].Y, many.Points[len(many.Points)-2].Y
	r.Wiring() // all times are fitted
	r.Within("one loop, at most, K", "160", top, 155, 165)
	r.Within("a loop for each LU, 64 clients, K", "940", last, 910, 970)
	r.Within("32 clients against 32 times one", "linear", linear, 0.9, 1.1)
	r.Near("64 clients against 32", "1.15", last/before, 1.15, 0.03)
	r.Figures = []experiment.Figure{{
		Name: "events-5-12", Title: "Requests of 512 B, all cached", X: "clients", Y: "thousands a second", LogX: true,
		Series: []experiment.Series{one, many},
	}}
	return nil
}

// scaled simulates LUs with so many connections each, over loops event threads with
// a core each; responses of a pass leave in one post for each loop.
type scaled struct {
	env              *experiment.Env
	lus, loops, each int
	config           batch.Config
}

// run returns requests per second of each loop.
func (s *scaled) run(ns int64) ([]float64, error) {
	var k kernel.Kernel
	log := experiment.NewLog(s.env.Log)
	loops := make([]*loop, s.loops)
	for i := range loops {
		loops[i] = newLoop(&k, i, fixed(event-postShare, postShare), s.config, log)
	}
	r := kernel.NewRand(s.env.Seed, elsewhere)
	away := 0
	n := s.lus * s.each
	clients(&k, n, func(client int, done func()) {
		loops[client%s.lus%s.loops].accept(func() { away++; done() })
	}, func() int64 { return spread(r, cycle-event) }, ns)
	rates := make([]float64, s.loops)
	held, served := 0, int64(0)
	for i, l := range loops {
		rates[i] = float64(l.served) / float64(ns) * 1e9
		held += l.inbox.len() + l.ready.len()
		served += l.served
	}
	if held > n || int64(away) != served {
		return nil, fmt.Errorf("%d connections have %d requests in loops; %d of %d responses arrived", n, held, away, served)
	}
	return rates, log.Flush()
}

// spread draws from 0.9 to 1.1 of a mean.
func spread(r *rand.Rand, mean int64) int64 { return int64(float64(mean) * (0.9 + 0.2*r.Float64())) }

// runScaling adds LUs with their loops and cores.
func runScaling(env *experiment.Env, r *experiment.Result) error {
	ns := int64(300e6)
	if env.Reduced {
		ns /= 10
	}
	figure := experiment.Figure{Name: "events-scaling", Title: "A loop for each LU", X: "connections to each LU", Y: "thousands a second and core", LogX: true}
	lines := map[int]*experiment.Series{}
	lus := []int{1, 2, 4, 8}
	for _, n := range lus {
		lines[n] = &experiment.Series{Name: fmt.Sprintf("%d LUs", n)}
	}
	for connections := 1; connections <= 64; connections *= 2 {
		low, high := 0.0, 0.0
		for _, n := range lus {
			rates, err := (&scaled{env, n, n, connections, passes}).run(ns)
			if err != nil {
				return err
			}
			for _, rate := range rates {
				if low == 0 || rate < low {
					low = rate
				}
				high = max(high, rate)
			}
			lines[n].Points = append(lines[n].Points, experiment.Point{X: float64(connections), Y: rates[0] / 1e3})
		}
		r.Model()
		r.Require(fmt.Sprintf("%d connections to each of 1, 2, 4, 8 LUs, K per core", connections), "linear", "within 10 %",
			fmt.Sprintf("%s..%s", experiment.Num(low/1e3), experiment.Num(high/1e3)), high <= 1.1*low)
	}
	for _, n := range lus {
		figure.Series = append(figure.Series, *lines[n])
	}
	r.Figures = append(r.Figures, figure)
	return oneLoop(env, r, ns)
}

// oneLoop has one loop for any number of LUs: it stays where it is.
func oneLoop(env *experiment.Env, r *experiment.Result, ns int64) error {
	var of [2]float64
	for i, n := range []int{1, 8} {
		rates, err := (&scaled{env, n, 1, 64, passes}).run(ns)
		if err != nil {
			return err
		}
		of[i] = rates[0]
	}
	r.Within("one loop for 8 LUs against one, 64 connections each", "capped", of[1]/of[0], 0.9, 1.1)
	return nil
}

// runBatching compares how the posts of one loop are gathered.
func runBatching(env *experiment.Env, r *experiment.Result) error {
	ns := int64(4e9)
	if env.Reduced {
		ns /= 4
	}
	lines := []experiment.Series{{Name: "a post each"}, {Name: "all that are ready"}, {Name: "adaptive"}}
	for connections := 1; connections <= 64; connections *= 2 {
		var of [3]float64
		for i, c := range []batch.Config{each, passes, adaptive} {
			rates, err := (&scaled{env, 1, 1, connections, c}).run(ns)
			if err != nil {
				return err
			}
			of[i] = rates[0] / 1e3
			lines[i].Points = append(lines[i].Points, experiment.Point{X: float64(connections), Y: of[i]})
		}
		what := fmt.Sprintf("%d connections, ", connections)
		r.Model()
		r.AtLeast(what+"adaptive/best", "", of[2]/max(of[0], of[1]), 0.95)
		r.Note(what+"a post each, all, adaptive, K", "", fmt.Sprintf("%s, %s, %s", experiment.Num(of[0]), experiment.Num(of[1]), experiment.Num(of[2])), "")
	}
	r.Figures = []experiment.Figure{{
		Name: "events-batching", Title: "One loop by what leaves together", X: "connections", Y: "thousands a second", LogX: true, Series: lines,
	}}
	return nil
}
