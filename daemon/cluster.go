package daemon

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lunar/cluster"
	"lunar/cluster/hearing"
	"lunar/cluster/heritage"
	"lunar/cluster/link"
	"lunar/cluster/node"
	"lunar/cluster/ownership"
	"lunar/cluster/promise"
	"lunar/cluster/revisions"
	"lunar/conf"
	"lunar/daemon/volumes"
	"lunar/target"
	"lunar/target/scsi"
	"lunar/target/scsi/relay"
)

// membership is this server as a node of a cluster.
type membership struct {
	conf        *conf.Cluster
	incarnation string
	state       cluster.State
	shared      *volumes.Cluster // what its volumes have in common
	links       *link.Links      // to the other nodes; nil: there are none
	at          string           // where they reach this one
	met         map[string]acquaintance
	server      *target.Server
	relays      []string                 // nodes that this one relays to; followPeers' alone
	down        map[string]outage        // nodes that have no link; followPeers' alone
	reached     hearing.Lasting[bool]    // nodes that have one, or had a moment ago; followPeers' alone
	recent      hearing.Lasting[peer]    // what nodes tell that live, or did a moment ago; followPeers' alone
	severing    atomic.Bool              // a node is asked to end what was relayed to it
	heard       map[string]string        // incarnations of nodes that were heard last; followPeers' alone
	keeper      *promise.Keeper          // nil: each node promises by itself
	living      atomic.Pointer[[]string] // the nodes that live
	log         *slog.Logger

	node    atomic.Pointer[node.Node] // nil: it has not joined yet
	changed chan struct{}             // something of the cluster may be otherwise
	own     atomic.Pointer[peer]      // what others are to know of this node
	known   atomic.Pointer[peers]
	judged  atomic.Pointer[judgement]
	// judgeAgain has what is judged be judged anew: the configuration has changed.
	judgeAgain atomic.Bool
	beside     sync.WaitGroup
	end        context.CancelFunc
	wrong      string // the last that was logged of other nodes
	forgetting forgetting
	untold     bool // it was logged that others do not know what has changed here; followPeers' alone

	documents revisions.Store
	joint     atomic.Pointer[joint]  // that is in force; nil: none
	behind    atomic.Pointer[string] // why the newest is not; nil or empty: it is
	full      atomic.Bool            // the cluster's state takes no changes
	failure   atomic.Pointer[string] // why it does not answer; nil: it does
	stranger  atomic.Bool            // the cluster's state has another identity than this node
	following sync.Mutex             // held while a revision is put into force
	retry     chan struct{}          // the node's own configuration has changed: the newest may go together with it
	keptID    string                 // of the revision that the state directory has; changed by who changes the configuration
	closing   sync.Once              // of the state
	unlinking sync.Once
}

// identityTime is how long a first start waits for the cluster's identity.
const identityTime = time.Minute

// stepTime is how long Ceph may take over a step of a takeover. Commands do not wait so long.
const stepTime = 30 * time.Second

// muteTime is how long Ceph may not answer this server while it answers another one, until that
// one gets the volumes. It is longer than Ceph takes to do without a storage daemon that has died.
const muteTime = 5 * time.Second

// enterCluster reaches what the nodes know together; nil: the server is alone.
func enterCluster(c *conf.Cluster, stateDir string, log *slog.Logger) (*membership, error) {
	if c == nil {
		return nil, nil
	}
	m := &membership{conf: c, incarnation: rand.Text(), log: log, met: map[string]acquaintance{}, down: map[string]outage{}, heard: map[string]string{}, changed: make(chan struct{}, 1), retry: make(chan struct{}, 1)}
	m.reached.For, m.recent.For = c.Hold/2, c.Hold/2 // commands wait for longer
	var err error
	if m.state, err = openState(c, stateDir, log); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.Named, err)
	}
	m.documents = revisions.Store{State: m.state, Keys: m.keys()}
	identity, err := m.identity(stateDir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cluster %s: its identity: %w", c.Named, err), m.close())
	}
	if err := m.openLinks(stateDir); err != nil {
		return nil, errors.Join(fmt.Errorf("cluster %s: cluster.link: %w", c.Named, err), m.close())
	}
	var life context.Context
	life, m.end = context.WithCancel(context.Background())
	go m.confirm(life, identity)
	m.shared = &volumes.Cluster{
		Life:     life,
		Identity: identity, Node: c.Node, Hold: c.Hold, Cached: c.LeaseCache,
		Access: func(owner string) map[uint16]scsi.PortAccess { return m.known.Load().access(owner) },
		Relay:  m.relay,
		Lost:   func(volume string, epoch uint64) { m.node.Load().Lost(volume, epoch) },
		Keys:   m.keys(),
		Inherit: func(ctx context.Context, volume string, epoch uint64, value string) (*heritage.Ledger, json.RawMessage, error) {
			return heritage.Open(ctx, heritage.Claim{State: m.state, Keys: m.keys(), Volume: volume, Node: c.Node, Epoch: epoch, Value: value})
		},
		Bequeath: func(ctx context.Context, volume string, value json.RawMessage) error {
			return heritage.Bequeath(ctx, m.state, m.keys(), volume, value)
		},
	}
	return m, nil
}

// close ends the connection with the state; nil has none.
func (m *membership) close() (err error) {
	if m != nil {
		m.closing.Do(func() { err = m.state.Close() })
	}
	return err
}

// is says what the node is like that a configuration makes of it.
func (m *membership) is(cfg *conf.Config) {
	if m == nil {
		return
	}
	own := m.self(cfg)
	m.own.Store(&own)
	m.known.Store(&peers{m.conf.Node: m.told()})
	m.judged.Store(&judgement{})
}

// told is what others are to know of this node now.
func (m *membership) told() peer {
	out := *m.own.Load()
	out.Config = &peerRevision{Revision: m.joint.Load().revision(), Behind: m.whyBehind()}
	out.Stranger = m.stranger.Load()
	return out
}

// volumes is what volumes are to know; nil: there is no cluster.
func (m *membership) volumes() *volumes.Cluster {
	if m == nil {
		return nil
	}
	return m.shared
}

// self is what the other nodes are to know of this one with a configuration.
func (m *membership) self(cfg *conf.Config) peer {
	own := selfOf(cfg, listened(cfg))
	own.Link, own.Forgets = m.at, true
	if m.links != nil {
		own.Relay = relay.Version
	}
	return own
}

// listened are the addresses that a configuration has for its portals.
func listened(cfg *conf.Config) func(tag uint16) []netip.AddrPort {
	return func(tag uint16) []netip.AddrPort {
		i := slices.IndexFunc(cfg.PortalGroups, func(g conf.PortalGroup) bool { return g.Tag == tag })
		return cfg.PortalGroups[i].Listen
	}
}

func (m *membership) keys() cluster.Keys { return cluster.KeysOf(m.conf.Named) }

// look has it looked at what other nodes are like, and what they are to know.
func (m *membership) look() {
	select {
	case m.changed <- struct{}{}:
	default: // who looks next sees this, too
	}
}

// clash refuses tags of portal groups that another node has.
func (m *membership) clash(own *peer) error {
	ctx, cancel := context.WithTimeout(context.Background(), m.conf.Lease)
	defer cancel()
	items, _, err := m.state.Get(ctx, m.keys().Nodes())
	if err != nil {
		m.log.Warn("whether other nodes have the tags of this one's portal groups is not known", "error", err)
		return nil // it joins when there is a quorum
	}
	all := map[string]json.RawMessage{}
	for _, i := range items {
		if name, ok := m.keys().NodeOf(i.Key); ok {
			if n, err := ownership.ParseNode(i.Value); err == nil { // else the node driver tells of it
				all[name] = n.About
			}
		}
	}
	known, err := peersOf(all)
	return errors.Join(err, known.clash(m.conf.Node, own))
}

// add has the node decide about a volume, which it knows by a revision.
func (m *membership) add(v *conf.Volume, s *volumes.Shared, by *joint) error {
	ctx, cancel := context.WithTimeout(m.shared.Life, m.conf.Lease)
	defer cancel()
	if err := s.Bequeath(ctx); err != nil { // if this node is the first owner it does it then
		m.log.Error("reservations of a volume are not in the cluster's state: hosts that they fence off may write", "volume", v.Name, "error", err)
	}
	return m.node.Load().Add(v.Name, m.volume(v, s, by), owned{s, m.forgetRelayed})
}

func (m *membership) volume(v *conf.Volume, s *volumes.Shared, by *joint) node.VolumeConfig {
	c := node.VolumeConfig{Owners: v.Owners, Cached: s.Cached(), BlockSize: v.BlockSize, Image: v.Image, Failback: m.failback(v)}
	if by.has([]string{"volumes", v.Name}) {
		c.Revision = by.Revision
	}
	return c
}

// failback is how long a better node must have lived to get a volume back by itself; 0: it does
// not, also while another node has other owners of it, which might give it away again.
func (m *membership) failback(v *conf.Volume) time.Duration {
	if v.Failback != conf.AutoFailback || m.known.Load().differ(m.conf.Node, m.own.Load(), v.Name) != nil {
		return 0
	}
	return failbackTime
}

// failbackTime is how long a node must have lived to get its volumes back by itself: one
// that starts again and again has none.
const failbackTime = 30 * time.Second

// awaitDecisions waits until it is decided for each volume who serves it. The others do not wait long
// for those that cannot be opened here: another node may still get them.
func (m *membership) awaitDecisions(all map[string]*volumes.Shared) {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		left := maps.Clone(all)
		maps.DeleteFunc(left, func(_ string, s *volumes.Shared) bool { return s.Owner() != "" })
		names, waited := slices.Sorted(maps.Keys(left)), time.Since(began)
		switch {
		case len(left) == 0:
			return
		case waited > m.conf.Suspect && m.fails(names):
			m.log.Warn("some volumes cannot be opened here, and are nobody's yet: the others are served without waiting for them", "volumes", names)
			return
		case waited > m.conf.Lease+m.conf.Hold:
			m.log.Warn("it is not decided yet who owns some volumes: their commands end as in transition until it is", "volumes", names)
			return
		}
	}
}

// fails reports whether this node could open none of some volumes.
func (m *membership) fails(all []string) bool {
	s, err := m.node.Load().Status()
	return err == nil && !slices.ContainsFunc(all, func(name string) bool { return !s.Volumes[name].Failing })
}

// peersEvery is how often it is looked at who the nodes are, where nothing is said of it.
const peersEvery = time.Second

// followPeers keeps what initiators are told of other nodes' portal groups, until ctx ends.
func (d *daemon) followPeers(ctx context.Context) {
	m := d.member
	tick := time.NewTicker(peersEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.changed:
		case <-tick.C:
		}
		s, err := m.node.Load().Status()
		if err != nil {
			return
		}
		m.judge(&s, d.config.Load(), d.Set)
		m.tell(ctx, &s)
		m.tellSizes(&s, d.Set)
		all := map[string]json.RawMessage{}
		for name, n := range s.Nodes {
			all[name] = n.About
		}
		living, err := peersOf(all)
		m.meet(&s, living)
		m.forget(ctx, &s, living)
		linked := m.linkedToo(&s, living)
		m.relays = m.reach(&s, d.Shared(), linked)
		own := m.current()
		m.alive(all)
		m.complain(errors.Join(err, living.clash(m.conf.Node, own), living.differ(m.conf.Node, own, slices.Sorted(maps.Keys(own.Owners))...)))
		now := peers(m.recent.See(time.Now(), linked))
		now[m.conf.Node] = *own // also while the record is not there, or another
		if reflect.DeepEqual(*m.known.Load(), now) {
			continue
		}
		m.known.Store(&now)
		m.look() // others are to know of it
		d.SetElsewhere(now.elsewhere(m.conf.Node))
		d.reconsider()
		for _, s := range d.Shared() {
			s.Refresh()
		}
	}
}

// reconsider has volumes go back to the first of their owners by themselves while all nodes
// have the same list, and not otherwise: two nodes might each give them to the other.
func (d *daemon) reconsider() {
	d.tellOf(func(v *conf.Volume) bool { return v.Failback == conf.AutoFailback })
}

// tellOf tells the node what volumes with owners are to be.
func (d *daemon) tellOf(which func(*conf.Volume) bool) {
	cfg := d.config.Load()
	for i := range cfg.Volumes {
		if v := &cfg.Volumes[i]; v.Clustered() && which(v) {
			if open := d.SharedOf(v.Name); open != nil {
				_ = d.member.node.Load().Change(v.Name, d.member.volume(v, open, d.joint())) // it stops
			}
		}
	}
}

// complain logs what is wrong with other nodes, once: what cannot be read, and is left out of
// what initiators are told, or tags of a node that came at the same time as this one, or while
// etcd did not answer, and volumes with other owners there.
func (m *membership) complain(err error) {
	was := m.wrong
	if m.wrong = ""; err != nil {
		m.wrong = err.Error()
	}
	if m.wrong != "" && m.wrong != was {
		m.log.Error("the cluster's nodes do not fit together", "error", err)
	}
}

// tell has the other nodes know what this one is like by now.
func (m *membership) tell(ctx context.Context, s *node.Status) {
	own, unable := m.current().encode(), m.judged.Load().unable
	if there, lives := s.Nodes[m.conf.Node]; !lives || bytes.Equal(there.About, own) && maps.Equal(there.Unable, unable) {
		return
	}
	within, cancel := context.WithTimeout(ctx, m.conf.Lease)
	defer cancel()
	err := m.node.Load().Tell(within, own, unable)
	if err != nil && ctx.Err() == nil && !m.untold {
		m.log.Warn("other nodes do not know yet what has changed of this one", "error", err)
	}
	m.untold = err != nil
}

// tellSizes has the owner's records say which size volumes have got that this node owns.
func (m *membership) tellSizes(s *node.Status, set *volumes.Set) {
	for name, v := range s.Volumes {
		open := set.SharedOf(name)
		if open == nil || v.Owner.Node != m.conf.Node || open.Owner() != m.conf.Node {
			continue
		}
		if size := open.Size(); size != v.Owner.Size {
			_ = m.node.Load().Resized(name, size) // it stops
		}
	}
}

// joined is the node that the server is in a cluster; nil: in none, or not yet.
func (d *daemon) joined() *node.Node {
	if d.member == nil {
		return nil
	}
	return d.member.node.Load()
}

// leaveTime is how long a stop may take to give volumes to other nodes.
const leaveTime = 10 * time.Second

// leaveCluster gives the volumes to other nodes, and leaves.
func (d *daemon) leaveCluster(ctx context.Context) (err error) {
	m := d.member
	if m == nil {
		return nil
	}
	defer m.end()
	if m.keeper != nil {
		m.keeper.Stop()
	}
	if n := m.node.Load(); n != nil {
		within, cancel := context.WithTimeout(ctx, leaveTime)
		defer cancel()
		err = n.Stop(within)
		m.end()
		m.beside.Wait()
		for _, s := range d.Shared() {
			err = errors.Join(err, s.End())
		}
	}
	return errors.Join(err, m.close())
}
