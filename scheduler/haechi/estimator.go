package haechi

import "lunar/internal/arith"

// EstimatorConfig sets Haechi's adaptive capacity estimation. Capacities are
// tokens per period.
type EstimatorConfig struct {
	Profile int64   // Ω_prof: the capacity to start from; 0 is learnt from the use
	Floor   int64   // Ω_min: use below it is not taken for the capacity; 0 is half of the profile, at least the reservations
	Step    int64   // η: how far a fully used capacity is raised; 0 is 1 % of the profile
	Window  int     // M: how many lower periods are averaged; 0 is 5
	Slack   float64 // a use of (1-Slack)·Ω counts as all of it
}

// Estimator follows the capacity Ω of a backstore from period to period. It
// starts at its profile and climbs by η. Without one, the first use seen stands
// for it until there is a higher one: an initiator that begins slowly says
// nothing of the device.
type Estimator struct {
	cfg      EstimatorConfig
	profile  int64 // given or learnt
	reserved int64 // ΣR
	omega    int64
	window   []int64 // the last lower periods, oldest first
	doubts   []int64 // the last periods, all below the floor of a learnt profile
}

// NewEstimator returns an estimator at its profile.
func NewEstimator(cfg EstimatorConfig) *Estimator {
	if cfg.Window == 0 {
		cfg.Window = 5
	}
	e := &Estimator{cfg: cfg, window: make([]int64, 0, cfg.Window), doubts: make([]int64, 0, cfg.Window)}
	e.start(cfg.Profile)
	return e
}

// start begins anew at a profile: lower periods that were seen before a higher
// use do not count.
func (e *Estimator) start(profile int64) {
	e.profile, e.omega, e.window, e.doubts = profile, profile, e.window[:0], e.doubts[:0]
}

// SetProfile changes the profile, and the capacity to it if it differs; 0 learns
// on from what is known.
func (e *Estimator) SetProfile(profile int64) {
	if profile == e.cfg.Profile {
		return
	}
	e.cfg.Profile = profile
	if profile == 0 {
		profile = e.omega
	}
	e.start(profile)
}

// Resume goes on from a capacity that was learnt elsewhere.
func (e *Estimator) Resume(omega int64) { e.start(omega) }

// Capacity is Ω, tokens per period.
func (e *Estimator) Capacity() int64 { return e.omega }

// Floor is Ω_min, tokens per period. Haechi's Ω_prof - 3σ is so high that a real
// drop falls below it and is ignored for ever.
func (e *Estimator) Floor() int64 {
	if e.cfg.Floor != 0 {
		return e.cfg.Floor
	}
	return max(e.profile/2, e.reserved)
}

// step is η.
func (e *Estimator) step() int64 {
	if e.cfg.Step != 0 {
		return e.cfg.Step
	}
	return max(1, e.profile/100)
}

// Reserve says what is reserved from now on, tokens per period.
func (e *Estimator) Reserve(reserved int64) { e.reserved = reserved }

// Observe ends a period in which used tokens were served by the device.
// backlogged says that commands waited for the device, so that a lower use means
// a lower capacity and not a lower demand. It returns the new Ω.
func (e *Estimator) Observe(used int64, backlogged bool) int64 {
	if !backlogged || used >= e.Floor() {
		e.doubts = e.doubts[:0]
	}
	switch {
	case e.omega == 0 || e.cfg.Profile == 0 && used > e.omega+e.step():
		e.start(used)
	case float64(used) >= (1-e.cfg.Slack)*float64(e.omega):
		e.omega += e.step()
	case backlogged && used >= e.Floor():
		e.lower(used)
	case backlogged && e.cfg.Profile == 0:
		e.doubt(used)
	}
	return e.omega
}

// doubt learns a profile anew that was learnt from a short burst, such as of
// writes into a device's cache: a whole window of lower periods, though commands
// waited, says that the device cannot do half of it.
func (e *Estimator) doubt(used int64) {
	if e.doubts = append(e.doubts, used); len(e.doubts) == e.cfg.Window {
		e.start(mean(e.doubts))
		e.omega = max(e.omega, e.Floor())
	}
}

func mean(all []int64) int64 { return arith.Sum(all) / int64(len(all)) }

// lower sets Ω to the mean of the last lower periods, of which none was below
// the floor of its time.
func (e *Estimator) lower(used int64) {
	if len(e.window) == e.cfg.Window {
		copy(e.window, e.window[1:])
		e.window = e.window[:len(e.window)-1]
	}
	e.window = append(e.window, used)
	e.omega = max(mean(e.window), e.Floor())
}
