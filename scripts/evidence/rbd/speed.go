//go:build linux && cgo && rbd

package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"lunar/backstore/rbd"
	"lunar/scripts/evidence/notes"
)

// What is measured: an image that is full, so that no read is answered by the object map.
const (
	imageBytes = 256 << 20
	depth      = 32
)

// figure is one run: operations per second, and CPU time of the client for each.
type figure struct {
	rate float64
	cost time.Duration
}

// contender does random operations of 4 KiB for some seconds.
type contender struct {
	name string
	run  func(write bool) (figure, error)
}

// speed compares contenders that take turns.
func speed(_ context.Context, o options) (r notes.Result, err error) {
	c, err := o.cluster()
	if err != nil {
		return r, err
	}
	defer c.end()
	image := rbd.Name{Pool: "rbd", Image: "speed"}
	if _, _, err := c.rbd("create", "--size", fmt.Sprint(imageBytes, "B"), image.String()); err != nil {
		return r, err
	}
	if _, _, err := c.rbd("bench", "--io-type", "write", "--io-size", "1M", "--io-total", fmt.Sprint(imageBytes), "--io-pattern", "seq", image.String()); err != nil {
		return r, err
	}
	contenders := []contender{
		{"`rbd bench`", func(write bool) (figure, error) { return o.bench(c, image, write) }},
		{"Lunar's store", func(write bool) (figure, error) { return o.ours(c, image, write) }},
		{"a goroutine for each blocking call, as with go-ceph", func(write bool) (figure, error) { return o.blocking(c, image, write) }},
	}
	all := make([][2][]figure, len(contenders))
	for range o.Rounds {
		for kind, write := range []bool{false, true} {
			for i := range contenders {
				f, err := contenders[i].run(write)
				if err != nil {
					return r, fmt.Errorf("%s: %w", contenders[i].name, err)
				}
				all[i][kind] = append(all[i][kind], f)
			}
		}
	}
	r.How = fmt.Sprintf("Random reads and writes of 4 KiB on a full image of %d MiB, one OSD in memory (memstore), %d under way, the cache of librbd off. %d runs of about %d s for each line, which take turns; the medians, and the best and worst run in brackets. CPU time is that of the client's process for each operation. The blocking calls are rbd_read and rbd_write from %d goroutines, which is what go-ceph has; go-ceph itself needs Ceph's headers and is not built. %s.",
		imageBytes>>20, depth, o.Rounds, o.Seconds, depth, cephVersion())
	r.Columns = []string{"", "reads/s", "CPU", "of `rbd bench`", "writes/s", "CPU", "of `rbd bench`"}
	for i := range contenders {
		row := []string{contenders[i].name}
		for kind := range 2 {
			base, mine := middle(all[0][kind]), middle(all[i][kind])
			low, high := span(all[i][kind])
			row = append(row, fmt.Sprintf("%.0f (%.0f to %.0f)", mine.rate, low, high), fmt.Sprintf("%.1f µs", float64(mine.cost.Nanoseconds())/1000), fmt.Sprintf("%.2f", mine.rate/base.rate))
		}
		r.Rows = append(r.Rows, row)
	}
	cost := float64(middle(all[1][1]).cost) / float64(middle(all[2][1]).cost)
	r.Facts = []notes.Fact{notes.Found("CPU time of a write of ours, of that of a blocking one", fmt.Sprintf("%.2f", cost), cost <= 0.6)}
	return r, nil
}

// middle are the medians.
func middle(all []figure) figure {
	rates, costs := []float64{}, []time.Duration{}
	for _, f := range all {
		rates, costs = append(rates, f.rate), append(costs, f.cost)
	}
	slices.Sort(rates)
	slices.Sort(costs)
	return figure{rates[len(rates)/2], costs[len(costs)/2]}
}

func span(all []figure) (low, high float64) {
	low = all[0].rate
	for _, f := range all {
		low, high = min(low, f.rate), max(high, f.rate)
	}
	return low, high
}

var benchLine = regexp.MustCompile(`elapsed: \d+\s+ops: (\d+)\s+ops/sec: ([0-9.]+)`)

// bench runs rbd bench, whose start is in its CPU time, with as many operations as take some
// seconds.
func (o *options) bench(c *cluster, image rbd.Name, write bool) (figure, error) {
	kind, rate := "read", 25000
	if write {
		kind, rate = "write", 8000
	}
	out, state, err := c.rbd("bench", "--io-type", kind, "--io-pattern", "rand", "--io-size", "4096", "--io-threads", strconv.Itoa(depth),
		"--io-total", strconv.Itoa(rate*o.Seconds*4096), "--rbd-cache=false", image.String())
	if err != nil {
		return figure{}, err
	}
	m := benchLine.FindStringSubmatch(out)
	if m == nil {
		return figure{}, fmt.Errorf("found no result in %s", out)
	}
	ops, _ := strconv.ParseFloat(m[1], 64)
	perSecond, _ := strconv.ParseFloat(m[2], 64)
	return figure{perSecond, time.Duration(float64(state.UserTime()+state.SystemTime()) / ops)}, nil
}

// ours runs the store on an event thread.
func (o *options) ours(c *cluster, image rbd.Name, write bool) (figure, error) {
	store, err := c.open(image)
	if err != nil {
		return figure{}, err
	}
	defer store.Close()
	l, err := newLoad(store)
	if err != nil {
		return figure{}, err
	}
	defer l.close()
	writes := 0
	if write {
		writes = 16
	}
	var f figure
	err = l.run(depth, writes, false, func() {
		began, time0 := processTime(), time.Now()
		var before, after int64
		l.on(func() { before = l.ops })
		time.Sleep(time.Duration(o.Seconds) * time.Second)
		l.on(func() { after = l.ops })
		f = figure{float64(after-before) / time.Since(time0).Seconds(), (processTime() - began) / time.Duration(after-before)}
	})
	return f, err
}
