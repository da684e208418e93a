package qrdma

import "math"

const (
	// wanted is how much of what it has a flow is taken to want: more, or nobody who is held
	// back would ever get more.
	wanted = 1.25
	// down and up are what a line is taken to carry after a time with congestion and one
	// without, of what flows had together and of what it was taken to carry.
	down, up = 0.95, 1.02
	// narrowest is the least that a line is taken to carry, of its rate.
	narrowest = 0.1
)

// Demand is what a flow of a line has, and the part of the line that its class gives it.
type Demand struct {
	Share    float64 // qtcp.Device.Share
	Measured float64 // rate; 0: not known yet, so that it is taken to want its share
	Late     bool    // its operations end late
}

// Level is what flows of a line may have so that each has its share. NewLevel makes one.
type Level struct {
	line     float64 // rate
	capacity float64 // that the line is taken to have
	level    float64
}

// NewLevel returns a level of a line of which nothing is known but its rate.
func NewLevel(line float64) Level { return Level{line, line, math.Inf(1)} }

// Allowance is how fast a flow with a share may be.
func (l *Level) Allowance(share float64) float64 { return min(l.line, l.level*share) }

// Capacity is what the line is taken to carry.
func (l *Level) Capacity() float64 { return l.capacity }

// Update divides the line by the shares of all its flows; what some do not want others get, by
// their shares. If most of what flows have ends late, the bottleneck is narrower than the line.
// Demands are used up.
func (l *Level) Update(demands []Demand) {
	sum, late := 0.0, 0.0
	for _, d := range demands {
		sum += d.Measured
		if d.Late {
			late += d.Measured
		}
	}
	if late > sum/2 {
		l.capacity = max(narrowest*l.line, min(l.capacity, sum)*down)
	} else {
		l.capacity = min(l.line, l.capacity*up)
	}
	l.level = divide(l.capacity, demands)
}

// divide is the level at which the demands, each up to its share of it, have the capacity;
// +Inf if that is enough for all.
func divide(capacity float64, demands []Demand) float64 {
	for {
		shares := 0.0
		for _, d := range demands {
			shares += d.Share
		}
		if shares <= 0 {
			return math.Inf(1)
		}
		level, rest := capacity/shares, demands[:0]
		for _, d := range demands {
			if wants := wanted * d.Measured; d.Measured > 0 && wants <= d.Share*level {
				capacity -= wants
			} else {
				rest = append(rest, d)
			}
		}
		if len(rest) == len(demands) {
			return level
		}
		demands = rest
	}
}
