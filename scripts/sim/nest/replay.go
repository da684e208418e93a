package nest

import (
	"bufio"
	"fmt"
	"io"

	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// entry is a request of a trace.
type entry struct {
	at     int64 // ps
	write  bool
	offset int64 // bytes
	length int64
	tag    Tag
}

// readTrace reads a trace: lines of TIME OP OFFSET LENGTH CLASS, in order of time. The time
// is in ns, OP is R or W, the rest in bytes; CLASS is the tag's number, 0 is urgent.
func readTrace(from io.Reader) (trace []entry, err error) {
	lines := bufio.NewScanner(from)
	for number := 1; lines.Scan(); number++ {
		var e entry
		var op string
		if _, err := fmt.Sscan(lines.Text(), &e.at, &op, &e.offset, &e.length, &e.tag); err != nil {
			return nil, fmt.Errorf("trace, line %d: %q is not TIME R|W OFFSET LENGTH CLASS: %w", number, lines.Text(), err)
		}
		e.at *= net.Nanosecond
		e.write = op == "W"
		switch {
		case op != "R" && op != "W":
			return nil, fmt.Errorf("trace, line %d: found operation %q, expected R or W", number, op)
		case e.tag >= Tags:
			return nil, fmt.Errorf("trace, line %d: found class %d, expected 0 to %d", number, e.tag, Tags-1)
		case e.length <= 0 || e.offset < 0:
			return nil, fmt.Errorf("trace, line %d: found %d bytes at %d, expected some at 0 or more", number, e.length, e.offset)
		case len(trace) > 0 && e.at < trace[len(trace)-1].at:
			return nil, fmt.Errorf("trace, line %d: its time is before that of the line above", number)
		}
		trace = append(trace, e)
	}
	return trace, lines.Err()
}

// replay asks what a trace says, over a connection for each tag.
type replay struct {
	kernel *kernel.Kernel
	trace  []entry
	paths  [Tags]*Path
	ended  func(e entry, latency int64)
}

// start plans the first request.
func (p *replay) start() { p.plan(0) }

func (p *replay) plan(i int) {
	if i < len(p.trace) {
		p.kernel.At(p.trace[i].at, kernel.Arrival, p, int32(i))
	}
}

// Fire implements kernel.Actor.
func (p *replay) Fire(_ int64, i int32) {
	e := p.trace[i]
	r := &Request{Tag: e.tag, Write: e.write, Bytes: e.length, Block: uint64(e.offset / 4096)}
	r.Done = func(now int64) { p.ended(e, now-r.At) }
	p.paths[e.tag].Ask(r)
	p.plan(int(i) + 1)
}
