package nest

import (
	_ "embed"
	"fmt"
)

// measuredText is what scripts/nest/measure.sh wrote: commands of 4 KiB over loopback.
//
//go:embed measured.json
var measuredText []byte

// measurement is a row of it.
type measurement struct {
	Load    string  `json:"load"` // read, write or rw
	Depth   int     `json:"depth"`
	InTurns bool    `json:"in_turns"` // never both ends worked at a time
	P50     float64 `json:"p50_us"`
	Mean    float64 `json:"mean_us"`
	Busy    float64 `json:"client_busy"` // part of the time in which the client had something to do
}

// measured are all rows, with the date and the machine.
type measured struct {
	Date    string        `json:"date"`
	Machine string        `json:"machine"`
	Loads   []measurement `json:"loads"`
}

func (m *measured) row(load string, depth int, inTurns bool) (measurement, error) {
	for _, row := range m.Loads {
		if row.Load == load && row.Depth == depth && row.InTurns == inTurns && row.P50 > 0 {
			return row, nil
		}
	}
	return measurement{}, fmt.Errorf("measured.json has no %s at depth %d, in turns: %t", load, depth, inTurns)
}

// deep is the depth at which much is calibrated.
const deep = 32

// costs calibrates what both ends need.
func (m *measured) costs(seed uint64) (c costs, err error) {
	for load, to := range map[string][2]*cost{"read": {&c.server.read, &c.client.read}, "write": {&c.server.write, &c.client.write}} {
		one, err := m.row(load, 1, false)
		if err != nil {
			return c, err
		}
		many, err := m.row(load, deep, true)
		if err != nil {
			return c, err
		}
		*to[0] = calibrate(one.P50*(1-one.Busy), many.P50*(1-many.Busy), earlySends)
		*to[1] = calibrate(one.P50*one.Busy, many.P50*many.Busy, 0)
	}
	both, err := m.row("read", deep, false)
	if err != nil {
		return c, err
	}
	c.slowdown(seed, both.P50)
	return c, nil
}

// calibrate finds what passes and commands cost at an end that works alone: for how long it does
// with one command and with many at a time, of which it sends some early, so often.
func calibrate(one, many, sends float64) cost {
	// pass + each = one, and pass (1 + sends sending) + deep each = many.
	more := 1 + sends*sending
	each := (many - more*one) / (deep - more)
	return cost{one - each, each}
}

// slowdown finds how much longer all takes while both ends work, with which reads at depth 32
// take so long.
func (c *costs) slowdown(seed uint64, many float64) {
	low, high := 1.0, 4.0
	for range 12 {
		c.slow = (low + high) / 2
		if c.closed(seed, deep, 1, false).latency < many {
			low = c.slow
		} else {
			high = c.slow
		}
	}
}
