package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"lunar/cluster/link"
	"lunar/cluster/node"
	"lunar/cluster/sever"
	"lunar/daemon/volumes"
	"lunar/target"
	"lunar/target/scsi"
	"lunar/target/scsi/relay"
)

// carrier brings commands to the node that owns their volume since an epoch, by the links. It
// implements scsi.Carrier.
type carrier struct {
	links    *link.Links
	node     string
	epoch    uint64 // 0: the node is not asked as an owner
	patience time.Duration
}

// Patience implements scsi.Carrier.
func (c carrier) Patience() time.Duration { return c.patience }

// Server implements scsi.Carrier.
func (c carrier) Server() string { return c.node }

// Break implements scsi.Carrier.
func (c carrier) Break(lane uint32) { c.links.Break(c.node, link.Command, lane) }

// Carry implements scsi.Carrier.
func (c carrier) Carry(m scsi.Message, done func(answer []byte, err error)) error {
	return ofCarrier(c.links.Start(c.node, link.Message{Kind: kindOf(m), Lane: m.Lane, Room: m.Room, Body: m.Body}, func(answer []byte, err error) {
		done(answer, ofCarrier(err))
	}))
}

func kindOf(m scsi.Message) link.Kind {
	switch {
	case m.Command:
		return link.Command
	case m.Follow:
		return link.Follow
	}
	return link.Manage
}

// ofCarrier makes an error of links one of a scsi.Carrier.
func ofCarrier(err error) error {
	if errors.Is(err, link.ErrUnreachable) {
		return fmt.Errorf("%w: %w", scsi.ErrNotSent, err)
	}
	return err
}

// relay is volumes.Cluster.Relay.
func (m *membership) relay(owner string, epoch uint64) scsi.Carrier {
	if m.links == nil {
		return nil
	}
	return carrier{m.links, owner, epoch, m.conf.Hold}
}

// takeRelayed has the server carry out what other nodes relay to it. It is called before links are
// open.
func (m *membership) takeRelayed(s *target.Server) {
	m.server = s
	if m.links == nil {
		return
	}
	handle := func(from link.Peer, body []byte, answer func(...[]byte)) {
		s.Relayed(target.RelayPeer{Node: from.Node, Incarnation: from.Incarnation, Back: carrier{m.links, from.Node, 0, m.conf.Hold}}, body, answer)
	}
	for _, kind := range []link.Kind{link.Command, link.Follow, link.Manage} {
		m.links.Handle(kind, handle)
	}
	m.links.Watch(func(string) { m.look() })
}

// current is what others are to know of this node now. It is followPeers' alone.
func (m *membership) current() *peer {
	own := m.told()
	own.Relays = m.relays
	return &own
}

// forgetRelayed drops the nexuses of other nodes' sessions with a volume that this one does not
// own.
func (m *membership) forgetRelayed(s *volumes.Shared) {
	m.server.ForgetRelayed(s.Unit(), "", func() {})
}

// lossTime is how long there may be no link to a node until its sessions' nexuses are lost.
const lossTime = 30 * time.Second

// outage is the time in which there is no link to a node.
type outage struct{ since, lost time.Time }

// reach looks which nodes this one can relay to: to which there is a link, or was a moment ago, so that
// hosts are not told of each outage. Those to which there has been no link for long have
// lost their sessions' nexuses here, and are told of this node's again when there is one: shorter
// outages cost the commands alone whose answers are lost.
func (m *membership) reach(st *node.Status, all []*volumes.Shared, told peers) []string {
	if m.links == nil {
		return nil
	}
	now, there := time.Now(), map[string]bool{}
	for name := range m.links.All() {
		m.hear(name)
	}
	for name, p := range told {
		out, down := m.down[name]
		if down && now.Sub(out.since) > m.reached.For {
			m.sever(st, name, all)
		}
		switch {
		case name == m.conf.Node || p.Relay != relay.Version:
		case m.links.Up(name):
			there[name] = true
			if !down {
				break
			}
			delete(m.down, name)
			for _, s := range all {
				if now.Sub(out.since) > lossTime/2 { // it may have counted from another moment
					s.Unit().Reopen()
				}
			}
		case !down:
			m.down[name] = outage{now, now.Add(lossTime)}
		case now.After(out.lost):
			m.server.ForgetRelayed(nil, name, func() {})
			m.down[name] = outage{out.since, now.Add(lossTime)}
		}
	}
	return slices.Sorted(maps.Keys(m.reached.See(now, there)))
}

// hear has the nexuses dropped that an earlier process of a node had.
func (m *membership) hear(name string) {
	h := m.links.Heard(name)
	if h.Incarnation == "" || m.heard[name] == h.Incarnation {
		return
	}
	m.heard[name] = h.Incarnation
	m.server.ForgetEarlier(name, h.Incarnation)
}

// sever has a node to which there is no link end by the state what was relayed to it, if there are
// commands whose outcome nobody knows: hosts cannot wait until there is a link.
func (m *membership) sever(st *node.Status, name string, all []*volumes.Shared) {
	var settle []func()
	incarnation := ""
	for _, s := range all {
		owner := st.Volumes[s.Unit().Name()].Owner
		if owner.Node != name || s.Owner() != name {
			continue
		}
		if one := s.Unit().Unsettled(); one != nil {
			settle, incarnation = append(settle, one), owner.Incarnation
		}
	}
	if settle == nil || m.severing.Swap(true) {
		return
	}
	m.beside.Go(func() {
		defer m.severing.Store(false)
		ctx, cancel := context.WithTimeout(m.shared.Life, m.conf.Hold)
		defer cancel()
		if err := m.severs().Ask(ctx, m.conf.Node, name, incarnation); err != nil {
			m.log.Warn("it is not known what has become of commands that were relayed to another node: they wait", "node", name, "error", err)
			return
		}
		m.log.Info("another node has ended what was relayed to it, for want of a link", "node", name)
		for _, one := range settle {
			one()
		}
	})
}

func (m *membership) severs() sever.State { return sever.State{State: m.state, Keys: m.keys()} }

// serveSevers ends what other nodes have relayed that ask for it by the state.
func (m *membership) serveSevers(ctx context.Context) {
	m.severs().Serve(ctx, m.conf.Node, m.incarnation, func(node string, then func()) {
		m.server.ForgetRelayed(nil, node, then)
	})
}
