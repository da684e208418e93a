package daemon

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"lunar/conf"
	"lunar/internal/packed"
	"lunar/internal/version"
	"lunar/target"
	"lunar/target/scsi"
)

// peer is what a node of a cluster tells the others of itself. Members that a node does not
// know it ignores.
type peer struct {
	Lunar   string              `json:"lunar"`          // version
	Link    string              `json:"link,omitempty"` // host:port at which other nodes connect to it; empty: nowhere
	Groups  []peerGroup         `json:"groups"`
	Targets map[string][]uint16 `json:"targets"` // tags of the groups that lead to each
	// Owners are those of volumes: a node with another list has other ideas of who is next.
	Owners map[string][]string `json:"owners,omitempty"`
	// Relay is the version of messages that the node relays commands by, to Relays: those that
	// it has links to; 0: it relays none.
	Relay  int      `json:"relay,omitempty"`
	Relays []string `json:"relays,omitempty"`
	// Images are those of volumes with owners: one of another name would be another disk.
	Images map[string]string `json:"images,omitempty"`
	// Packed are Targets, Owners and Images of many volumes, in fewer bytes.
	Packed []byte `json:"packed,omitempty"`
	// Stranger: its volumes with owners have other serial numbers than the cluster's identity gives.
	Stranger bool `json:"stranger,omitempty"`
	// Forgets: the node knows what is left of owners' records that were removed.
	Forgets bool `json:"forgets,omitempty"`
	// Config is what the node has of the cluster's configuration; nil: its version knows none.
	Config *peerRevision `json:"config,omitempty"`
}

// peerRevision is the revision of the cluster's configuration that a node goes by.
type peerRevision struct {
	Revision int64  `json:"revision"`         // 0: none
	Behind   string `json:"behind,omitempty"` // why that is not the newest
}

// peerGroup is a portal group of a node. Groups of one name are on one network.
type peerGroup struct {
	Name      string   `json:"name"`
	Tag       uint16   `json:"tag"`
	State     string   `json:"state"` // of volumes that the node serves
	Preferred bool     `json:"preferred,omitempty"`
	Addresses []string `json:"addresses"` // host:port of its portals over TCP
}

// selfOf is what a configuration says of this node; ports finds out what is behind port 0.
func selfOf(cfg *conf.Config, addresses func(tag uint16) []netip.AddrPort) peer {
	out := peer{Lunar: version.Number, Targets: map[string][]uint16{}}
	for i := range cfg.PortalGroups {
		g := &cfg.PortalGroups[i]
		one := peerGroup{Name: g.Name, Tag: g.Tag, State: g.ALUA.State, Preferred: g.ALUA.Preferred, Addresses: []string{}}
		for _, a := range addresses(g.Tag) {
			one.Addresses = append(one.Addresses, a.String())
		}
		out.Groups = append(out.Groups, one)
	}
	for i := range cfg.Targets {
		t := &cfg.Targets[i]
		for _, name := range t.PortalGroups {
			out.Targets[t.Name] = append(out.Targets[t.Name], cfg.PortalGroup(name).Tag)
		}
	}
	for i := range cfg.Volumes {
		if v := &cfg.Volumes[i]; v.Clustered() {
			if out.Owners == nil {
				out.Owners, out.Images = map[string][]string{}, map[string]string{}
			}
			out.Owners[v.Name], out.Images[v.Name] = v.Owners, v.Image
		}
	}
	return out
}

// What a node tells is one value in the cluster's state, which takes 1.5 MiB.
const (
	longPeer = 512 << 10 // bytes from which it is packed
	mostPeer = 1 << 20   // bytes that it may have
	mostTold = 64 << 20  // bytes of what was packed
)

// many is what a node has to tell of each volume.
type many struct {
	Targets map[string][]uint16 `json:"targets"`
	Owners  map[string][]string `json:"owners"`
	Images  map[string]string   `json:"images"`
}

func (p *peer) encode() json.RawMessage {
	text := written(p)
	if len(text) <= longPeer {
		return text
	}
	short := *p
	short.Targets, short.Owners, short.Images = nil, nil, nil
	short.Packed = packed.Of(written(many{p.Targets, p.Owners, p.Images}))
	return written(&short)
}

func written(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it has nothing that cannot be written
	}
	return text
}

// fits refuses what the cluster's state does not take: the node would have no place there.
func (p *peer) fits() error {
	if n := len(p.encode()); n > mostPeer {
		return fmt.Errorf("volumes: found %d with owners, of which this node would tell the others %d bytes, expected at most %d", len(p.Owners), n, mostPeer)
	}
	return nil
}

// parse reads what encode has written.
func (p *peer) parse(text []byte) error {
	if err := json.Unmarshal(text, p); err != nil || p.Packed == nil {
		return err
	}
	all, err := packed.Text(p.Packed, mostTold)
	if err != nil {
		return err
	}
	var m many
	if err := json.Unmarshal(all, &m); err != nil {
		return err
	}
	p.Targets, p.Owners, p.Images, p.Packed = m.Targets, m.Owners, m.Images, nil
	return nil
}

// peers are what all living nodes tell of themselves, by name.
type peers map[string]peer

// peersOf reads what nodes tell. What cannot be read is as if the node told nothing.
func peersOf(all map[string]json.RawMessage) (peers, error) {
	out := peers{}
	var failed error
	for name, text := range all {
		var p peer
		if err := p.parse(text); err != nil {
			failed = fmt.Errorf("what node %s tells of itself: %w", name, err)
			continue
		}
		out[name] = p
	}
	return out, failed
}

// access is how a volume is reached through all portal groups when a node serves it. All
// nodes say the same.
func (p peers) access(owner string) map[uint16]scsi.PortAccess {
	out := map[uint16]scsi.PortAccess{scsi.EveryTag: {State: scsi.Standby}}
	for name, one := range p {
		for _, g := range one.Groups {
			a := scsi.PortAccess{State: scsi.Standby, Preferred: g.Preferred}
			switch state, ok := scsi.ParseAccessState(g.State); {
			case ok && name == owner:
				a.State = state
			case ok && state <= scsi.ActiveNonOptimized && slices.Contains(one.Relays, owner):
				a.State = scsi.ActiveNonOptimized
			}
			out[g.Tag] = a
		}
	}
	return out
}

// elsewhere are the portal groups of other nodes that lead to targets.
func (p peers) elsewhere(self string) map[string][]target.Elsewhere {
	out := map[string][]target.Elsewhere{}
	beside := map[string]uint16{}
	for _, g := range p[self].Groups {
		beside[g.Name] = g.Tag
	}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		one := p[name]
		if name == self {
			continue
		}
		for t, tags := range one.Targets {
			for _, g := range one.Groups {
				if slices.Contains(tags, g.Tag) {
					out[t] = append(out[t], target.Elsewhere{Tag: g.Tag, Beside: beside[g.Name], Addresses: g.Addresses})
				}
			}
		}
	}
	return out
}

// clash refuses tags that another node has: initiators would take its ports for this
// node's.
func (p peers) clash(self string, own *peer) error {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		one := p[name]
		if name == self {
			continue
		}
		for _, g := range own.Groups {
			i := slices.IndexFunc(one.Groups, func(o peerGroup) bool { return o.Tag == g.Tag })
			if i >= 0 {
				return fmt.Errorf("portal-groups.%s.tag: found %d, which is that of %s on node %s, expected a tag that no other node of the cluster has", g.Name, g.Tag, one.Groups[i].Name, name)
			}
		}
	}
	return nil
}

// differ tells of the first of some volumes that has another image or other owners on another
// node.
func (p peers) differ(self string, own *peer, volumes ...string) error {
	for _, name := range slices.Sorted(maps.Keys(p)) {
		for _, volume := range volumes {
			if there, ok := p[name].Images[volume]; ok && name != self && there != own.Images[volume] {
				return fmt.Errorf("volumes.%s.image: found %s on node %s, expected %s, as here: hosts would take two disks for one", volume, there, name, own.Images[volume])
			}
			if there, ok := p[name].Owners[volume]; ok && name != self && !slices.Equal(there, own.Owners[volume]) {
				return fmt.Errorf("volumes.%s.owners: found %v on node %s, expected %v, as here", volume, there, name, own.Owners[volume])
			}
		}
	}
	return nil
}
