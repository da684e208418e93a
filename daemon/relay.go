package daemon

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"lunar/cluster/link"
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

// Carry implements scsi.Carrier.
func (c carrier) Carry(m scsi.Message, done func(answer []byte, err error)) error {
	kind := link.Manage
	if m.Command {
		kind = link.Command
	}
	return ofCarrier(c.links.Start(c.node, link.Message{Kind: kind, Lane: m.Lane, Room: m.Room, Body: m.Body}, func(answer []byte, err error) {
		done(answer, ofCarrier(err))
	}))
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
	m.links.Handle(link.Command, handle)
	m.links.Handle(link.Manage, handle)
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

// reach looks which nodes this one can relay to. Nodes to which there is a link again are told of
// all nexuses, and those to which there has been none for long have lost theirs.
func (m *membership) reach(all []*volumes.Shared, told peers) (up []string) {
	if m.links == nil {
		return nil
	}
	now := time.Now()
	for name, p := range told {
		switch lost, down := m.down[name]; {
		case name == m.conf.Node || p.Relay != relay.Version:
		case m.links.Up(name):
			up = append(up, name)
			if !down {
				break
			}
			delete(m.down, name)
			for _, s := range all {
				s.Unit().Reopen()
			}
		case !down:
			m.down[name] = now.Add(lossTime)
		case now.After(lost):
			m.server.ForgetRelayed(nil, name, func() {})
			m.down[name] = now.Add(lossTime)
		}
	}
	slices.Sort(up)
	return up
}
