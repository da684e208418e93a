package scheduler

// EstimatorConfig sets Haechi's adaptive capacity estimation. Capacities are
// tokens per period.
type EstimatorConfig struct {
	Profile int64   // Ω_prof: the capacity to start from; 0 is the first use seen
	Floor   int64   // Ω_min: use below it is not taken for the capacity; 0 is half of Profile
	Step    int64   // η: how far a fully used capacity is raised; 0 is 1 % of Profile
	Window  int     // M: how many lower periods are averaged; 0 is 5
	Slack   float64 // a use of (1-Slack)·Ω counts as all of it
}

// Estimator follows the capacity Ω of a backstore from period to period.
type Estimator struct {
	cfg    EstimatorConfig
	omega  int64
	window []int64 // the last lower periods, oldest first
}

// NewEstimator returns an estimator at its profile.
func NewEstimator(cfg EstimatorConfig) *Estimator {
	if cfg.Window == 0 {
		cfg.Window = 5
	}
	e := &Estimator{cfg: cfg, window: make([]int64, 0, cfg.Window)}
	e.start(cfg.Profile)
	return e
}

// start sets the profile and what depends on it.
func (e *Estimator) start(profile int64) {
	e.cfg.Profile, e.omega = profile, profile
	if e.cfg.Floor == 0 {
		e.cfg.Floor = profile / 2
	}
	if e.cfg.Step == 0 {
		e.cfg.Step = profile / 100
	}
}

// Capacity is Ω, tokens per period.
func (e *Estimator) Capacity() int64 { return e.omega }

// Floor is Ω_min, tokens per period.
func (e *Estimator) Floor() int64 { return e.cfg.Floor }

// SetFloor replaces Ω_min; the monitor keeps it at or above the reservations.
func (e *Estimator) SetFloor(floor int64) { e.cfg.Floor = floor }

// Observe ends a period in which used tokens were served. backlogged says that
// commands waited for the device, so that a lower use means a lower capacity
// and not a lower demand. It returns the new Ω.
func (e *Estimator) Observe(used int64, backlogged bool) int64 {
	switch {
	case e.omega == 0:
		e.start(used)
	case float64(used) >= (1-e.cfg.Slack)*float64(e.omega):
		e.omega += max(1, e.cfg.Step)
	case backlogged && used >= e.cfg.Floor:
		e.lower(used)
	}
	return e.omega
}

// lower sets Ω to the mean of the last lower periods.
func (e *Estimator) lower(used int64) {
	if len(e.window) == e.cfg.Window {
		copy(e.window, e.window[1:])
		e.window = e.window[:len(e.window)-1]
	}
	e.window = append(e.window, used)
	sum := int64(0)
	for _, u := range e.window {
		sum += u
	}
	e.omega = sum / int64(len(e.window))
}
