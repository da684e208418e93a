// Command failover has three servers on this host serve one volume of a Ceph cluster of this
// host, moves the volume, kills and stops its owner under a checked load, and writes a page.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

type options struct {
	Lab    string        `required:"" help:"cluster.sh, which starts and ends the Ceph cluster."`
	Bin    string        `required:"" help:"Directory of tgtd (built with -tags rbd), lunar and lunar-etcd."`
	Module string        `help:"Directory of the server's module, whose model test and chaos test are run for longer; empty: they are not."`
	Etcd   string        `enum:"embedded,external" default:"embedded" help:"embedded: members that keepers run, who end the leases of servers that die; external: etcd alone."`
	Moves  int           `default:"20" help:"Planned moves."`
	Kills  int           `default:"20" help:"Owners that are killed."`
	Stops  int           `default:"10" help:"Owners that are stopped and go on."`
	Others int           `default:"3" help:"Restarts, and losses of etcd and of the monitor, each."`
	Users  int           `default:"32" help:"Commands under way."`
	Pause  time.Duration `default:"10ms" help:"Of a user between two commands: without it, the load alone fills the CPUs that three servers, etcd and Ceph share."`
	Only   string        `help:"Parts whose names have this."`
	Keep   bool          `help:"Leave the directory and its logs."`
	Cached bool          `negatable:"" default:"true" help:"The volume has a cache."`
}

func main() {
	var o options
	kong.Parse(&o)
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "failover:", err)
		os.Exit(1)
	}
}

func (o *options) run() error {
	s, err := newSite(o)
	if err != nil {
		return err
	}
	defer s.end()
	l, err := newLoad(s, o.Users)
	if err != nil {
		return err
	}
	o.head(s)
	l.start()
	failed := o.parts(s, l)
	l.end()
	if failed != nil {
		return fmt.Errorf("%w\n%s", failed, s.logs())
	}
	if err := o.foot(l); err != nil || o.Module == "" {
		return err
	}
	return o.longer()
}

// longer are tests of `make test` that go on for longer here.
var longer = []struct{ what, dir, test, flag string }{
	{"The machine that decides who owns a volume, on three nodes in time of its own: the state is cut off, deaf, without a quorum; Ceph does not answer; nodes are killed and stopped", "./cluster/ownership", "TestModel", "-ownership.steps=1000000"},
	{"Three nodes in one process over a Ceph of the process and the cache, with a ledger", "./cluster/node", "TestChaos", "-chaos.rounds=100"},
}

func (o *options) longer() error {
	fmt.Print("\n## Model and chaos\n\n")
	for _, l := range longer {
		cmd := exec.Command("go", "test", l.dir, "-run", l.test, "-count=1", "-v", "-timeout=20m", l.flag)
		cmd.Dir = o.Module
		said, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", l.test, err, said)
		}
		for line := range strings.Lines(string(said)) {
			if _, counts, found := strings.Cut(line, "_test.go:"); found {
				_, counts, _ = strings.Cut(counts, ": ")
				fmt.Printf("%s (`%s %s`): passed. What was done how often: %s\n\n", l.what, l.test, l.flag, strings.TrimSpace(counts))
			}
		}
	}
	return nil
}

// part is a row of the table.
type part struct {
	name   string
	rounds int
	target time.Duration // of the worst gap; 0: none
	round  func(*site, *load) error
}

func (o *options) parts(s *site, l *load) error {
	for _, p := range []part{
		{"nothing", 1, 0, func(*site, *load) error { time.Sleep(5 * time.Second); return nil }},
		{"planned move", o.Moves, 200 * time.Millisecond, (*site).move},
		{"`kill -9` of the owner", o.Kills, 2 * time.Second, (*site).kill},
		{"SIGSTOP of the owner for 5 s", o.Stops, 6 * time.Second, (*site).stop},
		{"SIGTERM of the owner, which starts again", o.Others, 200 * time.Millisecond, (*site).restart},
		{"two of three members of etcd stopped for 10 s", o.Others, 200 * time.Millisecond, (*site).noQuorum},
		{"the monitor stopped for 5 s", o.Others, 200 * time.Millisecond, (*site).noMonitor},
		{"the monitor stopped for 5 s, the owner killed then", o.Others, 7 * time.Second, (*site).killWithoutMonitor},
	} {
		if p.rounds == 0 || !strings.Contains(p.name, o.Only) {
			continue
		}
		if err := o.part(s, l, &p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

// part measures the longest time without an answered command in each round.
func (o *options) part(s *site, l *load, p *part) error {
	var gaps []time.Duration
	before := l.count()
	for i := range p.rounds {
		l.beginRound()
		if err := p.round(s, l); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		gap, err := l.endRound()
		if err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		gaps = append(gaps, gap)
		fmt.Fprintf(os.Stderr, "%s %d: gap %v\n", p.name, i, gap.Round(time.Millisecond))
	}
	after := l.count()
	fmt.Printf("| %s | %d | %.3f s | %.3f s | %s | %d | %d | %d |\n", p.name, p.rounds, median(gaps).Seconds(), worst(gaps).Seconds(), target(p.target),
		after.writes-before.writes, after.reads-before.reads, after.failovers-before.failovers)
	return nil
}

func target(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

func (o *options) head(s *site) {
	ceph, _ := exec.Command("ceph", "--version").Output() // it has run before
	cache := "without a cache"
	if o.Cached {
		cache = "with a read cache"
	}
	fmt.Printf(`# Failover

Written by `+"`make evidence-failover`"+`, with %s and %s, three servers, three members of etcd, one monitor and one OSD (memstore) on one machine with %d CPUs. A volume %s; %d users, each with one command of 4 KiB under way or pausing for %v, a third of them writes, over three paths of which it uses another one when a connection ends, does not answer for 1 s or says that it is in standby. Three more readers stay on one path each. A ledger compares each read with what was acknowledged when it was sent. The gap is the longest time in a round in which no command of the users ended well. All share two CPUs and the monitor has a short paxos interval, which flatters fencing; the initiator is the project's own.

| what happens | rounds | gap, median | worst | to reach | writes | reads | paths changed |
|---|--:|--:|--:|--:|--:|--:|--:|
`, strings.Join(strings.Fields(string(ceph) + " - -")[:3], " "), s.version, runtime.NumCPU(), cache, o.Users, o.Pause)
}

func (o *options) foot(l *load) error {
	n := l.count()
	load, _ := os.ReadFile("/proc/loadavg") // then it is not told
	fmt.Printf("\nAcknowledged writes that were lost: %d. Reads older than what was acknowledged: %d, of %d reads, %d of them by the readers that stay on their path. Commands that failed for good: %d. The machine's load average was %s at the end.\n", n.lost, n.stale, n.reads+n.sticky, n.sticky, n.failed, strings.Split(string(load)+" ", " ")[0])
	if n.lost+n.stale+n.failed > 0 {
		return fmt.Errorf("%d writes lost, %d stale reads, %d commands failed", n.lost, n.stale, n.failed)
	}
	return nil
}
