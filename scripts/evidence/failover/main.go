// Command failover has three servers on this host serve one volume of a Ceph cluster of this
// host, moves the volume, kills, stops and cuts off its owner under a checked load, and writes
// docs/reports/failover.md.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"lunar/scripts/evidence/generations"
	"lunar/scripts/evidence/notes"
	"lunar/scripts/evidence/site"
)

type options struct {
	site.Options
	Module  string        `help:"Directory of the server's module, whose model test and chaos test are run for longer." default:"."`
	Notes   string        `default:"docs/reports/failover/results.json" help:"Results, by check."`
	To      string        `default:"docs/reports/failover.md" help:"The document."`
	Only    []string      `help:"Some of the checks."`
	Moves   int           `default:"20" help:"Planned moves."`
	Kills   int           `default:"20" help:"Owners that are killed."`
	Stops   int           `default:"10" help:"Owners that are stopped and go on."`
	Stuck   int           `default:"10" help:"Owners that are killed or stopped while an OSD stands still."`
	Leaders int           `default:"50" help:"Leaders of etcd that are killed."`
	Outage  time.Duration `default:"10m" help:"For which etcd has no quorum."`
	Others  int           `default:"3" help:"Of everything else."`
	Users   int           `default:"32" help:"Commands under way."`
	Pause   time.Duration `default:"10ms" help:"Of a user between two commands: without it, the load alone fills the CPUs that three servers, etcd and Ceph share."`
}

//go:embed failover.md.tmpl
var page string

func main() {
	if err := site.Apart(); err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
	var o options
	line := kong.Parse(&o, kong.Name("failover"), kong.Description("Measure what hosts see of the failures of a cluster of servers."))
	s := &scene{options: &o}
	err := notes.Measure(notes.Report{Tgtd: o.Tgtd(), Notes: o.Notes, To: o.To, Page: page, Only: o.Only}, s, s.checks())
	line.FatalIfErrorf(errors.Join(err, s.end()))
}

// part is a row of the table.
type part struct {
	name, what    string
	rounds        int
	target        time.Duration // of the worst gap; 0: none
	rest          time.Duration // before a round
	before, after time.Duration // of load in a round, beside what happens
	round         func(*site.Site) error
}

func lasting(what func(*site.Site, time.Duration) error, d time.Duration) func(*site.Site) error {
	return func(s *site.Site) error { return what(s, d) }
}

func (s *scene) parts() []part {
	const short, half, second = 200 * time.Millisecond, time.Second / 2, time.Second
	all := []part{
		{"nothing", "nothing", 1, 0, 0, 5 * second, 0, func(*site.Site) error { return nil }},
		{"around", "reads and writes over paths to other nodes than the owner alone, for 10 s", min(1, s.Others), 0, 0, 0, 0, s.around},
		{"move", "planned move", s.Moves, short, 0, half, half, (*site.Site).Move},
		{"kill", "`kill -9` of the owner", s.Kills, 2 * second, 0, half, 0, lasting((*site.Site).Kill, 2*second)},
		{"stop", "SIGSTOP of the owner for 5 s", s.Stops, 6 * second, 0, second, 0, lasting((*site.Site).Stop, 5*second)},
		{"stuck", "the OSD stopped for 3.8 s; the owner killed or stopped, in turns, 0.3 s after that", s.Stuck, 0, 0, half, half, s.stuck},
		{"restart", "SIGTERM of the owner, which starts again", s.Others, short, 0, second, 0, (*site.Site).Restart},
		{"quorum", "two of three members of etcd stopped for 10 s", s.Others, short, 0, second, 0, lasting((*site.Site).NoQuorum, 10*second)},
		{"monitor", "the monitor stopped for 5 s", s.Others, short, 0, second, 0, lasting((*site.Site).NoMonitor, 5*second)},
		{"monitor-kill", "the monitor stopped for 5 s, the owner killed then", s.Others, 7 * second, 0, second, 0, lasting((*site.Site).KillWithoutMonitor, 5*second)},
	}
	if s.Cached {
		all = append(all, part{"outage", fmt.Sprintf("two of three members of etcd stopped for %v", s.Outage), min(1, s.Others), short, 0, second, 0, s.outage})
	}
	if s.Etcd == "embedded" {
		all = append(all, part{"leader", "`kill -9` of the etcd that leads", s.Leaders, short / 2, 0, half, half, lasting((*site.Site).KillLeader, 2*second)})
	}
	if !site.Separate() || s.Etcd == "external" { // it takes root to cut a server off, and etcd beside it
		return all
	}
	return append(all,
		part{"etcd-cut", "the owner cut off from etcd alone for 10 s", s.Others, short, 0, second, 0, lasting((*site.Site).CutFromEtcd, 10*second)},
		part{"ceph-cut", "the owner cut off from Ceph alone for 15 s, a minute after it got the volume", s.Others, 8 * second, time.Minute, second, 0, lasting((*site.Site).CutFromCeph, 15*second)}, // no volume moves so twice in half a minute
		part{"silence", "nobody reaches the owner's host for 20 s, as without power", s.Others, 6 * second, 0, second, 0, lasting((*site.Site).Silence, 20*second)},
		part{"hosts-cut", "the owner cut off from hosts alone for 10 s", s.Others, 0, 0, second, 0, lasting((*site.Site).CutFromHosts, 10*second)},
	)
}

// longer are tests of `make test` that go on for longer here.
var longer = []struct{ name, what, dir, test, flag string }{
	{"model", "The machine that decides who owns a volume, on three nodes in time of its own: the state, the links and Ceph are cut off, deaf, without a quorum or silent; nodes are killed and stopped", "./cluster/ownership", "TestModel", "-ownership.steps=1000000"},
	{"chaos", "Three nodes in one process over a Ceph of the process and the cache, with a ledger", "./cluster/node", "TestChaos", "-chaos.rounds=100"},
}

// scene is what all parts happen on: it begins with the first of them.
type scene struct {
	*options
	site   *site.Site
	load   *load
	found  []notes.Fact // that a part has found out besides
	caught struct{ rounds, counted, writes int }
}

func (s *scene) checks() (all []notes.Check[*scene]) {
	for _, p := range s.parts() {
		all = append(all, notes.Check[*scene]{Name: p.name, Title: p.what, Run: func(context.Context, *scene) (notes.Result, error) { return s.part(&p) }})
	}
	all = append(all, notes.Check[*scene]{Name: "relayed", Title: "the owner's path and another one", Run: func(context.Context, *scene) (notes.Result, error) { return s.relayed() }})
	all = append(all, notes.Check[*scene]{Name: "suite", Title: "libiscsi's suite, dealt over the nodes", Run: func(context.Context, *scene) (notes.Result, error) { return s.suite() }})
	for _, l := range longer {
		all = append(all, notes.Check[*scene]{Name: l.name, Title: l.what, Run: func(ctx context.Context, _ *scene) (notes.Result, error) {
			did, err := s.test(ctx, l.dir, l.test, l.flag)
			return notes.Result{How: fmt.Sprintf("`%s %s`.", l.test, l.flag), Facts: []notes.Fact{notes.Found("what was done how often", did, true)}}, err
		}})
	}
	return all
}

// test runs a test, and returns what it says of itself.
func (o *options) test(ctx context.Context, dir, test, flag string) (did string, err error) {
	cmd := exec.CommandContext(ctx, "go", "test", dir, "-run", test+"$", "-count=1", "-v", "-timeout=20m", flag)
	cmd.Dir = o.Module
	said, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, said)
	}
	for line := range strings.Lines(string(said)) {
		if _, counts, found := strings.Cut(line, "_test.go:"); found {
			_, counts, _ = strings.Cut(counts, ": ")
			did = strings.TrimSpace(counts)
		}
	}
	return did, nil
}

// begin has the servers and the load run, if they do not.
func (s *scene) begin() (err error) {
	if s.load != nil {
		return nil
	}
	if s.site, err = site.New(s.Options, volumeBytes); err != nil {
		return err
	}
	s.load = newLoad(s.site, s.Users, s.Pause)
	s.load.start()
	return nil
}

func (s *scene) end() error {
	if s.load != nil {
		s.load.end()
	}
	if s.site != nil {
		s.site.End()
	}
	return nil
}

var columns = []string{"what happens", "rounds", "gap, median", "worst", "to reach", "writes", "reads", "paths changed"}

// part measures the longest time without an answered command in each round.
func (s *scene) part(p *part) (r notes.Result, err error) {
	if err := s.begin(); err != nil {
		return r, err
	}
	var gaps []time.Duration
	s.found = nil
	before := s.load.count()
	for i := range p.rounds {
		time.Sleep(p.rest)
		s.load.gap.Begin()
		time.Sleep(p.before)
		if err := p.round(s.site); err != nil {
			return r, fmt.Errorf("round %d: %w\n%s", i, err, s.site.Logs())
		}
		time.Sleep(p.after)
		gap, err := s.load.gap.Longest(), s.load.failed()
		if err != nil {
			return r, fmt.Errorf("round %d: %w\n%s", i, err, s.site.Logs())
		}
		gaps = append(gaps, gap)
		fmt.Fprintf(os.Stderr, "%s %d: gap %v\n", p.name, i, gap.Round(time.Millisecond))
	}
	if p.rounds == 0 {
		gaps = []time.Duration{0}
	}
	n := s.load.count().since(before)
	r.How, r.Columns = s.how(), columns
	r.Rows = [][]string{{p.what, fmt.Sprint(p.rounds), seconds(generations.Median(gaps)), seconds(slices.Max(gaps)), target(p.target), fmt.Sprint(n.writes), fmt.Sprint(n.reads), fmt.Sprint(n.failovers)}}
	r.Facts = []notes.Fact{notes.Found("writes lost, reads that were stale, commands that failed", fmt.Sprintf("%d, %d, %d of %d reads", n.lost, n.stale, n.failed, n.reads+n.sticky), n.lost+n.stale+n.failed == 0)}
	r.Facts = append(r.Facts, s.found...)
	return r, nil
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

func target(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// how says what has run.
func (o *options) how() string {
	ceph, _ := exec.Command("ceph", "--version").Output() // it has run before
	cache, network := "without a cache", "loopback"
	if o.Cached {
		cache = "with a read cache"
	}
	if site.Separate() {
		network = "network namespaces"
	}
	return fmt.Sprintf("%s, etcd %s, %s, a volume %s, %d users that pause for %v.", strings.Join(strings.Fields(string(ceph) + " - -")[:3], " "), o.Etcd, network, cache, o.Users, o.Pause)
}
