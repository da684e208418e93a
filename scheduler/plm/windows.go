package plm

import "cmp"

// Config describes the windows of a set.
type Config struct {
	Reads, Writes   int64 // commands that a deterministic window serves (0: any number)
	Window          int64 // its length, ns
	ShortND, LongND int64 // length of a non-deterministic one without held writes, and with Writes or Full of them, ns

	// The host leaves before the device forces it: so many reads and writes, and so many
	// ns before the window ends.
	ReadMargin, WriteMargin, Guard int64
	Full                           int64 // held writes at which the window ends (0: any number)
}

// Margins returns c with 2 % of the counts and 1 ms as the margins.
func (c Config) Margins() Config {
	c.ReadMargin, c.WriteMargin, c.Guard = c.Reads/50, c.Writes/50, 1e6
	return c
}

// Set is the state of one device's windows.
type Set struct {
	config        Config
	nd            bool
	reads, writes int64 // left of the deterministic window
	until         int64 // when the window ends
	held          int64 // writes that wait for a non-deterministic one
	emergency     bool
	forced        int64
}

// NewSet returns a set whose deterministic window begins.
func NewSet(c Config, now int64) *Set {
	s := &Set{config: c}
	s.enterDT(now)
	return s
}

// Deterministic reports whether reads take the time that the device promises.
func (s *Set) Deterministic() bool { return !s.nd }

// Until returns when the window ends at the latest, or at the earliest if it is not
// deterministic.
func (s *Set) Until() int64 { return s.until }

// Held returns how many writes wait.
func (s *Set) Held() int64 { return s.held }

// Forced returns how often the set left its window while its partner was not deterministic.
func (s *Set) Forced() int64 { return s.forced }

// Read counts a read.
func (s *Set) Read() { s.reads-- }

// Hold counts a write that waits, of those that a deterministic window serves.
func (s *Set) Hold() {
	s.held++
	s.writes--
}

// Flushed counts held writes that the device has now.
func (s *Set) Flushed(n int64) { s.held = max(0, s.held-n) }

// Urge has the set leave its window at once.
func (s *Set) Urge() { s.emergency = true }

// Advance leaves and enters windows. A set whose partner is not deterministic stays where
// it can.
func (s *Set) Advance(now int64, partnerND bool) {
	switch {
	case s.nd:
		if now >= s.until && s.held == 0 {
			s.enterDT(now)
		}
	case s.must(now):
		if partnerND {
			s.forced++
		}
		s.enterND(now)
	case s.wants(now) && !partnerND:
		s.enterND(now)
	}
}

// wants reports whether a window nears its end.
func (s *Set) wants(now int64) bool {
	c := &s.config
	return c.Reads > 0 && s.reads <= c.ReadMargin || c.Writes > 0 && s.writes <= c.WriteMargin || s.until-now <= c.Guard
}

// must reports whether a window has ended.
func (s *Set) must(now int64) bool {
	c := &s.config
	return c.Reads > 0 && s.reads <= 0 || c.Writes > 0 && s.writes <= 0 || now >= s.until ||
		c.Full > 0 && s.held >= c.Full || s.emergency
}

func (s *Set) enterDT(now int64) {
	s.nd, s.reads, s.writes, s.until = false, s.config.Reads, s.config.Writes, now+s.config.Window
}

func (s *Set) enterND(now int64) {
	c := &s.config
	share := 0.0
	if many := cmp.Or(c.Writes, c.Full); many > 0 {
		share = min(1, float64(s.held)/float64(many))
	}
	s.nd, s.emergency = true, false
	s.until = now + c.ShortND + int64(float64(c.LongND-c.ShortND)*share)
}
