package nodes

import (
	"fmt"
	"slices"

	"lunar/scheduler"
	"lunar/scheduler/haechi"
)

// Config sets a Controller.
type Config struct {
	Term      uint64
	Estimator haechi.EstimatorConfig // of devices that several nodes use
	Profiles  map[string]int64       // capacities of devices to start from, by name; tokens per period
}

// Controller keeps the promise over all nodes. One owner calls it: Hear with what nodes
// answer to Ask, and at each Deadline Deal, after which each node gets its Grant.
type Controller struct {
	config  Config
	coord   *scheduler.Coordinator
	peers   map[string]*peer
	slots   []string // names of nodes; empty: free
	devices map[string]*known
	entered int64 // the last salt that a node has got
	nodes   int64 // of the last Deal
	now     int64 // when that was
	silences
	read Report
}

// peer is a node that reports.
type peer struct {
	mirror
	slot  int
	heard int64 // when
	asked bool  // and it has not answered
	late  bool  // it had not when others were dealt what there is
	grant Grant
}

// known is a device that nodes use.
type known struct {
	*scheduler.Device
	used int64 // when a period began in which a node had told of it
}

// ofNode tells devices of one node from those of all by their names.
func ofNode(node, device string) string { return node + "\x00" + device }

// NewController returns a controller that knows of no node.
func NewController(c Config) *Controller {
	foreign := func(device string) bool { return slices.Contains([]byte(device), 0) }
	return &Controller{
		config: c, peers: map[string]*peer{}, devices: map[string]*known{},
		coord: scheduler.NewCoordinator(scheduler.CoordinatorConfig{
			Period: period, Intervals: intervals, Even: 16, Foreign: foreign,
			Monitor: haechi.MonitorConfig{Estimator: c.Estimator}, Profiles: c.Profiles,
		}),
	}
}

// Term is the controller's.
func (c *Controller) Term() uint64 { return c.config.Term }

// Deadline is when Deal is due; 0 before the first.
func (c *Controller) Deadline() int64 { return c.coord.Deadline() }

// Ask is what a node is to be asked now.
func (c *Controller) Ask(node string) Ask {
	a := Ask{Term: c.config.Term}
	if p := c.peers[node]; p != nil {
		a.Base, p.asked = p.number, true
	}
	return a
}

// Hear takes a node's report at now.
func (c *Controller) Hear(node string, message []byte, now int64) error {
	if err := c.read.Parse(message); err != nil {
		return fmt.Errorf("report of node %s: %w", node, err)
	}
	p := c.peers[node]
	if p == nil {
		p = c.enter(node)
	}
	if err := p.apply(&c.read); err != nil {
		return fmt.Errorf("report of node %s: %w", node, err)
	}
	c.speak(node, p.entities)
	p.heard, p.asked, p.late = now, false, false
	c.coord.Collect(&p.report)
	return nil
}

func (c *Controller) enter(node string) *peer {
	slot := slices.Index(c.slots, "")
	if slot < 0 {
		slot = len(c.slots)
		c.slots = append(c.slots, "")
		c.coord.Grow(len(c.slots))
	}
	c.entered = c.entered%salts + 1
	p := &peer{slot: slot, mirror: mirror{salt: c.entered * numbers, device: func(name string, shared bool) *scheduler.Device { return c.device(node, name, shared) }}}
	p.report.Thread = slot
	c.slots[slot], c.peers[node] = node, p
	return p
}

func (c *Controller) device(node, name string, shared bool) *scheduler.Device {
	if !shared {
		name = ofNode(node, name)
	}
	if c.devices[name] == nil {
		c.devices[name] = &known{Device: &scheduler.Device{Name: name}, used: c.now}
	}
	return c.devices[name].Device
}

// forget drops devices of which no node has told for long.
func (c *Controller) forget() {
	for _, p := range c.peers {
		for i := range p.report.Servers {
			c.devices[p.report.Servers[i].Device.Name].used = c.now
		}
	}
	for name, d := range c.devices {
		if c.now-d.used > forgotten {
			c.coord.Forget(d.Device)
			delete(c.devices, name)
		}
	}
}

// Awaits reports whether a node has not answered yet that does so mostly: what is dealt a little
// later knows what it wants.
func (c *Controller) Awaits() bool {
	for _, p := range c.peers {
		if p.asked && !p.late {
			return true
		}
	}
	return false
}

// Deal divides what there is over the nodes that have reported, of those that live. One that has
// not keeps what it has.
func (c *Controller) Deal(now int64, living []string) {
	for _, node := range slices.Clone(c.slots) {
		p := c.peers[node]
		if p == nil {
			continue
		}
		lives := slices.Contains(living, node)
		if lives && now-p.heard <= lasts {
			p.late = p.asked
			continue
		}
		if lives {
			c.fall(node, p.heard+Holds, c.coord.Shares(p.slot))
		}
		c.coord.Collect(&scheduler.GateReport{Thread: p.slot})
		delete(c.peers, node)
		c.slots[p.slot] = ""
	}
	c.nodes, c.now = int64(max(1, len(living))), now
	heard := func(node string) bool { return c.peers[node] != nil }
	if c.listen(now, living, heard) {
		for _, p := range c.peers {
			c.had(p.entities)
		}
	}
	c.coord.Elsewhere(c.elsewhere(now, c.nodes))
	c.coord.Redistribute(now, nil)
	if c.coord.AtPeriod() {
		c.forget()
	}
}

// reporting are the nodes that report.
func (c *Controller) reporting() (nodes []string) {
	for _, node := range c.slots {
		if node != "" {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// Granted are the nodes that are to be sent a Grant.
func (c *Controller) Granted() []string {
	return slices.DeleteFunc(c.reporting(), func(node string) bool { return c.coord.Away(c.peers[node].slot) })
}

// Grant is what the last Deal has given a node, as a message that is sent at now, behind to.
func (c *Controller) Grant(node string, now int64, to []byte) []byte {
	p := c.peers[node]
	c.coord.Dealt(p.slot, &p.grant.NodeGrant)
	for i := range p.grant.Parts {
		p.grant.Parts[i].Number -= p.salt
	}
	p.grant.Term, p.grant.Report = c.config.Term, p.number
	p.grant.Left, p.grant.Lasts, p.grant.Period, p.grant.Nodes = c.coord.Left(now), Holds, c.coord.AtPeriod(), c.nodes
	return p.grant.Append(to)
}
