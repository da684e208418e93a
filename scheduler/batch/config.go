package batch

import (
	"fmt"
	"strconv"
	"strings"
)

// Mode says how the level is chosen.
type Mode uint8

// The modes.
const (
	Off      Mode = iota // nothing is gathered: the level is 1
	Static               // the level is Config.Level
	Adaptive             // the level follows the throughput
)

// Tyche's parameters, in ns and requests, and the server's delay: its responses
// are ready, so that a gathered one can only be late.
const (
	DefaultMax      = 64
	DefaultInterval = 1e9
	TycheDelay      = 5e6
	ServerDelay     = 50e3
)

const (
	threshold = 3    // percent by which a throughput must differ to count
	quiet     = 10   // unchanged intervals before others are tried
	shortest  = 1e6  // ns of an interval at least
	small     = 4096 // bytes of a request that is worth gathering
)

// Config sets a gathering point. The zero Config gathers nothing.
type Config struct {
	Mode     Mode
	Level    int   // of Static: requests
	Max      int   // highest level of Adaptive; 0 is DefaultMax
	Interval int64 // between two levels, ns, at least 1 ms; 0 is DefaultInterval
	Delay    int64 // ns for which the first that waits may wait; 0: none waits
	Small    int   // bytes of the largest request that may wait; 0 is 4096
}

// filled returns the configuration with its defaults.
func (c Config) filled() Config {
	if c.Max <= 0 {
		c.Max = DefaultMax
	}
	if c.Interval <= 0 {
		c.Interval = DefaultInterval
	}
	c.Interval = max(c.Interval, shortest)
	if c.Small <= 0 {
		c.Small = small
	}
	c.Level = max(c.Level, 1)
	return c
}

// ParseMode reads what an administrator writes: off, adaptive, or static N with N
// from 1 on, which is returned as level.
func ParseMode(text string) (mode Mode, level int, err error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	switch {
	case word == "off" && rest == "":
		return Off, 0, nil
	case word == "adaptive" && rest == "":
		return Adaptive, 0, nil
	case word == "static":
		if level, err = strconv.Atoi(strings.TrimSpace(rest)); err == nil && level >= 1 && level <= maxStatic {
			return Static, level, nil
		}
	}
	return Off, 0, fmt.Errorf("batching: found %q, expected off, adaptive or static N with N from 1 to %d", text, maxStatic)
}

// maxStatic bounds a static level: a queue of commands is no longer.
const maxStatic = 4096
