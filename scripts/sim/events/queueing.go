package events

import (
	"fmt"
	"math/rand/v2"

	"lunar/scheduler/batch"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// Table 5.2: what one loop can serve a second, and the delay without a queue.
const (
	possible = 162e3
	alone    = 20.0 // us
)

// offered sends requests of a Poisson process to a loop for ns.
func offered(env *experiment.Env, rate float64, cost func(*rand.Rand) costs, c batch.Config, ns int64) (*loop, error) {
	var k kernel.Kernel
	log := experiment.NewLog(env.Log)
	l := newLoop(&k, 0, cost(kernel.NewRand(env.Seed, service)), c, log)
	arrivals := kernel.NewRand(env.Seed, arrival)
	came := int64(0)
	var arrive func()
	arrive = func() {
		came++
		l.accept(func() {})
		k.After(int64(arrivals.ExpFloat64()*1e9/rate), kernel.Arrival, arrive)
	}
	k.After(0, kernel.Arrival, arrive)
	k.Run(ns)
	if held := int64(l.inbox.len() + l.ready.len()); came != l.served+held {
		return nil, fmt.Errorf("%d requests came, %d are served and %d wait", came, l.served, held)
	}
	return l, log.Flush()
}

// markov has service times as M/M/1 has, a post for each response in them.
func markov(r *rand.Rand) costs {
	return costs{func() int64 { return int64(r.ExpFloat64() * 1e9 / possible) }, func() int64 { return 0 }}
}

// runOffered is table 5.2 and figure 5-14.
func runOffered(env *experiment.Env, r *experiment.Result) error {
	ns := int64(10e9)
	if env.Reduced {
		ns = 2e9
	}
	page := []int{24, 48, 72, 96, 116, 109, 89, 97, 104}
	delay, model := experiment.Series{Name: "simulated"}, experiment.Series{Name: "20 us + 1/(μ-λ)"}
	for i := range page {
		rate := float64(24e3 * (i + 1))
		l, err := offered(env, rate, markov, each, ns)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%.0fK offered", rate/1e3)
		want := min(rate, possible)
		r.Near(what+", K", fmt.Sprintf("%.0f (page cache %d)", want/1e3, page[i]), float64(l.served)/float64(ns)*1e6, want/1e3, 0.03)
		if rate <= 0.9*possible {
			expected := alone + 1e6/(possible-rate)
			r.Near(what+", delay in us", "M/M/1", alone+l.stay(), expected, 0.15)
			delay.Points = append(delay.Points, experiment.Point{X: rate / 1e3, Y: alone + l.stay()})
			model.Points = append(model.Points, experiment.Point{X: rate / 1e3, Y: expected})
		}
	}
	r.Figures = []experiment.Figure{{Name: "events-5-14", Title: "Delay of a loop by load", X: "thousands offered a second", Y: "us", Series: []experiment.Series{delay, model}}}
	return nil
}

// runPosts is figure 5-15.
func runPosts(env *experiment.Env, r *experiment.Result) error {
	ns := int64(10e9)
	if env.Reduced {
		ns = 1e9
	}
	// A third of what a request costs is its post.
	split := func(rnd *rand.Rand) costs {
		return costs{func() int64 { return int64(rnd.ExpFloat64() * 2 / 3 * 1e9 / possible) }, func() int64 { return postShare }}
	}
	perPost, delays, alones := experiment.Series{Name: "responses per post"}, experiment.Series{Name: "one post for all"}, experiment.Series{Name: "a post each"}
	before := 0.0
	for i := range 6 {
		rate := float64(24e3 * (i + 1))
		together, err := offered(env, rate, split, passes, ns)
		if err != nil {
			return err
		}
		single, err := offered(env, rate, split, each, ns)
		if err != nil {
			return err
		}
		what := fmt.Sprintf("%.0fK offered", rate/1e3)
		r.AtLeast(what+", responses per post", "rises", together.perPost(), before)
		before = together.perPost()
		if rate > 120e3 {
			r.AtMost(what+", delay/that with a post each", "falls", together.stay()/single.stay(), 1)
		} else {
			r.Note(what+", delay/that with a post each", "", experiment.Num(together.stay()/single.stay()), "")
		}
		for _, p := range []struct {
			s *experiment.Series
			y float64
		}{{&perPost, together.perPost()}, {&delays, alone + together.stay()}, {&alones, alone + single.stay()}} {
			p.s.Points = append(p.s.Points, experiment.Point{X: rate / 1e3, Y: p.y})
		}
	}
	r.Figures = []experiment.Figure{
		{Name: "events-5-15", Title: "Responses per post by load", X: "thousands offered a second", Y: "responses", Series: []experiment.Series{perPost}},
		{Name: "events-5-15-delay", Title: "Delay with and without", X: "thousands offered a second", Y: "us", Series: []experiment.Series{delays, alones}},
	}
	return nil
}

// Digests: what one takes, how many threads compute them, and what handing one over
// costs the loop each way. In ns.
const (
	digest   = 10_000
	pool     = 4
	handOver = 500
)

// runIntegrity computes digests in the loop, then beside it.
func runIntegrity(env *experiment.Env, r *experiment.Result) error {
	const n = 64
	ns := int64(500e6)
	if env.Reduced {
		ns /= 5
	}
	rnd := kernel.NewRand(env.Seed, elsewhere)
	rest := func() int64 { return spread(rnd, cycle-event) }

	var in kernel.Kernel
	loop := kernel.NewStation(&in)
	inside := clients(&in, n, func(_ int, done func()) { loop.Serve(event+digest, done) }, rest, ns)

	var out kernel.Kernel
	loop = kernel.NewStation(&out)
	threads := make([]*kernel.Station, pool)
	for i := range threads {
		threads[i] = kernel.NewStation(&out)
	}
	turn := 0
	beside := clients(&out, n, func(_ int, done func()) {
		loop.Serve(event/2+handOver, func() {
			turn++
			threads[turn%pool].Serve(digest, func() { loop.Serve(event/2+handOver, done) })
		})
	}, rest, ns)
	r.Note("in the loop and beside it, K", "", experiment.Num(inside/1e3)+", "+experiment.Num(beside/1e3), "")
	r.AtLeast("beside/in the loop", "2.4", beside/inside, 1.2)
	return nil
}
