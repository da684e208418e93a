package tyche

import (
	"fmt"
	"math"

	"lunar/scripts/sim/experiment"
)

// The components of a request's time, in the order of the tables' columns.
const (
	inOut = iota // into and out of the kernel
	is           // initiator sends
	tr           // target receives
	ts           // target sends
	ir           // initiator receives
	wq           // hand-over to the work queue
	rec          // hand-over between receiving threads, on both sides
	irq          // interrupts, on both sides
	ramdisk
	network
	components
)

// way is one row of tables II, V and VI: times in us.
type way struct {
	parts [components]float64
	total float64 // as printed
	rate  float64 // MiB/s
}

func (w *way) sum() float64 {
	sum := 0.0
	for _, p := range w.parts {
		sum += p
	}
	return sum
}

// protocol is what the protocol itself takes.
func (w *way) protocol() float64 {
	return w.sum() - w.parts[inOut] - w.parts[ramdisk] - w.parts[network]
}

// switches counts the context switches of a request: two interrupts and the one
// into the caller are always there.
func (w *way) switches() int {
	n := 3
	if w.parts[wq] > 0 {
		n++
	}
	if w.parts[rec] > 0 {
		n += 2
	}
	return n
}

// measured is what the paper reports of a size and a direction: three versions,
// NoWQ's changes against the basic one in %, and NBD's total.
type measured struct {
	name                    string
	size                    int
	basic, rec, noWQ        way
	lessTime, moreBandwidth float64
	nbd                     float64
}

var tables = []measured{
	{
		"read 4 KiB", 4 << 10,
		way{[...]float64{13.19, 2.75, 3, 4, 5, 4, 8, 8.15, 1, 24.60}, 73.69, 52.50},
		way{[...]float64{12.63, 2, 1, 4, 2, 4, 0, 8.12, 1, 26.88}, 61.63, 63.00},
		way{[...]float64{11.38, 2, 1, 3, 1, 0, 0, 8.09, 1, 25.91}, 53.38, 73.00},
		-27.6, 39.1, 152.35,
	}, {
		"read 8 KiB", 8 << 10,
		way{[...]float64{13.13, 2, 3, 5, 6, 4, 8, 7.02, 2, 32.73}, 82.88, 94.00},
		way{[...]float64{13.72, 2, 1, 5, 2, 4, 0, 8.28, 2, 35.72}, 73.72, 105.25},
		way{[...]float64{13.83, 3, 1, 3, 2, 0, 0, 8.16, 2, 35.34}, 68.33, 114.00},
		-17.6, 21.3, 162.42,
	}, {
		"read 64 KiB", 64 << 10,
		way{[...]float64{16.25, 3, 4, 12, 24, 4, 8, 20.30, 16, 45.20}, 152.75, 408.50},
		way{[...]float64{17.13, 2.25, 2, 12.75, 19.5, 3.25, 0, 21.03, 16, 49.47}, 143.38, 435.75},
		way{[...]float64{14.43, 2, 1, 11, 20, 0, 0, 20.40, 16, 48.60}, 133.43, 467.75},
		-12.7, 14.5, 433.84,
	}, {
		"read 128 KiB", 128 << 10,
		way{[...]float64{15.33, 2, 4.25, 22, 45, 4, 7, 30.54, 30.75, 60.21}, 221.08, 565.00},
		way{[...]float64{14.98, 2, 3.75, 23, 41.5, 3, 0, 31.11, 30.25, 61.39}, 210.98, 592.00},
		way{[...]float64{14.77, 2, 2.5, 20, 40, 0, 0, 30.71, 30.5, 62.79}, 203.27, 614.75},
		-8.1, 8.8, 561.48,
	}, {
		"write 4 KiB", 4 << 10,
		way{[...]float64{12.80, 4.75, 5, 3, 2.25, 4, 8, 8.13, 1, 24.87}, 73.80, 52.50},
		way{[...]float64{12.80, 4, 2, 3, 0, 3.5, 0, 8.02, 1, 25.98}, 60.30, 64.00},
		way{[...]float64{12.11, 3, 2, 1, 0, 0, 0, 8.01, 1, 23.99}, 51.11, 76.00},
		-30.8, 44.8, 151.79,
	}, {
		"write 8 KiB", 8 << 10,
		way{[...]float64{14.66, 5, 6, 4, 2, 3, 8, 8.02, 2, 30.98}, 83.66, 92.75},
		way{[...]float64{13.70, 4, 2, 4, 0, 4, 0, 8.04, 2, 36.21}, 73.95, 105.00},
		way{[...]float64{14.27, 4, 2, 1, 0, 0, 0, 9.10, 2, 32.90}, 66.27, 117.25},
		-21.3, 26.4, 153.78,
	}, {
		"write 64 KiB", 64 << 10,
		way{[...]float64{26.38, 15, 15, 4, 2, 5, 8, 23.82, 17, 47.18}, 163.38, 382.00},
		way{[...]float64{25.76, 12.25, 12.75, 4, 0, 4, 0, 23.74, 16.25, 53.01}, 151.76, 411.25},
		way{[...]float64{25.61, 11, 12, 2, 0, 0, 0, 23.77, 16, 52.98}, 143.36, 435.25},
		-12.3, 13.9, 332.23,
	}, {
		"write 128 KiB", 128 << 10,
		way{[...]float64{40.96, 26.25, 24.25, 3, 2, 3, 7, 37.90, 31, 63.35}, 238.71, 523.25},
		way{[...]float64{42.55, 23.5, 23, 3, .25, 3, 0, 38.35, 30, 68.15}, 231.80, 538.75},
		way{[...]float64{42.36, 23.75, 20.25, 2, .25, 0, 0, 38.92, 31, 67.83}, 226.36, 552.00},
		-5.2, 5.5, 520.02,
	},
}

// runComponents is tables II, V and VI: a request's parts one after the other. They are
// the paper's own cells, added up.
func runComponents(*experiment.Env) (r experiment.Result) {
	r.Wiring()
	for i := range tables {
		m := &tables[i]
		switches := [3]int{}
		for version, w := range []*way{&m.basic, &m.rec, &m.noWQ} {
			what := m.name + [...]string{", basic", ", Rec", ", NoWQ"}[version]
			if off := w.total - w.sum(); math.Abs(off) < 0.05 {
				r.Near(what+", sum in us", experiment.Num(w.total), w.sum(), w.total, 0.001)
			} else {
				r.Note(what+", sum in us", experiment.Num(w.total), experiment.Num(w.sum()), "the paper's own parts give another sum than it prints")
			}
			r.Near(what+", MiB/s", experiment.Num(w.rate), float64(m.size)/w.total*1e6/(1<<20), w.rate, 0.015)
			switches[version] = w.switches()
		}
		time, bandwidth := (m.noWQ.total/m.basic.total-1)*100, (m.noWQ.rate/m.basic.rate-1)*100
		r.Within(m.name+", NoWQ's time in %", fmt.Sprint(m.lessTime), time, m.lessTime-1, m.lessTime+1)
		r.Within(m.name+", NoWQ's throughput in %", fmt.Sprint(m.moreBandwidth), bandwidth, m.moreBandwidth-1, m.moreBandwidth+1)
		r.Require(m.name+", context switches", "6, 4, 3", "6, 4, 3", fmt.Sprint(switches), switches == [3]int{6, 4, 3})
	}
	return r
}

// runPath is what is left of the protocol's own time.
func runPath(*experiment.Env) (r experiment.Result) {
	r.Wiring()
	for _, c := range []struct {
		m           *measured
		paper       string
		before, now float64
		note        string
	}{
		{&tables[0], "-56 %", 34.90, 15.09, ""},
		{&tables[4], "-61.1 %", 35.13, 14.01, "the paper's 36.1 us do not follow from its table II"},
	} {
		before, now := c.m.basic.protocol(), c.m.noWQ.protocol()
		r.Near(c.m.name+", basic, us", "", before, c.before, 0.001)
		r.Near(c.m.name+", NoWQ, us", "", now, c.now, 0.001)
		r.Note(c.m.name+", change in %", c.paper, experiment.Num((now/before-1)*100), c.note)
	}
	return r
}

// runNBD is table III.
func runNBD(*experiment.Env) (r experiment.Result) {
	r.Wiring()
	for i := range tables {
		m := &tables[i]
		r.AtLeast(m.name+", NBD's time/NoWQ's", "", m.nbd/m.noWQ.total, 1.8)
	}
	return r
}
