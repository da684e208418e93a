package conf

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
)

// control reads who may ask and change a running server.
func (d *decoder) control(n node, c *Control) {
	d.mapping(n, fields{
		"read-group":       systemGroup(&c.ReadGroup),
		"operate-group":    systemGroup(&c.OperateGroup),
		"admin-group":      systemGroup(&c.AdminGroup),
		"listen":           oneAddress(&c.Listen),
		"certificate-file": absolutePath(&c.Certificate),
		"key-file":         absolutePath(&c.Key),
		"token-file":       absolutePath(&c.Tokens),
		"client-ca-file":   absolutePath(&c.ClientCA),
		"read-clients":     each(&c.ReadClients, clientName),
		"operate-clients":  each(&c.OperateClients, clientName),
		"admin-clients":    each(&c.AdminClients, clientName),
		"audit-file":       absolutePath(&c.Audit),
		"page":             boolean(&c.Page),
	})
}

// groupName is a name that useradd(8) takes, or a number.
var groupName = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_.-]{0,31}|[1-9][0-9]{0,9})$`)

func systemGroup(to *string) setter {
	return text(to, "the name or the number of a group of this system, other than root's", groupName.MatchString)
}

// nameOfClient is what a certificate may call its owner.
var nameOfClient = regexp.MustCompile(`^[!-~]([ -~]{0,253}[!-~])?$`)

// clientName accepts what a certificate may call its owner.
func clientName(to *string) setter {
	return text(to, "a name as a client's certificate has it: a DNS name, mail address or URI of its subjectAltName, or its common name", nameOfClient.MatchString)
}

// Clients are the names of certificates, by the role that they have: read, operate and
// admin.
func (c *Control) clients() map[string][]string {
	return map[string][]string{"read-clients": c.ReadClients, "operate-clients": c.OperateClients, "admin-clients": c.AdminClients}
}

// validateControl refuses a port that has no TLS or lets nobody in, or whose socket a
// portal or the metrics have.
func (d *decoder) validateControl(c *Config) {
	const section = "server.control"
	k := &c.Server.Control
	if (k.Certificate == "") != (k.Key == "") {
		d.fail(section+".certificate-file", "a certificate without its key, or a key alone", "certificate-file and key-file, or neither")
	}
	named := map[string]string{}
	for _, key := range []string{"read-clients", "operate-clients", "admin-clients"} {
		for _, name := range k.clients()[key] {
			if other, twice := named[name]; twice {
				d.fail(Key(section, key), name, "a name that stands in one list alone; it is in "+other)
			}
			named[name] = key
		}
	}
	if len(named) > 0 && k.ClientCA == "" {
		d.fail(section+".client-ca-file", "none", "the certificates by which those of clients are judged")
	}
	switch at := k.Listen; {
	case !at.IsValid() && (k.Certificate+k.Tokens+k.ClientCA != "" || k.Page):
		d.fail(section+".listen", "no address", "one such as 192.0.2.1:9261")
	case !at.IsValid():
	case k.Certificate == "":
		d.fail(section+".listen", at.String(), "certificate-file and key-file as well: it is served over TLS alone, also on loopback")
	case k.Tokens == "" && len(named) == 0:
		d.fail(section+".listen", at.String(), "token-file, or client-ca-file with names of clients: else nobody may ask")
	default:
		d.validateControlSocket(c, at)
	}
}

func (d *decoder) validateControlSocket(c *Config, at netip.AddrPort) {
	const path = "server.control.listen"
	if m := c.Server.Metrics; m.IsValid() && overlap(at, m) {
		d.fail(path, at.String(), fmt.Sprintf("a socket that does not overlap with server.metrics, %v", m))
	}
	for _, g := range c.PortalGroups {
		if i := slices.IndexFunc(g.Listen, func(p netip.AddrPort) bool { return overlap(at, p) }); i >= 0 {
			d.fail(path, at.String(), fmt.Sprintf("a socket that does not overlap with portal %v of portal-groups.%s", g.Listen[i], g.Name))
		}
	}
	if !at.Addr().IsLoopback() && len(c.Server.Control.AdminClients) == 0 && c.Server.Control.ClientCA == "" {
		d.warn(path, at.String(), "client-ca-file as well: whoever finds a token has all that it allows, from everywhere")
	}
}
