package numa

import (
	"fmt"
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
	if m.numa {
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
func newPostmark(seed uint64, volume, files int64, numa bool) (*postmark, error) {
	const scale, block, capacity = 128, 512 << 10, 720_000_000_000
	t, err := newPartitioned(cache.Layout{BlockSize: block, Neighbours: 4, Partitions: 32 * nodes, Nodes: nodes}, capacity/scale/block)
	if err != nil {
		return nil, err
	}
	fileSize := max(volume/files/postmarkIO, 1) * postmarkIO
	h := newHost(seed)
	return &postmark{
		host: h, target: t, numa: numa, disk: kernel.NewStation(&h.kernel), choice: kernel.NewRand(seed, choice), head: -1,
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
	for _, c := range []struct {
		volume, files int64
		paper         string
	}{
		{500e9, 1000, "0.705"}, {500e9, 10000, "0.653"}, {500e9, 100000, "0.624"},
		{1000e9, 1000, "0.704"}, {1000e9, 10000, "0.662"}, {1000e9, 100000, "0.564"},
	} {
		var ns [2]float64
		var hits float64
		for i, numa := range []bool{false, true} {
			m, err := newPostmark(env.Seed, c.volume, c.files, numa)
			if err != nil {
				return err
			}
			m.run(warm)
			ns[i], hits = m.run(count)
		}
		what := fmt.Sprintf("%d GB, %d files, %.0f %% hits, NUMA/page", c.volume/1e9, c.files, hits*100)
		result.Within(what, c.paper, ns[1]/ns[0], 0.55, 0.75)
	}
	return nil
}
