package batch

// Mode says how the level is chosen.
type Mode uint8

// The modes.
const (
	Off      Mode = iota // nothing is gathered: the level is 1
	Static               // the level is Config.Level
	Adaptive             // the level follows the throughput
)

// Tyche's parameters, in ns and requests, and the delay of simulated event threads:
// their responses are ready, so that a gathered one can only be late.
const (
	DefaultMax      = 64
	DefaultInterval = 1e9
	TycheDelay      = 5e6
	ServerDelay     = 50e3
)

const (
	threshold = 3   // percent by which a throughput must differ to count
	quiet     = 10  // unchanged intervals before others are tried
	shortest  = 1e6 // ns of an interval at least
)

// Config sets a gathering point. The zero Config gathers nothing.
type Config struct {
	Mode     Mode
	Level    int   // of Static: requests
	Max      int   // highest level of Adaptive; 0 is DefaultMax
	Interval int64 // between two levels, ns, at least 1 ms; 0 is DefaultInterval
	Delay    int64 // ns for which the first that waits may wait; 0: none waits
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
	c.Level = max(c.Level, 1)
	return c
}
