package target

import (
	"reflect"
	"slices"
	"time"

	"lunar/target/login"
)

// Settings are what of a Config may change while the server runs; see there. A
// session keeps those that it logged in with.
type Settings struct {
	DiscoveryAuth login.Auth
	DiscoverAll   bool
	Owners        *Owners
	NOPInterval   time.Duration
	NOPTimeout    time.Duration
	FlushTime     time.Duration
	LogoutTime    time.Duration
	DrainTime     time.Duration
	Limits        Limits
}

// Settings returns those of the Config, whose defaults are filled in.
func (c *Config) Settings() Settings {
	return Settings{c.DiscoveryAuth, c.DiscoverAll, c.Owners, c.NOPInterval, c.NOPTimeout, c.FlushTime, c.LogoutTime, c.DrainTime, c.Limits}
}

// setDefaults fills in what is zero.
func (n *Settings) setDefaults(buffers int) {
	setDefault(&n.NOPInterval, 15*time.Second)
	setDefault(&n.NOPTimeout, 10*time.Second)
	setDefault(&n.FlushTime, 10*time.Second)
	setDefault(&n.LogoutTime, 10*time.Second)
	setDefault(&n.DrainTime, 10*time.Second)
	if len(n.DiscoveryAuth.Incoming) == 0 {
		n.DiscoveryAuth.AllowNone = true
	}
	setDefault(&n.Limits.LoginConnections, 256)
	setDefault(&n.Limits.LoginTimeout, 15*time.Second)
	setDefault(&n.Limits.Sessions, 1024)
	setDefault(&n.Limits.LoginsPerAddress, max(1, n.Limits.LoginConnections/4))
	setDefault(&n.Limits.LoginsPerNetwork, max(1, n.Limits.LoginConnections/2))
	setDefault(&n.Limits.SessionsPerAddress, max(1, n.Limits.Sessions/2))
	setDefault(&n.Limits.SessionsPerNetwork, max(1, n.Limits.Sessions*3/4))
	setDefault(&n.Limits.QueueDepth, defaultQueueDepth)
	setDefault(&n.Limits.MaxConnections, 1)
	setDefault(&n.Limits.SessionMemory, min(defaultSessionMemory, buffers/2))
}

// Settings returns those in force.
func (s *Server) Settings() Settings { return *s.settings.Load() }

// Reconfigure puts settings into force for connections that come from now on; zero
// values get the defaults of a Config. Logins that have begun are told to come again.
// Sessions that would not be admitted with the new DiscoveryAuth and Owners are asked to
// log out: dismissed is how many.
func (s *Server) Reconfigure(n Settings) (dismissed int) {
	n.setDefaults(s.config.Buffers)
	s.mu.Lock()
	before := s.settings.Load()
	if before != nil && reflect.DeepEqual(*before, n) {
		s.mu.Unlock()
		return 0
	}
	s.settings.Store(&n)
	s.mu.Unlock()
	return s.withdrawFrom(slices.DeleteFunc(s.allSessions(), (*Session).stays))
}
