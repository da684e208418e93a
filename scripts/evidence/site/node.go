package site

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"lunar/scripts/evidence/daemon"
)

// Node is a server.
type Node struct {
	*daemon.Server
	Name   string
	Portal string
	site   *Site

	space   string // network namespace; empty: that of this program
	outside string // its interface in the network namespace of this program
}

const config = `server: {threads: 1}
portal-groups:
  net: {tag: %[1]d, listen: ["%[2]s"]}
cluster: {name: evidence, node: n%[1]d, etcd: %[6]s}
ceph:
  main: {config: %[3]s/ceph/ceph.conf, user: admin, keyring-file: %[3]s/ceph/keyring}
%[4]svolumes:
  db: {type: rbd, ceph: main, image: rbd/db, owners: [n1, n2, n3]%[5]s}
targets:
  iqn.2026-11.example.lunar:db:
    auth-group: none
    luns: [{lun: 0, volume: db}]
%[7]s`

// node makes one, and its member of etcd, which it starts.
func (s *Site) node(i int) (*Node, error) {
	n := &Node{site: s, Name: fmt.Sprint("n", i+1)}
	address, err := n.address(i)
	if err != nil {
		return nil, err
	}
	cache, use := "", ""
	if s.Cached {
		cache, use = "cache: {size: 64MiB}\n", ", cache: {}"
	}
	if n.Server, err = daemon.New(s.Tgtd(), filepath.Join(s.Dir, n.Name), fmt.Sprintf(config, i+1, n.Portal, s.Dir, cache, use, s.etcd(), s.Rules)); err != nil {
		return nil, err
	}
	n.Prefix = n.inside()
	if s.Etcd == "external" {
		return n, nil
	}
	return n, n.member(i, address)
}

// address finds out where a server is reached.
func (n *Node) address(i int) (string, error) {
	if Separate() {
		address, err := n.separate(i)
		n.Portal = address + ":3260"
		return address, err
	}
	portal, err := free(1)
	n.Portal = fmt.Sprint("127.0.0.1:", portal)
	return "127.0.0.1", err
}

// etcd is how servers reach it.
func (s *Site) etcd() string {
	if s.Etcd == "embedded" {
		return "{mode: embedded}"
	}
	return fmt.Sprintf("{mode: external, endpoints: [\"%s\"]}", strings.Join(s.endpoints, `", "`))
}

// member makes the node a member of etcd: the first one by init, the others by tokens of it.
func (n *Node) member(i int, address string) (err error) {
	port := 7421
	if n.space == "" {
		if port, err = free(4); err != nil { // one is the server's
			return err
		}
	}
	who := []string{"--state-dir", n.State, "--node", n.Name, "--address", address, "--port", fmt.Sprint(port)}
	if i == 0 {
		err = n.lunar(append([]string{"cluster", "init", "evidence"}, who...)...)
	} else {
		first := n.site.Nodes[0]
		code, token := first.Lunar("cluster", "token", "--state-dir", first.State)
		if code != 0 {
			return fmt.Errorf("lunar cluster token: %s", token)
		}
		err = n.lunar(append([]string{"cluster", "join", strings.TrimSpace(token)}, who...)...)
	}
	if err != nil {
		return err
	}
	if err := n.site.run(n.Name, n.inside(), "run", "--dir", filepath.Join(n.State, "etcd")); err != nil {
		return err
	}
	return eventually("a member of etcd", func() error { return n.lunar("cluster", "token", "--state-dir", n.State) })
}

// lunar runs in the node's namespace: init and join want an address of their machine.
func (n *Node) lunar(args ...string) error {
	return run(append(append(n.inside(), daemon.Lunar(n.Binary)), args...)...)
}

// Owner is the node that serves the volume, as one that lives says.
func (s *Site) Owner() (owner *Node, err error) {
	return owner, eventually("an owner", func() error {
		var errs []error
		for _, n := range s.Nodes {
			name, err := n.seen()
			for _, o := range s.Nodes {
				if err == nil && o.Name == name {
					owner = o
					return nil
				}
			}
			errs = append(errs, fmt.Errorf("%s: owner %q: %w", n.Name, name, err))
		}
		return errors.Join(errs...)
	})
}

// seen is who owns the volume as a node sees it.
func (n *Node) seen() (string, error) {
	code, said := n.Lunar("cluster", "status", "--json", "--socket", n.Socket())
	if code != 0 {
		return "", errors.New(said)
	}
	var c struct {
		Volumes []struct{ Name, Owner, State string }
	}
	if err := json.Unmarshal([]byte(said), &c); err != nil {
		return "", fmt.Errorf("%w: %s", err, said)
	}
	for _, v := range c.Volumes {
		if v.Name == Volume && v.State == "owned" {
			return v.Owner, nil
		}
	}
	return "", fmt.Errorf("found no owner: %s", said)
}

// Other is a node that is not the owner, each in its turn.
func (s *Site) Other(owner *Node) *Node {
	for i, n := range s.Nodes {
		if n == owner {
			return s.Nodes[(i+1)%len(s.Nodes)]
		}
	}
	return s.Nodes[0]
}

// together waits until all nodes say the same of the owner.
func (s *Site) together() error {
	return eventually("all nodes agree", func() error {
		first := ""
		for _, n := range s.Nodes {
			name, err := n.seen()
			if err != nil {
				return fmt.Errorf("%s: %w", n.Name, err)
			}
			if first == "" {
				first = name
			}
			if first != name {
				return fmt.Errorf("found %s and %s", first, name)
			}
		}
		return nil
	})
}
