package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"lunar/scripts/evidence/canary"
)

// outcome is what came of an attack. Ratios are medians over the phases; times are
// milliseconds.
type outcome struct {
	Phases      int
	P99Alone    float64
	P99         float64 // with the attack
	Longest     float64 // command with the attack, of all phases
	RateAlone   float64 // the canary's commands per second
	Latency     float64 // P99 with the attack to alone
	Throughput  float64 // rate with the attack to alone
	Miscompares int
	Lost        int // sessions of the canary's
	Figures     figures
	Failed      []string `json:",omitempty"` // what does not hold
	Seen        []string `json:",omitempty"` // the first things that the canary noticed
	CPUSeconds  float64  // of the server and the attacker
	BusySeconds float64  `json:",omitempty"` // of these beside other work, where the clock does not judge
	Fuzzed      string   `json:",omitempty"` // what was fuzzed last, and when
	Version     string
	Date        string

	seeds map[string]uint64 // inputs of fuzzing, by signature
}

// What must hold for a canary, and for the log.
const (
	mostLatency     = 3.0
	leastThroughput = 0.8
	mostLogged      = 64 << 10 // bytes per second; fuzzers come from more addresses than an attacker has
)

// siege is one attack on a server of its own.
type siege struct {
	attack
	phases  int
	seconds float64 // of a phase
	minutes float64 // of all phases with fuzzing
	settle  time.Duration
	timed   bool
	*site
	canary *canary.Canary
	idle   float64 // resident memory before the first attack
	outcome
	watched canary.Phases
	counted []figures
}

// settleTime is how long an attack goes on before it is watched.
const settleTime = 700 * time.Millisecond

// besiege runs an attack in dir.
func (r *runCommand) besiege(a attack, dir string) (outcome, error) {
	g := &siege{attack: a, phases: r.Phases, seconds: r.Seconds, minutes: r.Minutes, settle: r.settle, timed: r.timed, outcome: outcome{Figures: figures{}, seeds: map[string]uint64{}}}
	var err error
	g.site, err = newSite(r.Tgtd, dir, a.change)
	if a.change != nil && errors.Is(err, errRefused) {
		g.Seen = []string{err.Error()}
		g.judge()
		return g.outcome, nil
	}
	if err != nil {
		return outcome{}, err
	}
	g.site.scene.Seed = r.Seed
	if a.local {
		f, err := g.command(r.ctx, func() {})
		g.counted = append(g.counted, f)
		err = errors.Join(err, g.end())
		return g.outcome, err
	}
	g.canary = g.site.scene.newCanary(g.timed)
	if err := g.canary.Dial(r.ctx); err != nil {
		return outcome{}, err
	}
	before, err := g.holding()
	if err != nil {
		return outcome{}, err
	}
	for i := 0; i < g.phases || g.waits() && i < g.phases+mostMore; i++ {
		if err := g.phase(r.ctx); err != nil && !g.dead() {
			g.Process.Kill()
			return outcome{}, fmt.Errorf("%w\n%s", err, tail(g.Output.String()))
		}
		if i+1 >= g.phases {
			g.seconds, g.minutes = 2*g.seconds, 2*g.minutes
		}
	}
	if a.fuzzes && !g.dead() {
		g.counted = append(g.counted, figures{leftOver: g.leftSince(r.ctx, before)})
	}
	err = g.end()
	return g.outcome, err
}

// mostMore is how many phases there may be besides, each twice as long as that before.
const mostMore = 7

// waits reports whether something that a run without a clock judges has not happened yet.
func (g *siege) waits() bool {
	return !g.timed && !g.dead() && slices.ContainsFunc(g.bounds, func(b bound) bool {
		return b.least > 0 && !b.timed && !slices.ContainsFunc(g.counted, func(f figures) bool { return f[b.figure]+f[b.per] > 0 })
	})
}

// leftSince is what the server holds more than before, when it has had the time to let
// go of it.
func (g *siege) leftSince(ctx context.Context, before holding) (more float64) {
	for range 40 {
		now, err := g.holding()
		// Some goroutines and descriptors are those of who asks, and of runtimes.
		more = max(0, now.Sessions-before.Sessions) + max(0, now.Descriptors-before.Descriptors-4) + max(0, now.Goroutines-before.Goroutines-8)
		if err == nil && more == 0 || !pause(ctx, time.Second) {
			return more
		}
	}
	return more
}

// tail is the end of what a server said.
func tail(said string) string { return said[max(0, len(said)-4096):] }

// phase watches the canary alone, and then with the attack.
func (g *siege) phase(ctx context.Context) error {
	d := time.Duration(g.seconds * float64(time.Second))
	alone, err := g.canary.Live(ctx, d, nil)
	if err != nil {
		return err
	}
	said, begin := g.Output.Len(), time.Now()
	if g.idle == 0 {
		g.idle = g.memory()
	}
	attacking, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	var counted figures
	go func() {
		var err error
		counted, err = g.command(attacking, stop)
		ended <- err
	}()
	pause(attacking, g.settle)
	more := 0.0
	if g.fuzzes {
		d = time.Duration(g.minutes * float64(time.Minute) / float64(g.phases))
	}
	with, err := g.canary.Live(ctx, d, func() {
		more = g.memory() - g.idle
		stop()
	})
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		return err
	}
	if counted == nil {
		counted = figures{}
	}
	counted[logged] = float64(g.Output.Len()-said) / time.Since(begin).Seconds()
	counted[grown] = math.Round(more / (1 << 20))
	g.site.scene.Seed++
	g.watched.Add(alone, with)
	g.counted = append(g.counted, counted)
	return nil
}

// spare is a command that runs the attacker on a CPU: with what the canary leaves of it
// (SCHED_IDLE), so that it takes nothing from the canary, whose thread preempts it at once.
func (a *attack) spare(cpu int) []string {
	if a.floods {
		return canary.Pinned(cpu)
	}
	return append(canary.Pinned(cpu), "chrt", "-i", "0")
}

// command runs the attack in a process of its own until ctx ends.
func (g *siege) command(ctx context.Context, failed func()) (figures, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	_, cpu := canary.CPUs()
	line := append(g.spare(cpu), self, "attack", g.name)
	c := exec.Command(line[0], line[1:]...)
	scene, err := json.Marshal(g.site.scene)
	if err != nil {
		return nil, err
	}
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Start(); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() {
		in.Close()
		time.AfterFunc(answerTime, func() { c.Process.Kill() })
	})()
	if _, err := in.Write(append(scene, '\n')); err != nil {
		return nil, err
	}
	err = c.Wait()
	g.CPUSeconds += c.ProcessState.UserTime().Seconds() + c.ProcessState.SystemTime().Seconds()
	if err != nil {
		failed()
		return nil, fmt.Errorf("attack %s: %w: %s", g.name, err, said.String())
	}
	var a account
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		return nil, err
	}
	for signature, seed := range a.Seeds {
		g.seeds[signature] = seed
	}
	return a.Figures, nil
}

// account is what an attacker says at the end.
type account struct {
	Figures figures
	Seeds   map[string]uint64 // of fuzzing
}

// attackCommand is what command runs.
type attackCommand struct {
	Name string `arg:""`
}

// Run attacks until the input ends.
func (k *attackCommand) Run() error {
	all := append(everything(), storm)
	at := slices.IndexFunc(all, func(a attack) bool { return a.name == k.Name })
	if at < 0 {
		return fmt.Errorf("no attack is called %q", k.Name)
	}
	a, s := all[at], &scene{}
	lines := json.NewDecoder(os.Stdin)
	if err := lines.Decode(s); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	if a.local {
		stop()
	} else {
		go func() {
			_, _ = io.Copy(io.Discard, io.MultiReader(lines.Buffered(), os.Stdin))
			stop()
		}()
	}
	begin := time.Now()
	f, err := a.run(ctx, s)
	if err != nil && ctx.Err() == nil {
		return err
	}
	for name := range f {
		if strings.HasSuffix(name, "/s") {
			f[name] = math.Round(f[name] / time.Since(begin).Seconds())
		}
	}
	return json.NewEncoder(os.Stdout).Encode(account{f, s.Found})
}

// end stops the server and sums up.
func (g *siege) end() error {
	if g.canary != nil {
		g.canary.Leave() // or the server asks it to, and waits
	}
	g.Failed = append(g.Failed, g.stop()...)
	g.CPUSeconds = math.Round(g.CPUSeconds + g.used.Seconds())
	names := map[string]bool{}
	for _, f := range g.counted {
		for name := range f {
			names[name] = true
		}
	}
	for name := range names {
		if g.Figures[name] = hundredths(canary.Median(g.counted, func(f figures) float64 { return f[name] })); g.fuzzes {
			g.Figures[name] = sum(g.counted, name)
		}
	}
	if g.canary != nil {
		g.Figures[endedOf] = float64(g.canary.Ended)
		g.sumUp()
	}
	g.judge()
	return nil
}

// sumUp takes the medians of what the canary saw.
func (g *siege) sumUp() {
	w := &g.watched
	g.outcome.Phases, g.Longest = len(w.With), canary.Milliseconds(w.Longest())
	g.P99Alone, g.P99 = hundredths(canary.Median(w.Alone, canary.P99)), hundredths(canary.Median(w.With, canary.P99))
	g.RateAlone = math.Round(canary.Median(w.Alone, canary.Rate))
	g.Latency, g.Throughput = hundredths(w.Ratio(canary.P99)), hundredths(w.Ratio(canary.Rate))
	g.Miscompares, g.Lost = len(g.canary.Wrong), len(g.canary.Losses)
	g.Seen = append(g.Seen, g.canary.Wrong[:min(2, len(g.canary.Wrong))]...)
	if g.canary.Bad != "" {
		g.Seen = append(g.Seen, g.canary.Bad)
	}
	g.Seen = append(g.Seen, g.canary.Losses[:min(2, len(g.canary.Losses))]...)
}

// judge says what does not hold.
func (g *siege) judge() {
	for signature, seed := range g.seeds {
		if strings.Contains(signature, crashed) {
			g.Failed = append(g.Failed, fmt.Sprintf("seed %d: %s", seed, signature))
		}
	}
	for _, b := range g.bounds {
		if (g.timed || !b.timed) && !b.holds(g.Figures) {
			g.Failed = append(g.Failed, fmt.Sprintf("%s: %g", b.figure, g.Figures[b.figure]))
		}
	}
	if g.canary == nil {
		return
	}
	if g.timed && g.Latency > mostLatency {
		g.Failed = append(g.Failed, fmt.Sprintf("p99 is %.1f times as long", g.Latency))
	}
	if g.timed && g.Throughput < leastThroughput {
		g.Failed = append(g.Failed, fmt.Sprintf("throughput is %.0f %%", 100*g.Throughput))
	}
	if g.timed && !g.fuzzes && g.Figures[logged] > mostLogged {
		g.Failed = append(g.Failed, fmt.Sprintf("%s: %.0f", logged, g.Figures[logged]))
	}
	if g.Miscompares > 0 {
		g.Failed = append(g.Failed, fmt.Sprintf("%d miscompares", g.Miscompares))
	}
	if g.Lost > 0 {
		g.Failed = append(g.Failed, fmt.Sprintf("the canary lost %d sessions or logins", g.Lost))
	}
}
