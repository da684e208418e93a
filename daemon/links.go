package daemon

import (
	"crypto/tls"
	"maps"
	"path/filepath"
	"time"

	"lunar/cluster/etcd"
	"lunar/cluster/link"
	"lunar/cluster/member"
	"lunar/cluster/node"
	"lunar/conf"
)

// linkTransport opens where the other nodes connect to this one, and returns the address; empty:
// there are no links. Tests have something of their own.
var linkTransport = func(c *conf.Cluster, stateDir string) (link.Transport, string, error) {
	at, dir := "", member.Dir(filepath.Join(stateDir, "etcd"))
	var err error
	switch {
	case c.Link.Listen.IsValid():
		at = c.Link.Listen.String()
	case c.Etcd.Mode == conf.EmbeddedEtcd:
		at, err = dir.LinkAddress()
	}
	if err != nil || at == "" {
		return link.Transport{}, "", err
	}
	credentials := dir.TLS
	if c.Link.CA != "" {
		credentials = func() (*tls.Config, error) { return etcd.Credentials(c.Link.CA, c.Link.Certificate, c.Link.Key) }
	}
	t, err := link.OverTLS(at, credentials)
	return t, at, err
}

// beatsPerSuspicion is how many beats of a node have to fail to come until it is not heard.
const beatsPerSuspicion = 5

// openLinks makes the links to other nodes, which begin with startLinks.
func (m *membership) openLinks(stateDir string) error {
	t, at, err := linkTransport(m.conf, stateDir)
	if err != nil || at == "" {
		return err
	}
	m.at = at
	m.links = link.New(link.Config{
		Cluster: m.conf.Named, Node: m.conf.Node, Incarnation: m.incarnation, Transport: t,
		Beat: m.conf.Suspect / beatsPerSuspicion, Silence: m.conf.Suspect, Logger: m.log,
		Says: func() []byte { return m.node.Load().Says() },
	})
	return nil
}

// startLinks lets other nodes connect.
func (m *membership) startLinks() {
	if m.links == nil {
		return
	}
	m.links.Watch(m.node.Load().Hear)
	m.links.Open()
}

// acquaintance is a node to which there are links.
type acquaintance struct {
	link.Address
	last time.Time // when it lived, or was heard
}

// forgetAfter is how long links are tried to a node that the state does not have.
const forgetAfter = time.Hour

// meet has links be made to the nodes that live. Those of before are kept for some time: a node
// that the state does not hear may be heard.
func (m *membership) meet(s *node.Status, told peers) {
	if m.links == nil {
		return
	}
	now, all := time.Now(), map[string]link.Address{}
	for name, n := range s.Nodes {
		if at := told[name].Link; name != m.conf.Node && at != "" {
			m.met[name] = acquaintance{link.Address{At: at, Incarnation: n.Incarnation}, now}
		}
	}
	for name, a := range m.met {
		if m.links.Heard(name).At.After(a.last) {
			a.last = now
			m.met[name] = a
		}
		if now.Sub(a.last) < forgetAfter {
			all[name] = a.Address
		} else {
			delete(m.met, name)
		}
	}
	m.links.SetNodes(all)
}

// linkedToo adds to the nodes that live those that etcd has given up while they are heard over links, by what
// they told last: they keep their volumes and portals, and commands are relayed to them.
func (m *membership) linkedToo(s *node.Status, living peers) peers {
	all := maps.Clone(living)
	for name, was := range *m.known.Load() {
		if _, lives := s.Nodes[name]; !lives && s.Hears(name) && s.Linked[name].Incarnation == m.met[name].Incarnation {
			all[name] = was
		}
	}
	return all
}

// unlink ends the links.
func (m *membership) unlink() (err error) {
	if m != nil && m.links != nil {
		m.unlinking.Do(func() { err = m.links.Close() })
	}
	return err
}
