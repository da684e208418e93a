package numa

import (
	"fmt"
	"math"
	"math/rand/v2"

	"lunar/cache"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

// The disk of table 5.3: 600 MB/s in sequence, 15 MB/s with 128 KiB at a time in
// random order. How often something else moves the head is fitted, so that the
// table's rows with misses can only show that larger commands are better.
const (
	diskBW     = 0.6 // bytes per ns
	readahead  = 128 << 10
	seek       = readahead/0.015 - readahead/diskBW // ns
	disturbed  = 0.03                               // share of commands before which the head was moved; fitted
	postmarkIO = 512 << 10
	inFlight   = 16
)

// postmark is one reader that goes through whole files in random order, with
// several requests in flight.
type postmark struct {
	*host
	target   *partitioned
	numa     bool
	whole    bool // what is missing is read with one command
	disk     *kernel.Station
	choice   *rand.Rand // of files: the same whatever else is drawn
	head     int64      // where the disk stands
	fileSize int64
	files    int64
	at, end  int64 // in the file that is being read
	left     int   // requests to start
	missed   int
}

// next starts the next request.
func (m *postmark) next() {
	if m.left == 0 {
		return
	}
	m.left--
	if m.at == m.end {
		m.at = m.choice.Int64N(m.files) * m.fileSize
		m.end = m.at + m.fileSize
	}
	off := m.at
	m.at += postmarkIO
	s := m.target.serve(0, off, postmarkIO, m.r.IntN(nodes))
	send := func() { m.send(s.node, s.local, postmarkIO-s.local, m.next) }
	if !m.numa {
		node := m.r.IntN(nodes)
		send = func() { m.pageCache(node, postmarkIO, m.next) }
	}
	if len(s.missed) == 0 {
		m.kernel.After(int64(overhead(s)), kernel.Completion, send)
		return
	}
	m.missed++
	m.load(off, send)
}

// load reads from the disk: one command with O_DIRECT, several by the page
// cache's readahead.
func (m *postmark) load(off int64, done func()) {
	command := int64(readahead)
	if m.whole {
		command = postmarkIO
	}
	for end := off + postmarkIO; off < end; off += command {
		ns := float64(command) / diskBW
		if m.head != off || m.r.Float64() < disturbed {
			ns += seek
		}
		m.head = off + command
		last := off+command == end
		m.disk.Serve(int64(ns), func() {
			if last {
				done()
			}
		})
	}
}

// run returns the time per request in ns, and the hit ratio.
func (m *postmark) run(requests int) (perRequest, hits float64) {
	m.left, m.missed = requests, 0
	start := m.kernel.Now()
	for range inFlight {
		m.next()
	}
	m.kernel.Drain()
	return float64(m.kernel.Now()-start) / float64(requests), 1 - float64(m.missed)/float64(requests)
}

// newPostmark makes a run with everything but the file size scaled down.
func newPostmark(env *experiment.Env, volume, files int64, numa bool) (*postmark, error) {
	const scale, block, capacity = 128, 512 << 10, 720_000_000_000
	t, err := newPartitioned(env, cache.Layout{BlockSize: block, Neighbours: 4, Partitions: 32 * nodes, Nodes: nodes}, capacity/scale/block)
	if err != nil {
		return nil, err
	}
	fileSize := max(volume/files/postmarkIO, 1) * postmarkIO
	h := newHost(env.Seed)
	return &postmark{
		host: h, target: t, numa: numa, whole: numa && env.Decides(wholeBlocks), disk: kernel.NewStation(&h.kernel), choice: kernel.NewRand(env.Seed, choice), head: -1,
		fileSize: fileSize, files: volume / scale / fileSize,
	}, nil
}

// runPostmarks is table 5.3: PostMark on a data set that fits, and on one that
// does not.
func runPostmarks(env *experiment.Env, result *experiment.Result) error {
	const warm = 40_000
	count := 30_000
	if env.Reduced {
		count /= 3
	}
	var ratios []float64
	for i, c := range postmarkRows {
		var ns [2]float64
		var hits float64
		for i, numa := range []bool{false, true} {
			m, err := newPostmark(env, c.volume, c.files, numa)
			if err != nil {
				return err
			}
			m.run(warm)
			ns[i], hits = m.run(count)
		}
		ratio := ns[1] / ns[0]
		ratios = append(ratios, ratio)
		what := fmt.Sprintf("%d GB, %d files, NUMA/page", c.volume/1e9, c.files)
		result.Note(fmt.Sprintf("%d GB, %d files, hits in %%", c.volume/1e9, c.files), map[bool]string{true: "75"}[c.volume > 720e9], experiment.Num(hits*100), "")
		result.Paper(routing)
		if c.volume > 720e9 {
			result.Paper(wholeBlocks)
		}
		result.Within(what+", a gain", experiment.Num(c.paper), ratio, 0.5, 0.8)
		result.Claim(what, experiment.Num(c.paper), "±10 %", experiment.Num(ratio), math.Abs(ratio/c.paper-1) <= 0.1,
			"the model has no cost of a file: what PostMark does between reads")
		if i%3 == 2 {
			result.Claim(fmt.Sprintf("%d GB, the ratio falls with the number of files", c.volume/1e9), "yes", "falls",
				fmt.Sprintf("%.3f, %.3f, %.3f", ratios[i-2], ratios[i-1], ratios[i]), ratios[i-2] > ratios[i-1] && ratios[i-1] > ratios[i],
				"the reverse here: smaller files have more hits with 1 TB, and where all is cached their number does not matter")
		}
	}
	return nil
}

// postmarkRows are the rows of table 5.3.
var postmarkRows = []struct {
	volume, files int64
	paper         float64 // NUMA's run time to the page cache's
}{
	{500e9, 1000, 0.705}, {500e9, 10000, 0.653}, {500e9, 100000, 0.624},
	{1000e9, 1000, 0.704}, {1000e9, 10000, 0.662}, {1000e9, 100000, 0.564},
}
