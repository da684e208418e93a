package debt

import "time"

// Clock is the time of debts. It stands still while nobody looks: what a peer could not
// pay because this machine stood still is not held against it. The zero value is ready.
type Clock struct {
	Every  time.Duration // how often it is looked at
	looked int64
	stood  int64
}

// Start is called when looking begins, or begins again.
func (c *Clock) Start(now int64) { c.looked = now }

// Look notes that debts are about to be judged, by the time that it returns.
func (c *Clock) Look(now int64) int64 {
	c.stood += max(0, now-c.looked-int64(c.Every))
	c.looked = now
	return c.Now(now)
}

// Now is the time of a debt that begins now.
func (c *Clock) Now(now int64) int64 { return now - c.stood }
