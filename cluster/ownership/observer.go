package ownership

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"lunar/cluster"
)

// Node is the value of a node's own key (cluster.Keys.Node).
type Node struct {
	Version     int    `json:"version"`
	Incarnation string `json:"incarnation"`
	// About is what nodes tell each other besides, which ownership does not ask.
	About json.RawMessage `json:"about,omitempty"`
	// Unable has the volumes that the node could not open, and why.
	Unable map[string]string `json:"unable,omitempty"`
}

// Encode returns a value as it is stored.
func (n Node) Encode() []byte { n.Version = version; return encode(n) }

// ParseNode reads what Node.Encode writes.
func ParseNode(value []byte) (n Node, err error) {
	if err = json.Unmarshal(value, &n); err == nil && (n.Version != version || n.Incarnation == "") {
		err = fmt.Errorf("found version %d and incarnation %q, expected version %d", n.Version, n.Incarnation, version)
	}
	if err != nil {
		return Node{}, fmt.Errorf("node's record: %w", err)
	}
	return n, nil
}

// Observer makes of the events of a cluster's state what the machines of a node are told.
type Observer struct {
	View     View
	Machines map[string]*Machine // by volume

	keys   cluster.Keys
	node   string
	own    cluster.LeaseID // that the node's own record has
	nodes  map[string]Node
	pulses map[string]string // incarnations
	drains map[string]bool
	told   map[string]told // by volume: for machines that come later
	read   bool
	at     cluster.Revision
}

// told is what is known of a volume.
type told struct {
	owner, move, header cluster.Item
	record              Record // what owner says; it is read once, however many ask
	wrong               error  // why it cannot be read
}

// owned notes the item of an owner's record.
func (t told) owned(item cluster.Item) told {
	t.owner, t.record, t.wrong = item, Record{}, nil
	if item.Modified != 0 {
		t.record, t.wrong = Parse(item.Value)
	}
	return t
}

// NewObserver returns one that knows nothing.
func NewObserver(keys cluster.Keys, node string) *Observer {
	o := &Observer{Machines: map[string]*Machine{}, keys: keys, node: node}
	o.View.Nodes = map[string]Peer{}
	o.forget()
	return o
}

func (o *Observer) forget() {
	o.nodes, o.pulses, o.drains, o.told, o.own = map[string]Node{}, map[string]string{}, map[string]bool{}, map[string]told{}, 0
	o.View.Forgotten, o.View.forgotten = Forgotten{}, 0
}

// Begin tells everything that there is, at the beginning and after a Watch has ended.
func (o *Observer) Begin(items []cluster.Item, at cluster.Revision, now time.Time) (err error) {
	o.at = at
	before := o.View.Nodes
	o.forget()
	o.View.Nodes = map[string]Peer{}
	for _, i := range items {
		if e := o.see(cluster.Event{Item: i}, now); e != nil {
			err = e
		}
	}
	for name, p := range o.View.Nodes {
		if was, lived := before[name]; lived && was.Incarnation == p.Incarnation {
			p.Since = was.Since
			if !p.Heard && !was.Heard {
				p.Unheard = was.Unheard
			}
			o.View.Nodes[name] = p
		}
	}
	o.read = true
	for volume := range o.Machines {
		if e := o.tell(volume); e != nil {
			err = e
		}
	}
	return err
}

// Add has a machine decide about its volume.
func (o *Observer) Add(volume string, m *Machine) error {
	o.Machines[volume] = m
	if !o.read {
		return nil
	}
	return o.tell(volume)
}

// See tells an event, and returns the volume that it is about; empty: it may be about all.
// An error says what could not be read: it is as if it were not there.
func (o *Observer) See(e cluster.Event, now time.Time) (volume string, err error) {
	o.at = e.Modified
	if err := o.see(e, now); err != nil {
		return "", err
	}
	if volume, ok := o.volumeOf(e.Key); ok {
		return volume, o.tell(volume)
	}
	return "", nil
}

func (o *Observer) volumeOf(key string) (string, bool) {
	if volume, ok := o.keys.OwnerOf(key); ok {
		return volume, true
	}
	if volume, ok := o.keys.HeaderOf(key); ok {
		return volume, true
	}
	return o.keys.MoveOf(key)
}

func (o *Observer) see(e cluster.Event, now time.Time) error {
	item := e.Item
	if e.Deleted {
		item = cluster.Item{}
	}
	if volume, ok := o.keys.OwnerOf(e.Key); ok {
		o.learn(volume, o.told[volume].owned(item))
	} else if volume, ok := o.keys.MoveOf(e.Key); ok {
		t := o.told[volume]
		t.move = item
		o.learn(volume, t)
	} else if volume, ok := o.keys.HeaderOf(e.Key); ok {
		t := o.told[volume]
		t.header = item
		o.learn(volume, t)
	} else if name, ok := o.keys.NodeOf(e.Key); ok {
		return o.lives(name, item, now)
	} else if name, ok := o.keys.PulseOf(e.Key); ok {
		if o.pulses[name] = string(item.Value); e.Deleted {
			delete(o.pulses, name)
		}
		o.hear(name, now)
	} else if name, ok := o.keys.DrainOf(e.Key); ok {
		if o.drains[name] = true; e.Deleted {
			delete(o.drains, name)
		}
		o.hear(name, now)
	} else if e.Key == o.keys.Forgotten() {
		return o.forgot(item)
	}
	return nil
}

// learn notes what is known of a volume, and nothing of one of which the state has nothing.
func (o *Observer) learn(volume string, t told) {
	if o.told[volume] = t; t.owner.Modified == 0 && t.move.Modified == 0 && t.header.Modified == 0 {
		delete(o.told, volume)
	}
}

// forgot notes what is known of records that were removed.
func (o *Observer) forgot(item cluster.Item) (err error) {
	o.View.Forgotten, o.View.forgotten = Forgotten{}, item.Modified
	if item.Modified != 0 {
		o.View.Forgotten, err = parseForgotten(item.Value)
	}
	return err
}

// tell tells the machine of a volume, if there is one, whose it is.
func (o *Observer) tell(volume string) error {
	m := o.Machines[volume]
	if m == nil {
		return nil
	}
	t := o.told[volume]
	if t.wrong != nil {
		return fmt.Errorf("%s: %w", t.owner.Key, t.wrong)
	}
	m.Owned(t.record, t.owner.Modified)
	if t.move.Modified == 0 {
		m.Asked(nil, 0)
		return nil
	}
	q, err := ParseRequest(t.move.Value)
	if err != nil {
		return fmt.Errorf("%s: %w", t.move.Key, err)
	}
	m.Asked(&q, t.move.Modified)
	return nil
}

// lives notes a node's record, or that it is gone.
func (o *Observer) lives(name string, item cluster.Item, now time.Time) (err error) {
	var n Node
	if item.Modified != 0 {
		n, err = ParseNode(item.Value)
	}
	if name == o.node {
		o.own = item.Lease
	}
	if n.Incarnation == "" {
		delete(o.View.Nodes, name)
		delete(o.nodes, name)
		return err
	}
	o.nodes[name] = n
	since := now
	if was, lived := o.View.Nodes[name]; lived && was.Incarnation == n.Incarnation {
		since = was.Since
	}
	o.View.Nodes[name] = Peer{Incarnation: n.Incarnation, Modified: item.Modified, Since: since, Unheard: o.View.Nodes[name].Unheard, Unable: n.Unable}
	o.hear(name, now)
	return nil
}

func (o *Observer) hear(name string, now time.Time) {
	p, lives := o.View.Nodes[name]
	if !lives {
		return
	}
	p.Heard, p.Draining = o.pulses[name] == p.Incarnation, o.drains[name]
	switch {
	case p.Heard:
		p.Unheard = time.Time{}
	case p.Unheard.IsZero():
		p.Unheard = now
	}
	o.View.Nodes[name] = p
}

// About returns what the living nodes tell of themselves.
func (o *Observer) About() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for name, n := range o.nodes {
		all[name] = n.About
	}
	return all
}

// Holds tells the lease that the node has, and until when it lasts; 0: none.
func (o *Observer) Holds(lease cluster.LeaseID, until time.Time) {
	o.View.Current = lease != 0 && o.own == lease
	o.View.Until = until
}

// Links tells which nodes are heard without the state. One that is to have no volumes keeps none
// by that.
func (o *Observer) Links(all map[string]Linked) {
	maps.DeleteFunc(all, func(node string, _ Linked) bool { return o.drains[node] })
	o.View.Linked = all
}

// Drained returns the nodes that are to have no volumes, living or not.
func (o *Observer) Drained() map[string]bool { return maps.Clone(o.drains) }

// Owners returns the owners' records of all volumes, of those without a machine too.
func (o *Observer) Owners() map[string]Record {
	all := map[string]Record{}
	for volume, t := range o.told {
		if t.wrong == nil && t.owner.Modified != 0 {
			all[volume] = t.record
		}
	}
	return all
}

// Headers returns what the state has as the headers of encrypted volumes. Nobody changes it.
func (o *Observer) Headers() map[string][]byte {
	all := map[string][]byte{}
	for volume, t := range o.told {
		if t.header.Modified != 0 {
			all[volume] = t.header.Value
		}
	}
	return all
}

// Revision is that of the last event.
func (o *Observer) Revision() cluster.Revision { return o.at }

// Asked reports whether a move of a volume is asked for.
func (o *Observer) Asked(volume string) bool { return o.told[volume].move.Modified != 0 }
