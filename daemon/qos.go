package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"

	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/scheduler"
	"lunar/scheduler/haechi"
	"lunar/target"
)

func configuredSet(q *conf.QoS) ruleSet { return ruleSet{q.Rules, q.Groups, q.Overcommit} }

// normal returns the normal form, which shares nothing with the set.
func (s ruleSet) normal() (n ruleSet) {
	n.Overcommit = s.Overcommit
	n.Rules, n.Groups = conf.NormalRules(s.Rules, s.Groups)
	return n
}

// openQoS admits the configured rules. It runs before anything
// else is opened.
func openQoS(cfg *conf.Config, log *slog.Logger) (*qos, error) {
	q := &qos{cfg: cfg, log: log}
	q.mu.configured = configuredSet(&cfg.QoS)
	q.mu.live = q.mu.configured
	policy, err := q.policy(q.mu.live)
	if err != nil {
		return nil, err
	}
	q.mu.outcome, err = q.admit(policy, nil, q.devices.Capacities(cfg), cfg.QoS.Overcommit)
	return q, err
}

func (q *qos) policy(set ruleSet) (*scheduler.Policy, error) {
	policy, err := scheduler.NewPolicy(set.Rules, set.Groups, q.cfg.QoS.Cost)
	if err != nil {
		return nil, err
	}
	return policy.WithNetwork(q.cfg.QoS.Network), nil
}

// slack is how much less than the whole capacity counts as all of it: nobody
// uses exactly all.
const slack = 0.002

// settle measures the devices if that is wanted, says how the rules stand to
// what was found, and returns the server's settings. A device may be slow at
// one start: what was measured is a reason to warn, not to stay down. linked says that there are
// other nodes, with which promises are kept together.
func (q *qos) settle(linked bool) (target.QoS, error) {
	policy, err := q.policy(q.mu.live)
	if err != nil {
		return target.QoS{}, err
	}
	c := &q.cfg.QoS
	if c.Profile > 0 {
		q.measured = measureDevices(q.cfg, q.cfg.Volumes, q.log)
		if q.mu.outcome, err = q.admit(policy, nil, q.startCapacities(), c.Overcommit); err != nil {
			q.mu.outcome = outcome{Note: err.Error(), Standing: true}
		}
	}
	q.mu.outcome.tell(q.log)
	settings := target.QoS{Policy: policy, Gate: scheduler.GateConfig{Arbitration: c.Arbitration, Mode: c.Pool, Window: c.Window, Turn: int64(c.Turn)}}
	settings.Coordinator.Monitor.Estimator = haechi.EstimatorConfig{Profile: c.Capacity, Slack: slack}
	settings.Coordinator.Profiles = q.startCapacities()
	if settings.Coordinator.Above = linked; linked {
		settings.Coordinator.Foreign = medium.Shared
	}
	return settings, nil
}

// tell logs an outcome.
func (o outcome) tell(log *slog.Logger) {
	switch {
	case o.Standing:
		log.Warn("reservations are more than the capacity", "qos", o.Note)
	case o.Note != "":
		log.Info("reservations", "qos", o.Note)
	}
}

// changeRules puts what change makes of a copy of the rules in force, which nothing
// else changes meanwhile, into force on all event threads, until the next start. If
// there is an error nothing has changed: it is change's, joins errors of type *scheduler.RuleError,
// whose Index is of the rules as change left them, or wraps a *haechi.AdmissionError.
func (d *daemon) changeRules(change func(*ruleSet) error) (outcome, error) {
	q := d.qos
	q.mu.Lock()
	defer q.mu.Unlock()
	return d.changeLocked(change)
}

// changeRulesFor is changeRules with a configuration that takes the place of the
// one that the rules were admitted by, unless there is an error.
func (d *daemon) changeRulesFor(cfg *conf.Config, change func(*ruleSet) error) (outcome, error) {
	q := d.qos
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.cfg
	q.cfg = cfg
	o, err := d.changeLocked(change)
	if err != nil {
		q.cfg = was
		return o, err
	}
	d.SetCapacities(q.startCapacities())
	return o, nil
}

// changeLocked is called under the lock.
func (d *daemon) changeLocked(change func(*ruleSet) error) (outcome, error) {
	q := d.qos
	set := q.mu.live.normal()
	if err := change(&set); err != nil {
		return outcome{}, err
	}
	policy, admitted, err := d.admitLocked(set)
	if err != nil {
		return outcome{}, err
	}
	d.SetQoS(policy)
	q.mu.live, q.mu.outcome = set.normal(), admitted
	admitted.tell(q.log)
	return admitted, nil
}

// tryRules says whether rules could be put into force with a configuration.
func (d *daemon) tryRules(cfg *conf.Config, set ruleSet) (outcome, error) {
	q := d.qos
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.cfg
	q.cfg = cfg
	defer func() { q.cfg = was }()
	_, admitted, err := d.admitLocked(set)
	return admitted, err
}

// admitLocked makes a policy of rules if they may be put into force. It is called under the lock.
func (d *daemon) admitLocked(set ruleSet) (*scheduler.Policy, outcome, error) {
	q := d.qos
	if err := q.check(set); err != nil {
		return nil, outcome{}, err
	}
	set = set.normal()
	policy, err := q.policy(set)
	if err != nil {
		return nil, outcome{}, err
	}
	connected, silent := d.connected()
	admitted, err := q.admit(policy, mapped(q.cfg, q.devicesOf(), connected), q.capacities(d.Server), set.Overcommit)
	if err != nil {
		return nil, outcome{}, err
	}
	onThreads, err := q.admitThreads(policy, d.flowsHere(), d.Homes(), d.QoS("").Threads, set.Overcommit)
	if err != nil {
		return nil, outcome{}, err
	}
	return policy, admitted.with(onThreads).with(unheard(silent)), nil
}

// check refuses what a configuration could not say either.
func (q *qos) check(set ruleSet) error {
	errs := []error{scheduler.Validate(set.Rules, set.Groups), scheduler.ValidateCost(set.Rules, q.cfg.QoS.Cost)}
	for i := range set.Rules {
		errs = append(errs, checkNames(i, &set.Rules[i])...)
	}
	for _, g := range set.Groups {
		for _, p := range g.Initiators {
			if !conf.ValidPattern(p) {
				errs = append(errs, fmt.Errorf("qos group %s: initiators: found %q, expected %s", g.Name, p, conf.WantPattern))
			}
		}
	}
	return errors.Join(errs...)
}

// checkNames tests a rule's name and those that it is about.
func checkNames(index int, r *scheduler.Rule) (errs []error) {
	add := func(field, found, expected string) {
		errs = append(errs, &scheduler.RuleError{Index: index, Rule: r.Name, Field: field, Reason: fmt.Sprintf("found %q, expected %s", found, expected)})
	}
	if r.Name == "" {
		add("name", "", "a name")
	}
	if r.Target != "" && !conf.ValidPattern(r.Target) {
		add("target", r.Target, conf.WantPattern)
	}
	for _, p := range r.Initiators {
		if !conf.ValidPattern(p) {
			add("initiators", p, conf.WantPattern)
		}
	}
	return errs
}

// qosState is how the rules stand.
type qosState struct {
	Configured ruleSet          // of the file
	Live       ruleSet          // in force
	Changed    bool             // they differ
	Outcome    outcome          // of the admission of those in force
	Capacities map[string]int64 // that admission goes by, tokens/s by device; 0: not known

	cfg      *conf.Config     // that they were admitted by
	measured map[string]int64 // tokens/s by device
}

// rules says which rules are in force.
func (d *daemon) rules() qosState {
	q := d.qos
	q.mu.Lock()
	defer q.mu.Unlock()
	configured := q.mu.configured
	return qosState{
		Configured: configured, Live: q.mu.live, Changed: !reflect.DeepEqual(configured, q.mu.live),
		Outcome: q.mu.outcome, Capacities: q.capacities(d.Server),
		cfg: q.cfg, measured: maps.Clone(q.measured),
	}
}

// reconfigured notes what the configuration file has now.
func (q *qos) reconfigured(set ruleSet) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.configured = set
}

// warnings are what stands until the rules change.
func (d *daemon) warnings() []string {
	d.qos.mu.Lock()
	defer d.qos.mu.Unlock()
	if o := d.qos.mu.outcome; o.Standing {
		return []string{"qos: " + o.Note}
	}
	return nil
}
