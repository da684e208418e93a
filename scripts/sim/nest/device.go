package nest

import (
	"math/rand/v2"

	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// Command is what a device executes.
type Command struct {
	Tag   Tag
	Write bool
	Bytes int64
	First int             // chip of its first page
	Done  func(now int64) // called once

	pages int // not executed yet
}

func (c *Command) tag() Tag { return c.Tag }

// Device executes commands on the kernel's clock.
type Device interface {
	Submit(c *Command)
}

// Flash is the make of an SSD.
type Flash struct {
	Chips       int
	PageBytes   int64
	Read, Write int64 // ps, of a page
	Inside      int   // S: commands in the device at once; 0 is without bound
	Arbiter     bool  // weighted round robin among commands
	ChipArbiter bool  // and again among the pages that wait for a chip
}

// slc and tlc are two makes.
var (
	slc = Flash{Chips: 8, PageBytes: 4096, Read: 20 * net.Microsecond, Write: 100 * net.Microsecond, Inside: 64, Arbiter: true, ChipArbiter: true}
	tlc = Flash{Chips: 8, PageBytes: 4096, Read: 60 * net.Microsecond, Write: 500 * net.Microsecond, Inside: 64, Arbiter: true, ChipArbiter: true}
)

// ssd is an NVMe device: an arbiter, and chips behind it that execute pages.
type ssd struct {
	Flash
	kernel *kernel.Kernel
	queue  arbiter[*Command]
	chips  []chip
	inside int
	r      *rand.Rand // of the chip of a page
}

// chip executes one page at a time.
type chip struct {
	d       *ssd
	queue   arbiter[*page]
	current *page
}

// page is a part of a command.
type page struct {
	*Command
}

// NewSSD returns an idle device. Which chip has a page is random.
func NewSSD(k *kernel.Kernel, f Flash, r *rand.Rand) Device {
	d := &ssd{Flash: f, kernel: k, r: r, chips: make([]chip, f.Chips)}
	d.queue.fifo = !f.Arbiter
	for i := range d.chips {
		d.chips[i] = chip{d: d}
		d.chips[i].queue.fifo = !f.ChipArbiter
	}
	return d
}

// Submit implements Device.
func (d *ssd) Submit(c *Command) {
	d.queue.push(c)
	d.fetch()
}

// fetch takes commands as long as there is room for them.
func (d *ssd) fetch() {
	for d.queue.len() > 0 && (d.Inside == 0 || d.inside < d.Inside) {
		c := d.queue.pop()
		d.inside++
		c.pages = int(max(1, (c.Bytes+d.PageBytes-1)/d.PageBytes))
		for range c.pages {
			at := &d.chips[d.r.IntN(len(d.chips))]
			at.queue.push(&page{Command: c})
			at.start()
		}
	}
}

func (c *chip) start() {
	if c.current != nil || c.queue.len() == 0 {
		return
	}
	c.current = c.queue.pop()
	took := c.d.Read
	if c.current.Write {
		took = c.d.Write
	}
	c.d.kernel.At(c.d.kernel.Now()+took, kernel.Completion, c, 0)
}

// Fire implements kernel.Actor: a page has been executed.
func (c *chip) Fire(now int64, _ int32) {
	done := c.current.Command
	c.current = nil
	c.start()
	if done.pages--; done.pages == 0 {
		c.d.inside--
		done.Done(now)
		c.d.fetch()
	}
}

// scm is storage-class memory: no chips, the same time for each access.
type scm struct {
	kernel *kernel.Kernel
	lines  arbiter[*Command]
	busy   int
	width  int   // accesses at once
	fixed  int64 // ps
	byte   int64 // ps
}

// NewSCM returns memory that takes fixed ps and perByte more for an access, of which it
// makes width at once.
func NewSCM(k *kernel.Kernel, width int, fixed, perByte int64) Device {
	return &scm{kernel: k, width: width, fixed: fixed, byte: perByte}
}

// Submit implements Device.
func (m *scm) Submit(c *Command) {
	m.lines.push(c)
	m.start()
}

func (m *scm) start() {
	for m.busy < m.width && m.lines.len() > 0 {
		c := m.lines.pop()
		m.busy++
		m.kernel.After(m.fixed+c.Bytes*m.byte, kernel.Completion, func() {
			m.busy--
			c.Done(m.kernel.Now())
			m.start()
		})
	}
}
