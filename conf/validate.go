package conf

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
)

// validate applies the rules that join several keys or objects. The model is
// as the file has it: in file order, before normalize.
func (d *decoder) validate(c *Config) {
	d.groupOf = map[string]*AuthGroup{}
	for i := range c.AuthGroups {
		d.groupOf[c.AuthGroups[i].Name] = &c.AuthGroups[i]
	}
	groups := namesOf("auth-groups", c.AuthGroups, func(g *AuthGroup) string { return g.Name })
	volumes := namesOf("volumes", c.Volumes, func(v *Volume) string { return v.Name })
	clusters := namesOf("ceph", c.Ceph, func(k *CephCluster) string { return k.Name })
	portals := namesOf("portal-groups", c.PortalGroups, func(g *PortalGroup) string { return g.Name })
	if name := c.Discovery.AuthGroup; name != "" && !groups.use(name) {
		d.fail("discovery.auth", "no auth-group's name", groups.expected(d, name))
	}
	d.validateDiscovery(c)
	d.validateServer(&c.Server)
	d.validatePortals(c)
	d.validateMetrics(c)
	d.validateControl(c)
	for i := range c.AuthGroups {
		d.validateAuthGroup(&c.AuthGroups[i])
	}
	d.warnOfStrangers(c)
	d.validateVolumes(c)
	d.validateCeph(c, clusters)
	d.validateCluster(c)
	d.validateJoint(c)
	d.validateCache(c)
	for i := range c.Targets {
		d.validateTarget(&c.Targets[i], portals, groups, volumes)
	}
	d.validateQoS(c, volumes)
	d.warnFreeNames(c)
	if len(c.Targets) == 0 {
		d.warn("targets", "no target", "at least one; initiators will find nothing")
	}
	groups.warnUnused(d)
	volumes.warnUnused(d)
	clusters.warnUnused(d)
	if !slices.ContainsFunc(c.Targets, func(t Target) bool { return len(t.PortalGroups) == 0 }) {
		portals.warnUnused(d)
	}
}

// validateDiscovery refuses what would have no effect: a discovery session is
// told only of targets that its initiator may use anyway.
func (d *decoder) validateDiscovery(c *Config) {
	if g := d.groupOf[c.Discovery.AuthGroup]; g != nil && g.Match.some() {
		d.fail("discovery.auth", "a group that has initiators or networks", "an auth-group with chap only")
	}
}

// validatePortals refuses two portals that cannot both be opened, and tags
// that two groups share.
func (d *decoder) validatePortals(c *Config) {
	type portal struct {
		at   netip.AddrPort
		path string
	}
	var open []portal
	before := sockets{}
	tags := map[uint16]string{}
	for _, g := range c.PortalGroups {
		path := "portal-groups." + g.Name
		if other, taken := tags[g.Tag]; taken {
			d.fail(path+".tag", fmt.Sprint(g.Tag), "a tag of its own; "+other+" has this one")
		}
		tags[g.Tag] = g.Name
		for _, p := range g.Listen {
			if i, taken := before.overlapping(p); taken {
				d.fail(listenPath(path+".listen", p), p.String(), fmt.Sprintf("a portal that does not overlap with %v of %s", open[i].at, open[i].path))
			}
			before.add(p, len(open))
			open = append(open, portal{p, path})
		}
	}
	d.validateISER(c)
}

// sockets finds the first of many that overlaps with one: by address, or by what
// stands for all of a family and port.
type sockets map[socket]int

// socket is an address and port, or with any all of the family and port.
type socket struct {
	at  netip.AddrPort
	any bool
}

// everyOf is the socket of all addresses of a family.
func everyOf(p netip.AddrPort) netip.AddrPort {
	if p.Addr().Is4() {
		return netip.AddrPortFrom(netip.IPv4Unspecified(), p.Port())
	}
	return netip.AddrPortFrom(netip.IPv6Unspecified(), p.Port())
}

func (s sockets) add(p netip.AddrPort, number int) {
	for _, key := range []socket{{at: p}, {everyOf(p), true}} {
		if _, taken := s[key]; !taken {
			s[key] = number
		}
	}
}

// overlapping is the number of the first socket that overlap is true for.
func (s sockets) overlapping(p netip.AddrPort) (number int, found bool) {
	if p.Port() == 0 {
		return 0, false
	}
	for _, key := range []socket{{at: p}, {at: everyOf(p)}, {everyOf(p), p.Addr().IsUnspecified()}} {
		if n, taken := s[key]; taken && (!found || n < number) {
			number, found = n, true
		}
	}
	return number, found
}

// validateISER refuses what is listened on twice over RDMA, whose ports have
// nothing to do with those of TCP.
func (d *decoder) validateISER(c *Config) {
	type portal struct {
		ISERPortal
		path string
	}
	var open []portal
	before := iserSockets{map[ISERPortal]int{}, sockets{}}
	for _, g := range c.PortalGroups {
		path := "portal-groups." + g.Name + ".listen-iser"
		for _, p := range g.ListenISER {
			if i, taken := before.overlapping(p); taken {
				d.fail(path, p.String(), fmt.Sprintf("a portal that does not overlap with %v of %s", open[i].ISERPortal, open[i].path))
			}
			before.add(p, len(open))
			open = append(open, portal{p, path})
		}
	}
}

// iserSockets are sockets of interfaces and of addresses.
type iserSockets struct {
	same      map[ISERPortal]int
	addresses sockets
}

func (s iserSockets) add(p ISERPortal, number int) {
	if _, taken := s.same[p]; !taken {
		s.same[p] = number
	}
	if p.Interface == "" {
		s.addresses.add(p.Addr, number)
	}
}

// overlapping is the number of the first that cannot be open beside p.
func (s iserSockets) overlapping(p ISERPortal) (number int, found bool) {
	number, found = s.same[p]
	if p.Interface != "" {
		return number, found
	}
	if n, taken := s.addresses.overlapping(p.Addr); taken && (!found || n < number) {
		return n, true
	}
	return number, found
}

// validateMetrics refuses a socket that a portal has, and warns of one that
// others reach.
func (d *decoder) validateMetrics(c *Config) {
	const path = "server.metrics"
	s := &c.Server
	at := s.Metrics
	if (s.MetricsCertificate == "") != (s.MetricsKey == "") {
		d.fail("server.metrics-certificate-file", "a certificate without its key, or a key alone", "metrics-certificate-file and metrics-key-file, or neither")
	}
	if !at.IsValid() {
		if s.MetricsToken+s.MetricsCertificate != "" {
			d.fail(path, "no address", "one such as 192.0.2.1:9260, with metrics-token-file or metrics-certificate-file")
		}
		return
	}
	for _, g := range c.PortalGroups {
		if i := slices.IndexFunc(g.Listen, func(p netip.AddrPort) bool { return overlap(at, p) }); i >= 0 {
			d.fail(path, at.String(), fmt.Sprintf("a socket that does not overlap with portal %v of portal-groups.%s", g.Listen[i], g.Name))
		}
	}
	switch {
	case at.Addr().IsLoopback():
	case s.MetricsToken == "":
		d.warn(path, at.String(), "a loopback address, or metrics-token-file: whoever reaches it reads the metrics, without a password")
	case s.MetricsCertificate == "":
		d.warn(path, at.String(), "metrics-certificate-file, so that nobody on the way reads the token")
	}
}

// overlap reports whether two sockets cannot listen at the same time.
func overlap(a, b netip.AddrPort) bool {
	if a.Port() != b.Port() || a.Port() == 0 || a.Addr().Is4() != b.Addr().Is4() {
		return false
	}
	return a.Addr() == b.Addr() || a.Addr().IsUnspecified() || b.Addr().IsUnspecified()
}

func (d *decoder) validateAuthGroup(g *AuthGroup) {
	path := "auth-groups." + g.Name
	users := map[string]bool{}
	for i, c := range g.CHAP {
		at := fmt.Sprintf("%s.chap[%d]", path, i)
		if users[c.User] && c.User != "" {
			d.fail(at+".user", "a user a second time", "every user once")
		}
		users[c.User] = true
		if d.given(at+".initiators") && len(c.Initiators) == 0 {
			d.fail(at+".initiators", "an empty list", "initiator names; without the key the user has any that is nobody's")
		}
		if g.Mutual != nil && c.Secret.told() && c.Secret.Reveal() == g.Mutual.Secret.Reveal() {
			d.fail(path+".mutual", fmt.Sprintf("the secret of chap[%d]", i), "a secret of its own (RFC 7143 section 9.2.1)")
		}
	}
	if g.Mutual != nil && len(g.CHAP) == 0 {
		d.fail(path+".mutual", "mutual without chap", "chap as well: mutual is the target's answer to an initiator that proved itself")
	}
	if d.given(path+".algorithms") && len(g.CHAP) == 0 {
		d.fail(path+".algorithms", "algorithms without chap", "chap as well")
	}
	if again := duplicate(g.Algorithms); again != "" {
		d.fail(path+".algorithms", fmt.Sprintf("%q a second time", again), "every algorithm once")
	}
}

// duplicate is the first word that occurs twice, or "".
func duplicate(words []string) string {
	seen := map[string]bool{}
	for _, w := range words {
		if seen[w] {
			return w
		}
		seen[w] = true
	}
	return ""
}

func (d *decoder) validateVolumes(c *Config) {
	paths := map[string]string{}
	identities := map[string]string{}
	for _, v := range c.Volumes {
		path := "volumes." + v.Name
		if v.Path != "" {
			d.once(paths, path+".path", filepath.Clean(v.Path), v.Name)
			d.outside(path+".path", v.Path)
		}
		if v.Encryption != nil && v.Encryption.HeaderFile != "" {
			d.once(paths, path+".encryption.header-file", filepath.Clean(v.Encryption.HeaderFile), v.Name)
			d.outside(path+".encryption.header-file", v.Encryption.HeaderFile)
		}
		d.validateIdentity(identities, &v)
		if v.Size%Size(v.BlockSize) != 0 {
			d.fail(path+".size", v.Size.String(), fmt.Sprintf("a multiple of the block size %d", v.BlockSize))
		}
	}
}

// StateNames are what tgtd calls its own files and directories in the state directory,
// with the marks of files behind the files.
var StateNames = []string{"applied.json", "atomic", "cluster-config.json", "cluster-identity.json", "control.sock", "etcd", "excess", "generations", "guests", "identifying", "identity", "mirror", "move-digests", "naming.json", "pending.json", "protection", "reservations", "sanitize", "segment.note", "stores", "tgtd.lock", ".kept"}

// outside reports a relative path that is taken by the server's own state.
func (d *decoder) outside(path, value string) {
	first, _, _ := strings.Cut(filepath.ToSlash(filepath.Clean(value)), "/")
	if slices.Contains(StateNames, first) {
		d.fail(path, quote(value), "a name in the state directory that is not one of the server's own: "+strings.Join(StateNames, ", "))
	}
}

// once reports a value that a volume before has as well.
func (d *decoder) once(seen map[string]string, path, value, volume string) {
	if other, taken := seen[value]; taken {
		d.fail(path, quote(value), "one that no other volume has; "+other+" has it (two LUNs may share one volume)")
		return
	}
	seen[value] = volume
}

func (d *decoder) validateTarget(t *Target, portals, groups, volumes *names) {
	path := "targets." + t.Name
	for i, g := range t.PortalGroups {
		portals.check(d, fmt.Sprintf("%s.portal-groups[%d]", path, i), g)
	}
	if again := duplicate(t.PortalGroups); again != "" {
		d.fail(path+".portal-groups", quote(again)+" a second time", "every portal-group once")
	}
	if luns := path + ".luns"; d.given(luns) {
		d.validateLUNs(luns, d.shared[t.Name].LUNs, volumes)
	}
	groups.check(d, path+".auth-group", d.shared[t.Name].AuthGroup)
	for i := range t.Access {
		d.validateAccess(t, i, groups, volumes)
		d.validateMatch(&t.Access[i], fmt.Sprintf("%s.access[%d]", path, i))
	}
}

// validateMatch refuses two lists of the same kind: which of both would have
// to match is easily taken for the wrong one.
func (d *decoder) validateMatch(a *Access, path string) {
	g := d.groupOf[a.AuthGroup]
	if g == nil {
		return
	}
	if len(a.Match.Initiators) > 0 && len(g.Match.Initiators) > 0 {
		d.fail(path+".initiators", "initiators here and in auth-group "+quote(g.Name), "them in one of both")
	}
	if len(a.Match.Networks) > 0 && len(g.Match.Networks) > 0 {
		d.fail(path+".networks", "networks here and in auth-group "+quote(g.Name), "them in one of both")
	}
}

// validateAccess checks what a rule says itself; what it inherits was checked
// at the target.
func (d *decoder) validateAccess(t *Target, i int, groups, volumes *names) {
	target := "targets." + t.Name
	path := fmt.Sprintf("%s.access[%d]", target, i)
	a := &t.Access[i]
	if d.given(path + ".auth-group") {
		groups.check(d, path+".auth-group", a.AuthGroup)
	}
	if d.given(path) && (d.given(path+".luns") || !d.given(target+".luns")) {
		d.validateLUNs(path+".luns", a.LUNs, volumes)
	}
	for j := range i {
		if !t.Access[j].Match.some() {
			d.warn(path, "a rule that is never reached", fmt.Sprintf("it before access[%d], which matches everyone", j))
			break
		}
	}
}

func (d *decoder) validateLUNs(path string, luns []LUN, volumes *names) {
	numbers, mapped := map[int]bool{}, map[string]int{}
	for i, l := range luns {
		at := fmt.Sprintf("%s[%d]", path, i)
		volumes.check(d, at+".volume", l.Volume)
		if numbers[l.LUN] && l.LUN != noLUN {
			d.fail(at+".lun", fmt.Sprintf("LUN %d a second time", l.LUN), "every LUN once")
		}
		numbers[l.LUN] = true
		if other, again := mapped[l.Volume]; again && l.Volume != "" {
			d.fail(at+".volume", quote(l.Volume)+" a second time", fmt.Sprintf("every volume once; it is LUN %d", other))
		}
		mapped[l.Volume] = l.LUN
	}
	switch {
	case len(luns) == 0:
		d.fail(path, "no LUN", "at least one {lun, volume}")
	case !numbers[0]:
		d.warn(path, "no LUN 0", "LUN 0: some initiators look at nothing else when it is missing")
	}
}
