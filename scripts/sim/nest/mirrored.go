package nest

import (
	"lunar/scheduler/plm"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// mirrored is two devices with the same data whose windows take turns (scheduler/plm): reads
// go to the one that is deterministic, and writes wait for the windows in which a device
// works.
type mirrored struct {
	kernel   *kernel.Kernel
	pair     *plm.Pair
	devices  [2]Device
	held     [2][]*Command
	flushing [2]bool
}

// held writes are acknowledged after this.
const holding = 10 * net.Microsecond

// windowTick is how often windows are looked at where nothing happens.
const windowTick = net.Millisecond / 4

func newMirrored(k *kernel.Kernel, c plm.Config, a, b Device) *mirrored {
	m := &mirrored{kernel: k, pair: plm.NewPair(c, 0), devices: [2]Device{a, b}}
	m.tick()
	return m
}

// Submit implements Device.
func (m *mirrored) Submit(c *Command) {
	if !c.Write {
		i, _ := m.pair.Reader()
		m.pair.Set(i).Read()
		m.devices[i].Submit(c)
		return
	}
	for i := range m.held {
		m.pair.Set(i).Hold()
		m.held[i] = append(m.held[i], c)
	}
	m.kernel.After(holding, kernel.Completion, func() { c.Done(m.kernel.Now()) })
	m.advance()
}

func (m *mirrored) tick() {
	m.advance()
	m.kernel.After(windowTick, kernel.TokenTick, m.tick)
}

// advance changes windows, and has the device that works write what it held.
func (m *mirrored) advance() {
	m.pair.Advance(m.kernel.Now() / net.Nanosecond)
	if i := m.pair.Working(); i >= 0 && !m.flushing[i] {
		m.flush(i)
	}
}

// flush writes what a device held, all at once, and again what came meanwhile.
func (m *mirrored) flush(i int) {
	left := len(m.held[i])
	if left == 0 || m.pair.Set(i).Deterministic() {
		m.flushing[i] = false
		return
	}
	m.flushing[i] = true
	writes := m.held[i]
	m.held[i] = nil
	for _, c := range writes {
		m.devices[i].Submit(&Command{Tag: c.Tag, Write: true, Bytes: c.Bytes, Done: func(int64) {
			m.pair.Set(i).Flushed(1)
			if left--; left == 0 {
				m.flush(i)
			}
		}})
	}
}

// windows are those of the mirrored devices, in ns.
var windows = plm.Config{Window: 40e6, ShortND: 5e6, LongND: 20e6, Full: 4000}.Margins()

// runWindows reads and writes over the network, with one device and with two that take turns.
func runWindows(env *experiment.Env) (r experiment.Result) {
	run := func(two bool) (reads *source, m *mirrored) {
		x := newSite(env, 3, net.QTCP)
		d := x.ssd(slc)
		if two {
			m = newMirrored(&x.kernel, windows, d, x.ssd(slc))
			d = m
		}
		s := x.fabric.NewServer(2, d, net.Microsecond)
		reads = x.add(High, 0.5, 4096, 64, []*Path{x.fabric.Connect(High, x.transport, 0, s)}, always(false), always(int64(4096)))
		x.add(High, 0.5, 4096, 256, []*Path{x.fabric.Connect(High, x.transport, 1, s)}, always(true), always(int64(4096)))
		x.run(100*net.Millisecond, 400*net.Millisecond)
		return reads, m
	}
	single, _ := run(false)
	pair, m := run(true)
	r.Model()
	ratio := pair.percentile(99) / single.percentile(99)
	r.AtMost("p99 of reads, a pair with windows/one device", "", ratio, 0.3)
	r.Note("p99 of reads of a pair, us", "", experiment.Num(pair.percentile(99)), "one device: "+experiment.Num(single.percentile(99)))
	r.AtMost("windows that were forced", "", float64(m.pair.Set(0).Forced()+m.pair.Set(1).Forced()), 0)
	return r
}
