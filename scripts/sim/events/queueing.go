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

// markov has the service times that M/M/1 has at a rate, a post for each response in them.
func markov(rate float64) func(*rand.Rand) costs {
	return func(r *rand.Rand) costs {
		return costs{func() int64 { return int64(r.ExpFloat64() * 1e9 / rate) }, func() int64 { return 0 }}
	}
}

// Table 5.2: what is served of every 24K offered, in K. The page cache can do 116K at
// best, and less when more than that is offered: its row is its rate by load.
var (
	servedNUMA = [...]float64{24, 48, 72, 96, 120, 144, 159, 160, 162}
	servedPage = [...]float64{24, 48, 72, 96, 116, 109, 89, 97, 104}
)

const bestPage = 116e3

// runOffered is table 5.2 and figure 5-14.
func runOffered(env *experiment.Env, r *experiment.Result) error {
	ns := int64(10e9)
	if env.Reduced {
		ns = 2e9
	}
	delay, model := experiment.Series{Name: "simulated"}, experiment.Series{Name: "20 us + 1/(μ-λ)"}
	rates := [2]experiment.Series{{Name: "partitioned"}, {Name: "page cache"}}
	for i, served := range servedNUMA {
		rate := float64(24e3 * (i + 1))
		l, err := offered(env, rate, markov(possible), each, ns)
		if err != nil {
			return err
		}
		what, got := fmt.Sprintf("%.0fK offered", rate/1e3), float64(l.served)/float64(ns)*1e6
		r.Model()
		r.Near(what+", partitioned, K", experiment.Num(served), got, served, 0.03)
		if rate <= 0.9*possible {
			expected := alone + 1e6/(possible-rate)
			r.Near(what+", delay in us, as M/M/1", "", alone+l.stay(), expected, 0.15)
			delay.Points = append(delay.Points, experiment.Point{X: rate / 1e3, Y: alone + l.stay()})
			model.Points = append(model.Points, experiment.Point{X: rate / 1e3, Y: expected})
		}
		able := bestPage
		if rate > bestPage {
			able = servedPage[i] * 1e3
		}
		page, err := offered(env, rate, markov(able), each, ns)
		if err != nil {
			return err
		}
		r.Wiring()
		pageGot := float64(page.served) / float64(ns) * 1e6
		r.Near(what+", page cache, K", experiment.Num(servedPage[i]), pageGot, servedPage[i], 0.03)
		for k, v := range []float64{got, pageGot} {
			rates[k].Points = append(rates[k].Points, experiment.Point{X: rate / 1e3, Y: v})
		}
	}
	r.Figures = []experiment.Figure{
		{Name: "events-5-14", Title: "Delay of a loop by load", X: "thousands offered a second", Y: "us", Series: []experiment.Series{delay, model}},
		{Name: "events-t5.2", Title: "What is served by what is offered", X: "thousands offered a second", Y: "thousands served", Series: rates[:]},
	}
	return nil
}

// runPosts is figure 5-15. That the responses of a pass leave together is the server's way
// too, but it is a model here.
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
		r.Model()
		r.Require(what+", responses per post", "rises", fmt.Sprintf(">%.3f", max(before, 1)), experiment.Num(together.perPost()), together.perPost() > max(before, 1))
		before = together.perPost()
		if rate > 120e3 {
			ratio := together.stay() / single.stay()
			r.Require(what+", delay/that with a post each", "falls", "<0.95", experiment.Num(ratio), ratio < 0.95)
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

// Digests: how many threads compute them, and for each size of data what a digest takes
// and what handing it over costs the loop each way, in ns. The first row is what this
// server needs for 4 KiB; the second stands for digests that are as slow as the thesis's
// gain would need them to be.
const pool = 4

var digests = []struct {
	name             string
	digest, handOver int64
	measured         bool
}{
	{"4 KiB as here: digests of 0.4 us, handed over in 2.3 us each way", 400, 2300, true},
	{"digests of 10 us, handed over in 0.5 us each way", 10_000, 500, false},
}

// runIntegrity computes digests in the loop, then beside it.
func runIntegrity(env *experiment.Env, r *experiment.Result) error {
	for _, d := range digests {
		inside, beside := integrity(env, d.digest, d.handOver)
		r.Model()
		r.Note(d.name+": in the loop and beside it, K", "", experiment.Num(inside/1e3)+", "+experiment.Num(beside/1e3), "")
		gain := (beside/inside - 1) * 100
		if d.measured {
			r.Claim(d.name+": gain in %", "140", "≥100", experiment.Num(gain), gain >= 100,
				"a loss: handing a digest over costs the loop more than the digest, so that the server computes it where the data are")
		} else {
			r.Note(d.name+": gain in %", "140", experiment.Num(gain), "times that nobody has measured")
		}
	}
	return nil
}

// integrity returns requests per second with digests in the loop and beside it.
func integrity(env *experiment.Env, digest, handOver int64) (inside, beside float64) {
	const n = 64
	ns := int64(500e6)
	if env.Reduced {
		ns /= 5
	}
	rnd := kernel.NewRand(env.Seed, elsewhere)
	rest := func() int64 { return spread(rnd, cycle-event) }

	var in kernel.Kernel
	loop := kernel.NewStation(&in)
	inside = clients(&in, n, func(_ int, done func()) { loop.Serve(event+digest, done) }, rest, ns)

	var out kernel.Kernel
	loop = kernel.NewStation(&out)
	threads := make([]*kernel.Station, pool)
	for i := range threads {
		threads[i] = kernel.NewStation(&out)
	}
	turn := 0
	beside = clients(&out, n, func(_ int, done func()) {
		loop.Serve(event/2+handOver, func() {
			turn++
			threads[turn%pool].Serve(digest, func() { loop.Serve(event/2+handOver, done) })
		})
	}, rest, ns)
	return inside, beside
}
