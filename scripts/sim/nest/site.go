package nest

import (
	"lunar/scheduler/qtcp"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// site is hosts and storage servers at one switch, with what they ask of each other.
type site struct {
	env     *experiment.Env
	kernel  kernel.Kernel
	fabric  *Fabric
	groups  [2]*net.Group // of what flows to servers, and to hosts
	rule    net.Rule
	sources []*source
	random  uint64 // streams that are used
}

// newSite returns one whose places nobody has, with queues that mark everywhere.
func newSite(env *experiment.Env, places int, rule net.Rule) *site {
	x := &site{env: env, rule: rule}
	x.fabric = NewStar(&x.kernel, places, line, Queue{Mark: threshold})
	x.fabric.slow = trip - 3*net.Microsecond // so that a round trip takes about as long as in the thesis
	for _, l := range x.fabric.up {
		l.Mark = threshold
	}
	for i := range x.groups {
		x.groups[i] = net.NewGroup(&x.kernel, line, trip, true)
	}
	return x
}

// transport is the Transport of the site's rule; urgent traffic is open.
func (x *site) transport(t Tag, toHost bool) net.Control {
	if t == Urgent {
		return net.Open{}
	}
	g := x.groups[0]
	if toHost {
		g = x.groups[1]
	}
	return net.NewWindowed(x.rule, classOf(t), g)
}

// as is transport with another class than the request's.
func (x *site) as(t Tag) Transport {
	return func(_ Tag, toHost bool) net.Control { return x.transport(t, toHost) }
}

// ssd returns a device with its own stream of random numbers.
func (x *site) ssd(f Flash) Device {
	x.random++
	return NewSSD(&x.kernel, f, kernel.NewRand(x.env.Seed, 1<<32+x.random))
}

// add starts a source of a tag that offers so many Gb/s of requests with a mean number of
// bytes, and has at most so many outstanding.
func (x *site) add(tag Tag, gigabits, mean float64, most int, paths []*Path, write func() bool, bytes func() int64) *source {
	x.random++
	s := &source{kernel: &x.kernel, r: kernel.NewRand(x.env.Seed, x.random), gap: mean * 8000 / gigabits, most: most}
	s.ask = requests(paths, tag, write, bytes)
	x.sources = append(x.sources, s)
	return s
}

// run runs for so many ps behind settle ps, which are not counted.
func (x *site) run(settle, length int64) {
	for _, s := range x.sources {
		s.start(settle)
	}
	x.kernel.Run(settle + length)
}

// rates are what sources got in Gb/s.
func rates(sources []*source) (each []float64, sum float64) {
	for _, s := range sources {
		each = append(each, s.rate())
		sum += s.rate()
	}
	return each, sum
}

// byTag sends urgent commands to one device, and others to another.
type byTag struct{ urgent, other Device }

// Submit implements Device.
func (d byTag) Submit(c *Command) {
	if c.Tag == Urgent {
		d.urgent.Submit(c)
		return
	}
	d.other.Submit(c)
}

// tags are those of storage.
var tags = [qtcp.Classes]Tag{High, Medium, Low}
