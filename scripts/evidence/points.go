package main

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"lunar/scripts/evidence/daemon"

	"golang.org/x/sys/unix"
)

// point is where a process was killed: before an instruction, which the call had
// executed so many times. For a copy, that is its progress.
type point struct {
	rip   uint64
	times int
}

// place is a function that the process can be killed in, and in what it calls.
type place struct {
	function
	duringStart bool
	steps       int // instructions of its longest call so far; 0: not called yet
	rounds      int // kills in it
	vain        int // rounds in which it was not called
}

// Functions that change, or decide about, what outlives the process, and those that run
// before there is any of it.
var (
	kept   = regexp.MustCompile(`^lunar/(cache|cache/[a-z/]+|internal/memcopy|internal/intent|backstore/protect)\.`)
	before = regexp.MustCompile(`\.(init|tried)(\.|$)`)
	// counted are those in which a kill counts as a point: not where the runtime does what
	// has nothing to do with data.
	counted = regexp.MustCompile(`^(lunar/|runtime\.mem(move|clr)|hash/crc32\.)`)
)

// campaign kills servers at distinct points until it has as many as it wants.
type campaign struct {
	binary  string
	symbols symbols
	want    int

	interrupted func() bool // what there is has to do

	mu     sync.Mutex
	random *rand.Rand
	places []*place
	seen   map[point]bool
	ran    map[uint64]bool // instructions that were stepped over
	killed map[uint64]int  // kills at an instruction
	rounds int
	wrong  []string
	broken int // rounds after which something was wrong
}

// aim is what a round wants: a function, and how many instructions to let go by.
type aim struct {
	*place
	skip int
}

// pointsConfig is small, so that blocks are replaced and flushed all the time.
const pointsConfig = `
server: {threads: 1, buffers-per-thread: 4MiB, poll: "off", nop: {interval: 0s}, limits: {memory-per-session: 2MiB}}
portal-groups: {local: {listen: ["127.0.0.1:0"]}}
cache: {size: 16MiB, block-size: 64KiB, huge: off, segment: DIR/segment, dirty-limit: 1MiB}
volumes:
  plain: {type: file, path: plain.img, size: 3MiB, write: back, cache: {flush-age: 100ms, max: 2MiB}}
  protected: {type: file, path: protected.img, size: 1MiB, write: back, protection: 1, cache: {flush-age: 1s}}
targets:
  iqn.2026-11.example.lunar:evidence: {luns: [{lun: 0, volume: plain}, {lun: 1, volume: protected}]}
`

const targetName = "iqn.2026-11.example.lunar:evidence"

func pointsUnits() []*unit {
	return []*unit{
		{lun: 0, name: "plain", lasting: true, ledger: newLedger(0, 3<<20/blockSize)},
		{lun: 1, name: "protected", lasting: true, ledger: newLedger(1, 1<<20/blockSize)},
	}
}

func newCampaign(binary string, want int, seed uint64, interrupted func() bool) (*campaign, error) {
	s, err := readSymbols(binary)
	if err != nil {
		return nil, err
	}
	return &campaign{
		binary: binary, symbols: s, want: want, interrupted: interrupted, random: rand.New(rand.NewPCG(seed, 1)),
		seen: map[point]bool{}, ran: map[uint64]bool{}, killed: map[uint64]int{},
	}, nil
}

// run works with so many servers at a time, below dir, which is in memory.
func (c *campaign) run(dir string, servers int) error {
	if err := c.discover(filepath.Join(dir, "discover")); err != nil {
		return err
	}
	var group sync.WaitGroup
	errs := make([]error, servers)
	for i := range servers {
		group.Go(func() {
			runtime.LockOSThread() // which the processes belong to
			defer runtime.UnlockOSThread()
			errs[i] = c.work(filepath.Join(dir, fmt.Sprint(i)), uint64(i))
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// victim is a server that is killed again and again.
type victim struct {
	*campaign
	*daemon.Server
	units  []*unit
	random *rand.Rand
	last   string // where it was killed
	tracer *tracer
	ready  atomic.Bool // the load has begun
}

func (c *campaign) victim(dir string, seed uint64) (*victim, error) {
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	s, err := daemon.New(c.binary, dir, pointsConfig)
	return &victim{campaign: c, Server: s, units: pointsUnits(), random: rand.New(rand.NewPCG(seed, 2))}, err
}

// discover finds out which functions are called, while the server starts and under load.
func (c *campaign) discover(dir string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	v, err := c.victim(dir, 0)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var addresses []uint64
	for _, f := range c.symbols.matching(kept) {
		if !before.MatchString(f.name) {
			addresses = append(addresses, f.start)
		}
	}
	save := func() error { return v.tracer.save(addresses...) }
	plant := func() error { return v.tracer.plant(addresses...) }
	early := func() error { return errors.Join(save(), plant()) }
	for range 2 { // a fresh segment, and one that was left behind
		if _, err := v.round(early, 0, nil, v.note); err != nil {
			return err
		}
	}
	_, err = v.round(save, 500, plant, v.note)
	return err
}

// note makes a function that was called a place.
func (v *victim) note(_ int, at uint64) error {
	f, _ := v.symbols.at(at)
	if !slices.ContainsFunc(v.places, func(p *place) bool { return p.start == at && p.duringStart == !v.ready.Load() }) {
		v.places = append(v.places, &place{function: f, duringStart: !v.ready.Load()})
	}
	return nil
}

// work kills a server until the campaign has enough.
func (c *campaign) work(dir string, seed uint64) error {
	v, err := c.victim(dir, seed+1)
	defer os.RemoveAll(dir)
	for err == nil && !c.enough() {
		a := c.aim()
		plant := func() error { return v.tracer.plant(a.start) }
		early, late := func() error { return v.tracer.save(a.start) }, plant
		if a.duringStart {
			early, late = func() error { return errors.Join(v.tracer.save(a.start), plant()) }, nil
		}
		var hit *point
		wrong, e := v.round(early, 20+v.random.IntN(200), late, func(thread int, at uint64) (err error) {
			if hit == nil {
				hit, err = v.killAt(thread, a)
			}
			if hit == nil && err == nil {
				err = plant()
			}
			return err
		})
		for i := range wrong {
			wrong[i] = v.last + ": " + wrong[i]
		}
		c.record(a, hit, wrong)
		v.last = c.describe(a, hit)
		if err = e; len(wrong) > 0 && err == nil {
			v, err = c.victim(dir, v.random.Uint64())
		}
	}
	return err
}

// round starts the server, compares what it serves with the ledger, and works until
// it is killed, after so many further commands at the latest. It returns what was
// wrong. early is called before the first instruction, late under load.
func (v *victim) round(early func() error, commands int, late func() error, reached func(int, uint64) error) (wrong []string, err error) {
	if err := v.Launch(true); err != nil {
		return nil, err
	}
	defer v.Process.Release()
	if v.tracer, err = seize(v.Process.Pid); err != nil {
		return nil, err
	}
	if err := early(); err != nil {
		return nil, err
	}
	v.ready.Store(false)
	done := make(chan struct{})
	go func() {
		defer close(done)
		wrong = v.use(commands, late)
		unix.Kill(v.Process.Pid, unix.SIGKILL)
	}()
	err = v.tracer.follow(reached)
	unix.Kill(v.Process.Pid, unix.SIGKILL)
	<-done
	return wrong, err
}

// use is the initiator's part of a round.
func (v *victim) use(commands int, late func() error) (wrong []string) {
	portal, err := v.Server.Ready()
	if err != nil {
		if v.shot() {
			return nil
		}
		return []string{err.Error()}
	}
	l, err := dial(portal, targetName, v.units, v.random)
	if err != nil {
		return v.complain(nil, err)
	}
	defer l.conn.Close()
	v.ready.Store(true)
	broken, err := l.survey()
	if err != nil || len(broken) > 0 {
		return v.complain(broken, err)
	}
	until := commands
	more := func() bool { return l.ended < until }
	err = l.run(more)
	if err == nil && late != nil {
		until += 300
		err = errors.Join(late(), l.run(more))
	}
	return v.complain(nil, err)
}

// complain leaves out what follows from the kill.
func (v *victim) complain(wrong []error, err error) (lines []string) {
	if err != nil && (errors.Is(err, errWrong) || !v.shot()) {
		wrong = append(wrong, fmt.Errorf("%w\n%s", err, v.Output.String()))
	}
	for _, w := range wrong {
		lines = append(lines, w.Error())
	}
	return lines
}

// shot reports whether the process was killed, rather than ended by itself: then it
// has said why.
func (v *victim) shot() bool {
	_, ok := <-v.Portal // closed when it has ended
	return !ok && !regexp.MustCompile(`(?m)^(tgtd: |panic|fatal error|unexpected fault)`).MatchString(v.Output.String())
}

// killAt steps through the call that a thread stands before, and kills the process at
// a point where none was killed yet. nil: the call has ended before.
func (v *victim) killAt(thread int, a *aim) (*point, error) {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(thread, &r); err != nil {
		return nil, err
	}
	entry, times := r.Rsp, map[uint64]int{}
	for n := 0; n < mostSteps; n++ {
		p := point{r.Rip, times[r.Rip]}
		times[r.Rip]++
		if n >= a.skip && v.take(p) {
			return &p, unix.Kill(v.tracer.pid, unix.SIGKILL)
		}
		alive, err := v.tracer.step(thread)
		if err != nil || !alive {
			return nil, err
		}
		if err := unix.PtraceGetRegs(thread, &r); err != nil {
			return nil, err
		}
		if r.Rsp > entry && r.Rsp < entry+64<<10 { // it has returned
			v.learn(a, n, times)
			return nil, nil
		}
	}
	v.learn(a, mostSteps, times)
	return nil, nil
}

// mostSteps bounds how long a call is followed.
const mostSteps = 1 << 13

// take says whether a point is new, and counts it.
func (c *campaign) take(p point) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f, _ := c.symbols.at(p.rip); c.seen[p] || !counted.MatchString(f.name) {
		return false
	}
	c.seen[p], c.ran[p.rip] = true, true
	c.killed[p.rip]++
	return true
}

// learn notes how long a call is, and aims into it the next time.
func (c *campaign) learn(a *aim, steps int, times map[uint64]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.steps = max(a.steps, steps)
	a.skip = c.random.IntN(max(steps, 1))
	for rip := range times {
		c.ran[rip] = true
	}
}

// aim chooses where the next kill is to be: one of four while the server starts, one in
// any function under load, and two in the longest calls under load, which copy.
func (c *campaign) aim() *aim {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rounds++
	starting := c.rounds%4 == 0
	candidates := slices.DeleteFunc(slices.Clone(c.places), func(p *place) bool {
		return p.duringStart != starting || p.vain > 3 && p.vain > p.rounds
	})
	if c.rounds%2 == 1 {
		slices.SortFunc(candidates, func(a, b *place) int { return cmp.Compare(b.steps, a.steps) })
		candidates = candidates[:min(len(candidates), longest)]
	}
	p := slices.MinFunc(candidates, func(a, b *place) int { return cmp.Compare(a.rounds+a.vain, b.rounds+b.vain) })
	if p.steps == 0 {
		return &aim{p, mostSteps} // to learn how long it is
	}
	return &aim{p, c.random.IntN(p.steps)}
}

// longest is how many functions count as those with long calls.
const longest = 32

// record counts a round. What is wrong is that of the kill before it.
func (c *campaign) record(a *aim, hit *point, wrong []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if hit == nil {
		a.vain++
	} else {
		a.rounds++
	}
	if len(wrong) > 0 {
		c.broken++
		c.wrong = append(c.wrong, wrong...)
	}
}

func (c *campaign) enough() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen) >= c.want || c.interrupted()
}

// describe names a point.
func (c *campaign) describe(a *aim, p *point) string {
	if p == nil {
		return "killed at random"
	}
	f, _ := c.symbols.at(p.rip)
	return fmt.Sprintf("killed in %s before %s+%#x, executed %d times", a.name, f.name, p.rip-f.start, p.times)
}

// covered is how often, and where, processes were killed in a function.
type covered struct {
	name                 string
	kills, killedAt, ran int
}

// coverage is that of all functions in which one was killed, by name.
func (c *campaign) coverage() []covered {
	byStart := map[uint64]*covered{}
	count := func(rip uint64, add func(*covered)) {
		f, _ := c.symbols.at(rip)
		if byStart[f.start] == nil {
			byStart[f.start] = &covered{name: f.name}
		}
		add(byStart[f.start])
	}
	for rip, n := range c.killed {
		count(rip, func(f *covered) { f.kills, f.killedAt = f.kills+n, f.killedAt+1 })
	}
	for rip := range c.ran {
		count(rip, func(f *covered) { f.ran++ })
	}
	var all []covered
	for _, f := range byStart {
		if f.kills > 0 {
			all = append(all, *f)
		}
	}
	slices.SortFunc(all, func(a, b covered) int { return cmp.Or(cmp.Compare(b.kills, a.kills), cmp.Compare(a.name, b.name)) })
	return all
}

// table is coverage for readers.
func (c *campaign) table() string {
	var text strings.Builder
	text.WriteString("| function | kill points | instructions killed at | instructions seen |\n|---|--:|--:|--:|\n")
	for _, f := range c.coverage() {
		fmt.Fprintf(&text, "| `%s` | %d | %d | %d |\n", f.name, f.kills, f.killedAt, f.ran)
	}
	return text.String()
}
