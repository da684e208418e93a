package conf

import (
	"fmt"
	"net/url"
	"time"
)

// What a cluster has unless it says otherwise.
const (
	defaultLease   = 2 * time.Second
	defaultSuspect = time.Second
	defaultHold    = 8 * time.Second
)

const wantEndpoint = "the URL of a member of etcd, such as https://192.0.2.1:2379"

func (d *decoder) cluster(n node, c *Config) {
	k := &Cluster{Etcd: Etcd{Mode: EmbeddedEtcd}, Lease: defaultLease, Suspect: defaultSuspect, Hold: defaultHold, LeaseCache: true}
	if !d.mapping(n, fields{
		"name":        text(&k.Named, wantObjectName, objectName.MatchString),
		"node":        text(&k.Node, wantObjectName, objectName.MatchString),
		"etcd":        func(d *decoder, n node) { d.etcd(n, &k.Etcd) },
		"link":        func(d *decoder, n node) { d.link(n, &k.Link) },
		"lease":       duration(&k.Lease, time.Second, time.Minute),
		"suspect":     duration(&k.Suspect, 200*time.Millisecond, time.Minute),
		"hold":        duration(&k.Hold, time.Second, 25*time.Second), // Linux gives up a command after 30 s
		"lease-cache": boolean(&k.LeaseCache),
	}) {
		return
	}
	d.require(n, "name", "the cluster's name, which all nodes have in common")
	d.require(n, "node", "this server's name in the cluster")
	d.validateLink(n.path+".link", k)
	if k.Suspect > k.Lease {
		d.fail(n.path+".suspect", k.Suspect.String(), fmt.Sprintf("at most the lease, %v: who is suspected later is dead by then", k.Lease))
	}
	c.Cluster = k
}

func (d *decoder) etcd(n node, e *Etcd) {
	if !d.mapping(n, fields{
		"mode":             oneOf(&e.Mode, EmbeddedEtcd, ExternalEtcd),
		"endpoints":        each(&e.Endpoints, endpoint),
		"ca-file":          absolutePath(&e.CA),
		"certificate-file": absolutePath(&e.Certificate),
		"key-file":         absolutePath(&e.Key),
	}) {
		return
	}
	if e.Mode == ExternalEtcd {
		d.require(n, "endpoints", "a list of URLs such as https://192.0.2.1:2379")
		if (e.Certificate == "") != (e.Key == "") {
			d.fail(n.path+".certificate-file", "a certificate without its key, or a key alone", "certificate-file and key-file, or neither")
		}
		return
	}
	for _, key := range []string{"endpoints", "ca-file", "certificate-file", "key-file"} {
		if d.has(n, key) {
			d.fail(n.path+"."+key, "a key that mode embedded does not have", "it with mode external; lunar cluster init and join make what embedded needs")
		}
	}
}

func (d *decoder) link(n node, l *Link) {
	d.mapping(n, fields{
		"listen":           oneAddress(&l.Listen),
		"ca-file":          absolutePath(&l.CA),
		"certificate-file": absolutePath(&l.Certificate),
		"key-file":         absolutePath(&l.Key),
	})
}

// validateLink refuses links that no other node could make.
func (d *decoder) validateLink(path string, k *Cluster) {
	l := &k.Link
	all, some := true, false
	for _, file := range []string{l.CA, l.Certificate, l.Key} {
		all, some = all && file != "", some || file != ""
	}
	external := k.Etcd.Mode == ExternalEtcd
	switch {
	case l.Listen.IsValid() && l.Listen.Addr().IsUnspecified():
		d.fail(path+".listen", l.Listen.String(), "an address of this machine: the other nodes hear of it")
	case some != all:
		d.fail(path, "a part of the files", "ca-file, certificate-file and key-file, or none of them")
	case external && all != l.Listen.IsValid():
		d.fail(path, "a part of it with etcd's mode external", "listen, ca-file, certificate-file and key-file, or none of them: the nodes are not linked then")
	}
}

// nodeName accepts the name of a node.
func nodeName(to *string) setter {
	return text(to, "the name of a node of the cluster: "+wantObjectName, objectName.MatchString)
}

// endpoint accepts the URL of a member.
func endpoint(to *string) setter {
	return text(to, wantEndpoint, func(s string) bool {
		u, err := url.Parse(s)
		return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Port() != "" && u.Hostname() != "" && u.Path == "" && u.User == nil
	})
}

// validateCluster refuses volumes with owners that cannot be served by one node after
// the other, and what in a cluster each node would say for itself.
func (d *decoder) validateCluster(c *Config) {
	for i := range c.Volumes {
		d.validateOwners(c, &c.Volumes[i])
	}
	if c.Cluster == nil {
		return
	}
	if len(c.PortalGroups) == 0 {
		d.fail("portal-groups", "nothing in a cluster", "portal groups that listen on addresses, with tags that no other node has")
	}
	for i := range c.PortalGroups {
		g := &c.PortalGroups[i]
		path := "portal-groups." + g.Name
		if g.ALUA.Explicit {
			d.fail(path+".alua.explicit", "true in a cluster", "false: only the cluster moves volumes, by lunar cluster move")
		}
		for _, p := range g.Listen {
			if p.Addr().IsUnspecified() {
				d.fail(listenPath(path+".listen", p), p.String(), "an address of this machine: in a cluster, initiators hear of it from other nodes")
			}
		}
	}
}

func (d *decoder) validateOwners(c *Config, v *Volume) {
	path := "volumes." + v.Name
	if !v.Clustered() {
		if v.Failback != "" {
			d.fail(path+".failback", "failback without owners", "owners beside it: the nodes that may own the volume")
		}
		return
	}
	if v.Failback == "" {
		v.Failback = ManualFailback
	}
	if again := duplicate(v.Owners); again != "" {
		d.fail(path+".owners", quote(again)+" a second time", "every node once")
	}
	for _, other := range []struct {
		is       bool
		key      string
		what, as string
	}{
		{c.Cluster == nil, "owners", "owners without cluster", "the section cluster, which says which node this server is (the text for all nodes is read by lunar apply --cluster --dry-run)"},
		{v.Write == WriteBack, "write", "back with owners", "through: what only this node's cache has would be lost with it"},
		{v.ReadOnly, "read-only", "true with owners", "no owners: what nobody writes all nodes may serve at once"},
	} {
		if other.is {
			d.fail(path+"."+other.key, other.what, other.as)
		}
	}
}

// isJoint reports whether the value of a key is the Joint's.
func (d *decoder) isJoint(path string) bool { return d.at[path].line > jointLine }

// validateJoint refuses volumes that each node would have for itself.
func (d *decoder) validateJoint(c *Config) {
	for i := range c.Volumes {
		v := &c.Volumes[i]
		if path := "volumes." + v.Name; d.isJoint(path) && !v.Clustered() {
			d.fail(path+".owners", "nothing in the cluster's configuration", "the nodes that may own the volume; a volume of one server is in that server's own file")
		}
	}
}
