package bulk

import (
	"fmt"

	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// as is the manner of a run.
func as(env *experiment.Env, m manner) manner {
	m.silent = !env.Decides(crediting)
	return m
}

func runStall(env *experiment.Env, r *experiment.Result) error {
	const pool, from, halt, blocks = 8, 100 * ms, sec, 400
	k := &kernel.Kernel{}
	t := newTransfer(newLink(k, 10e9, ms, 1), manner{blind: !env.Decides(crediting)}, mib, pool, 2*ms)
	t.left = blocks
	halted := false
	t.halted = func() int64 {
		if k.Now() >= from && !halted {
			halted = true
			return halt
		}
		return 0
	}
	t.fill()
	k.Run(from)
	before := t.sent
	k.Run(from + halt)
	during := t.sent - before
	k.Drain()
	r.Paper(crediting)
	r.Require("blocks sent while the store halts", "the source stops", "≤8", fmt.Sprint(during), during <= pool)
	r.Require("blocks stored in the end", "none is lost", fmt.Sprint(blocks), fmt.Sprint(t.stored), t.stored == blocks)
	r.Model()
	r.Require("lost blocks of the sink", "", "0", fmt.Sprint(t.lost()), t.lost() == 0)
	return nil
}

// runDepth keeps so many blocks in flight: a window of the credits' ordered form, whose
// blocks the sink stores at once.
func runDepth(env *experiment.Env, r *experiment.Result) error {
	const line, rtt = 40e9, 20_000
	fig := experiment.Figure{Name: "aces-depth", Title: "Bandwidth by blocks in flight", X: "blocks in flight", Y: "Gb/s", LogX: true}
	for _, size := range []int{4 * kib, 16 * kib, 64 * kib, 256 * kib, mib} {
		alone := float64(size)*8/line*1e9 + rtt // ns of one block, until the next may follow it
		series := experiment.Series{Name: fmt.Sprintf("%d KiB", size/kib)}
		for depth := 1; depth <= 64; depth *= 2 {
			got := depthRate(env, line, rtt, size, depth)
			want := min(line, float64(depth)*float64(size)*8/alone*1e9)
			series.Points = append(series.Points, experiment.Point{X: float64(depth), Y: got / 1e9})
			r.Paper(crediting)
			if depth == 1 || outlasts(size, line, rtt) {
				r.Model()
			}
			r.Near(fmt.Sprintf("%d KiB, %d in flight: Gb/s", size/kib, depth), "rises with both", got/1e9, want/1e9, 0.03)
		}
		fig.Series = append(fig.Series, series)
	}
	r.Figures = append(r.Figures, fig)
	return nil
}

// outlasts reports whether a block of a size takes longer on the line than a round trip: the
// line is full with one credit for each request.
func outlasts(size int, line float64, rtt int64) bool { return float64(size)*8/line*1e9 > float64(rtt) }

// depthRate is the bandwidth in bits per second with one more block at the sink than are in
// flight, for the one that it stores.
func depthRate(env *experiment.Env, line float64, rtt int64, size, depth int) float64 {
	k := &kernel.Kernel{}
	t := newTransfer(newLink(k, line, rtt, 1), as(env, manner{ordered: true}), size, depth+1, 0)
	t.window(depth)
	return t.rate(100*ms, 400*ms)
}

// window keeps at most so many blocks under way, by the source's pool.
func (t *transfer) window(depth int) { t.free = t.free[:depth] }

// rate runs for some time, and returns the bits stored in a second between from and until.
func (t *transfer) rate(from, until int64) float64 {
	t.fill()
	t.k.Run(from)
	before := t.stored
	t.k.Run(until)
	return float64(t.stored-before) * float64(t.size) * 8 / float64(until-from) * 1e9
}

// wan is the share of a long link that a transfer gets in 60 s.
func wan(env *experiment.Env, line float64, rtt int64, pool int, m manner) float64 {
	k := &kernel.Kernel{}
	t := newTransfer(newLink(k, line, rtt, 1), m, 4*mib, pool, 0)
	return t.rate(0, 60*sec) / line
}

func runWAN10(env *experiment.Env, r *experiment.Result) error {
	const line, rtt = 10e9, 49 * ms
	r.Paper(crediting)
	r.AtLeast("pool of 30 (2 BDP): share of the line", "as without a file system", wan(env, line, rtt, 30, as(env, manner{})), 0.94)
	r.AtLeast("pool of 37 (2.5 BDP)", "", wan(env, line, rtt, 37, as(env, manner{})), 0.98)
	small := wan(env, line, rtt, 15, as(env, manner{}))
	r.Within("pool of 15 (1 BDP)", "", small, 0.44, 0.48)
	r.AtLeast("ordered, pool of 15", "", wan(env, line, rtt, 15, as(env, manner{ordered: true})), 0.88)
	return nil
}

func runWAN40(env *experiment.Env, r *experiment.Result) error {
	const line, rtt = 40e9, 95 * ms
	r.Paper(crediting)
	r.AtLeast("pool of 227 (2 BDP): share of the line", "97 %", wan(env, line, rtt, 227, as(env, manner{})), 0.965)
	r.AtLeast("ordered, pool of 114", "97 %", wan(env, line, rtt, 114, as(env, manner{ordered: true})), 0.97)
	return nil
}

func runExplicit(env *experiment.Env, r *experiment.Result) error {
	const line, rtt = 10e9, 49 * ms
	r.Model()
	const paper = "loses a round trip for each refill"
	r.AtMost("pool of 15: share of the line", paper, wan(env, line, rtt, 15, manner{explicit: true}), 0.45)
	r.Note("pool of 30", paper, experiment.Num(wan(env, line, rtt, 30, manner{explicit: true})), "with 0.97 for credits that are not asked for")
	return nil
}

func runLAN(env *experiment.Env, r *experiment.Result) error {
	const line, rtt = 40e9, 25_000
	blocks := 400_000
	if env.Reduced {
		blocks = 20_000
	}
	var perGB []float64
	sizes := []int{16 * kib, 64 * kib, 256 * kib, mib, 4 * mib}
	for _, streams := range []int{1, 8} {
		for i, size := range sizes {
			k := &kernel.Kernel{}
			l := newLink(k, line, rtt, 1)
			var all []*transfer
			for range streams {
				t := newTransfer(l, as(env, manner{}), size, max(8, mib/size), 0)
				t.fill()
				all = append(all, t)
			}
			time := int64(float64(min(blocks, blocks*16*kib/size+1000)) * float64(size) * 8 / line * 1e9)
			k.Run(time)
			stored, messages := 0, 0
			for _, t := range all {
				stored, messages = stored+t.stored, messages+t.messages
			}
			bits := float64(stored) * float64(size) * 8
			r.Paper(crediting)
			if streams > 1 || outlasts(size, line, rtt) {
				r.Model() // eight fill the line with one credit each
			}
			r.AtLeast(fmt.Sprintf("streams: %d, %d KiB: share of the line", streams, size/kib), "the line with all sizes", bits/float64(time)*1e9/line, 0.99)
			if streams == 1 {
				perGB = append(perGB, float64(messages)/bits*8e9)
				r.Model()
				r.Near(fmt.Sprintf("%d KiB: messages per GB, times the size in MiB", size/kib), "CPU time falls with the size", perGB[i]*float64(size)/mib, perGB[0]*float64(sizes[0])/mib, 0.1)
			}
		}
	}
	return nil
}

func runLAN3(env *experiment.Env, r *experiment.Result) error {
	const line, rtt, host = 40e9, 25_000, 94.8e9
	until := 1500 * sec
	if env.Reduced {
		until = 5 * sec
	}
	both := func(ways int) (rates float64) {
		k := &kernel.Kernel{}
		var all []*transfer
		for range ways {
			load := 4 * mib * 8 / host * 1e9
			t := newTransfer(newLink(k, line, rtt, 3), as(env, manner{}), 4*mib, 16, int64(load))
			t.fill()
			all = append(all, t)
		}
		k.Run(until)
		for _, t := range all {
			rates += float64(t.stored) * float64(t.size) * 8 / float64(until) * 1e9
		}
		return rates
	}
	one := both(1)
	r.Model()
	r.AtLeast("Gb/s, of 94.8 that a host loads", "91", one/1e9, 0.96*host/1e9)
	r.AtLeast("both ways, where no stage is shared, against one", "1.83", both(2)/one, 1.8)
	return nil
}
