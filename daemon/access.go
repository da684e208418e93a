package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"

	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
)

// accessOf says who may ask. The error tells of groups that this system does not have;
// nobody is in them.
func accessOf(s *conf.Server) (server.Access, error) {
	c := &s.Control
	a := server.Access{Groups: map[uint32]control.Role{}, Known: s.Limits.KnownNetworks}
	var errs []error
	for _, g := range []struct {
		key, name string
		role      control.Role
	}{
		{"read-group", c.ReadGroup, control.Read},
		{"operate-group", c.OperateGroup, control.Operate},
		{"admin-group", c.AdminGroup, control.Admin},
	} {
		if g.name == "" {
			continue
		}
		gid, err := groupNumber(g.name)
		if err != nil {
			errs = append(errs, fmt.Errorf("server.control.%s: %w", g.key, err))
			continue
		}
		a.Groups[gid] = max(a.Groups[gid], g.role)
	}
	if c.Listen.IsValid() {
		a.Port = server.ControlPort{Address: c.Listen.String(), Certificate: c.Certificate, Key: c.Key, Tokens: c.Tokens, ClientCA: c.ClientCA, Page: c.Page, Clients: map[string]control.Role{}}
		for role, names := range map[control.Role][]string{control.Read: c.ReadClients, control.Operate: c.OperateClients, control.Admin: c.AdminClients} {
			for _, name := range names {
				a.Port.Clients[name] = role
			}
		}
	}
	return a, errors.Join(errs...)
}

// groupNumber is that of a group of the system. Root's is none: who is in it and not root
// was not meant.
func groupNumber(name string) (uint32, error) {
	if gid, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(gid), nil
	}
	g, err := user.LookupGroup(name)
	if err != nil {
		return 0, fmt.Errorf("found no group %s on this system (groupadd --system %s)", name, name)
	}
	gid, err := strconv.ParseUint(g.Gid, 10, 32)
	if err == nil && gid == 0 {
		err = fmt.Errorf("found %s, expected another group than root's", name)
	}
	return uint32(gid), err
}

// moveAccess lets those ask that a changed configuration has.
func (c *change) moveAccess() error {
	was, now := &c.old.Server, &c.cfg.Server
	if reflect.DeepEqual(was.Control, now.Control) && slices.Equal(was.Limits.KnownNetworks, now.Limits.KnownNetworks) || c.api == nil {
		return nil
	}
	to, err := accessOf(now)
	if err != nil {
		return err
	}
	if was.Control.Audit != now.Control.Audit {
		c.undo = append(c.undo, func() error { return c.trail.SetFile(was.Control.Audit) })
		if err := c.trail.SetFile(now.Control.Audit); err != nil {
			return fmt.Errorf("server.control.audit-file: %w", err)
		}
	}
	before, _ := accessOf(was) // of groups that are missing nobody was let in
	if err := c.api.SetAccess(to); err != nil {
		return err
	}
	c.undo = append(c.undo, func() error { return c.api.SetAccess(before) })
	return nil
}

// beginTrail notes changes where the configuration says. What cannot be written is told,
// and does not stop the server.
func (a *applier) beginTrail(cfg *conf.Config) {
	if path := cfg.Server.Control.Audit; path != "" {
		if err := a.trail.SetFile(path); err != nil {
			a.log.Error("changes cannot be noted in the audit file", "file", path, "err", err)
		}
	}
}

// openAccess is who may ask from the start on. A group that is missing does not stop the
// server.
func openAccess(cfg *conf.Config, log *slog.Logger) server.Access {
	a, err := accessOf(&cfg.Server)
	if err != nil {
		log.Warn("nobody is in a group of the configuration", "err", err)
	}
	return a
}

// checkAccess tells what is wrong or unsafe about who may ask.
func checkAccess(cfg *conf.Config, stateDir string) (notes []string) {
	a, err := accessOf(&cfg.Server)
	if err != nil {
		notes = append(notes, err.Error())
	}
	if len(a.Groups) == 0 {
		return notes
	}
	socket := control.SocketIn(stateDir, "")
	for dir := filepath.Dir(socket); ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err == nil && info.Mode().Perm()&0o011 == 0 {
			notes = append(notes, fmt.Sprintf("server.control: members of its groups cannot reach the control socket %s: %s has mode %04o; have it elsewhere (--socket)", socket, dir, info.Mode().Perm()))
		}
		if dir == filepath.Dir(dir) {
			return notes
		}
	}
}
