package tyche

import (
	"fmt"
	"math"
	"math/rand/v2"

	"lunar/scheduler/batch"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/gather"
	"lunar/scripts/sim/kernel"
)

// Sizes of requests in bytes, and what a link of 1.2 GiB/s carries.
const (
	smallRequest = 4 << 10
	largeRequest = 128 << 10
	linkRequests = 314_600 // of 4 KiB, a second
)

// direction holds the costs of reads or of writes under load, in ns: the slowest
// stage needs request for each request of a message, packet for each of its packets,
// and message. They are fitted to the peaks of figures 5 and 7; large to figure 1,
// where requests of 8 KiB reach 90 % of the link, with as much for each 8 KiB of 128.
type direction struct {
	name                     string
	request, message, packet int64
	large                    int64
	total, totalLarge        int64   // unloaded (tables II and VI, NoWQ)
	peak, packedPeak         float64 // of the link, in %
	gain, gainAt32           float64 // of adaptive batching, in %: the highest, at 32 outstanding
	packedGain               float64 // the highest with two payloads in a packet
	mixedGain                float64 // of the mean in figure 8, times
}

var (
	reads  = direction{"reads", 3250, 1770, 660, 16 * 7064, 53_380, 203_270, 80.7, 88.0, 44.2, 28.1, 56.9, 88.8 / 56.7}
	writes = direction{"writes", 3790, 2020, 190, 16 * 7064, 51_110, 226_360, 79.2, 81.1, 49.5, 35.8, 53, 2}
)

// cost is what a message of n small requests costs, with so many in a packet.
func (d *direction) cost(n, packing int) int64 {
	return int64(n)*d.request + d.message + int64((n+packing-1)/packing)*d.packet
}

// load is a run: a closed loop of requests through the batch queue, the slowest
// stage and the rest of the way, which delays only. Even alone, a request takes
// longer in the slowest stage than on the link, so the link needs no queue.
type load struct {
	direction *direction
	config    batch.Config
	small     int // requests of 4 KiB outstanding
	packing   int // payloads of 4 KiB in a packet
	seed      uint64
	log       *experiment.Log
	logged    error

	kernel   kernel.Kernel
	batch    gather.Point
	queue    arrivals // requests that wait to be sent
	large    arrivals
	busy     bool
	planned  int64 // when the batch timer comes
	r        *rand.Rand
	bytes    int64
	done     int64 // requests
	waited   int64 // ns, of all of them together
	inflight int   // small requests that have left the batch queue
	batched  int   // large requests in batches, which is wrong
	levels   []float64
	rates    []float64 // of the link, in %
	counted  int64     // bytes at the last interval's end
}

// start submits the first requests.
func (l *load) start() {
	if l.packing == 0 {
		l.packing = 1
	}
	l.r = kernel.NewRand(l.seed, 0)
	l.batch = gather.New(l.config, 0)
	l.kernel.After(0, kernel.Arrival, func() { l.submit(l.small) })
	l.observe()
}

// observe notes level and throughput at each interval's end.
func (l *load) observe() {
	interval := l.config.Interval
	l.kernel.After(interval, kernel.BatchTimer, func() {
		l.batch.Observe(l.kernel.Now())
		l.levels = append(l.levels, float64(l.batch.Level()))
		l.rates = append(l.rates, share(l.bytes-l.counted, interval))
		l.log.Line(l.kernel.Now(), "level", int64(l.batch.Level()), l.bytes-l.counted)
		l.counted = l.bytes
		l.observe()
	})
}

// share is a throughput in % of the link.
func share(bytes, ns int64) float64 {
	return float64(bytes) / smallRequest / linkRequests * 1e9 / float64(ns) * 100
}

// submit lets n small requests wait.
func (l *load) submit(n int) {
	now := l.kernel.Now()
	l.queue.push(now, n)
	for range n {
		l.batch.Add(true, now)
	}
	l.serve()
}

// submitLarge starts the next request of 128 KiB, unless it could be batched.
func (l *load) submitLarge() {
	if l.batch.Gathers(largeRequest, false) {
		l.batched++
	}
	l.large.push(l.kernel.Now(), 1)
	l.serve()
}

// serve gives the slowest stage its next work: what came first, if it may leave.
func (l *load) serve() {
	if l.busy {
		return
	}
	now := l.kernel.Now()
	if l.large.n > 0 && (l.queue.n == 0 || l.large.oldest() <= l.queue.oldest()) {
		l.sendLarge()
		return
	}
	switch n := l.batch.Ready(now); {
	case n > 0:
		l.send(n)
	case l.large.n > 0:
		l.sendLarge()
	default:
		l.planTimer()
	}
}

func (l *load) planTimer() {
	at, ok := l.batch.Deadline()
	if !ok || at == l.planned {
		return
	}
	l.planned = at
	l.kernel.After(at-l.kernel.Now(), kernel.BatchTimer, l.serve)
}

// send sends a batch message of n.
func (l *load) send(n int) {
	now := l.kernel.Now()
	since := l.queue.take(n)
	l.batch.Sent(n, l.queue.oldest(), now)
	l.log.Line(now, "send", int64(n))
	l.inflight += n
	rest := l.direction.total - l.direction.cost(1, 1)
	l.pass(l.direction.cost(n, l.packing), l.slowest(rest, n), func() {
		l.inflight -= n
		l.waited += int64(n)*l.kernel.Now() - since
		l.finish(n, smallRequest)
		l.submit(n)
	})
}

func (l *load) sendLarge() {
	since := l.large.take(1)
	l.log.Line(l.kernel.Now(), "large")
	rest := l.direction.totalLarge - l.direction.large
	l.pass(l.direction.large, l.slowest(rest, 1), func() {
		l.waited += l.kernel.Now() - since
		l.finish(1, largeRequest)
		l.submitLarge()
	})
}

// pass takes a message through the slowest stage and the rest.
func (l *load) pass(cost, rest int64, done func()) {
	l.busy = true
	l.kernel.After(cost, kernel.Completion, func() {
		l.busy = false
		l.kernel.After(rest, kernel.Completion, done)
		l.serve()
	})
}

// slowest draws how long the slowest of n requests takes, each of which takes 0.9
// to 1.1 of the mean: a message is answered when all of it is done.
func (l *load) slowest(mean int64, n int) int64 {
	highest := math.Pow(l.r.Float64(), 1/float64(n))
	return int64(float64(mean) * (0.9 + 0.2*highest))
}

func (l *load) finish(n, size int) {
	for range n {
		l.batch.Completed(size, l.kernel.Now())
	}
	l.bytes += int64(n * size)
	l.done += int64(n)
}

// run simulates for ns and returns the throughput in % of the link.
func (l *load) run(ns int64) float64 {
	l.start()
	l.kernel.Run(ns)
	l.logged = l.log.Flush()
	return share(l.bytes, ns)
}

// latency is the mean time of a request, in us.
func (l *load) latency() float64 { return float64(l.waited) / float64(l.done) / 1e3 }

// level is the mean level of the second half of the intervals.
func (l *load) level() float64 { return mean(l.levels[len(l.levels)/2:]) }

// violations checks that no request was lost or doubled, and none batched that is
// too large.
func (l *load) violations() (v []string) {
	if l.batch.Waiting() != l.queue.n || l.queue.n+l.inflight != l.small {
		v = append(v, fmt.Sprintf("%d requests wait (%d counted), %d are under way, of %d", l.queue.n, l.batch.Waiting(), l.inflight, l.small))
	}
	if l.batched > 0 {
		v = append(v, fmt.Sprintf("%d large requests in batches", l.batched))
	}
	if l.logged != nil {
		v = append(v, l.logged.Error())
	}
	return v
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
