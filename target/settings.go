package target

import (
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
