package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"lunar/backstore/rbd"
	"lunar/conf"
	"lunar/daemon/machine"
	"lunar/daemon/medium"
	"lunar/daemon/state"
	"lunar/daemon/volumes"
	"lunar/internal/arena"
	"lunar/internal/durable"
	"lunar/internal/numa"
	"lunar/target"
	"lunar/target/login"
)

// assemble makes a server with all volumes and targets of cfg, which does what a start
// may do. No portal is open yet, so that no initiator comes too early.
func (start *compared) assemble(cfg *conf.Config, stateDir string, log *slog.Logger) (*daemon, error) {
	fresh := state.Unused(stateDir)
	naming, err := state.SettleNaming(stateDir, fresh, start.known(cfg))
	if err != nil {
		return nil, err
	}
	identity, _, err := state.ReadIdentity(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		identity, err = state.ServerIdentity(stateDir)
	}
	if err != nil {
		return nil, err
	}
	if fresh {
		machine.WarnOfSegments(cfg.Cache.Segment, stateDir, log)
	}
	topology, err := machine.TopologyFor(&cfg.Server, log)
	if err != nil {
		return nil, err
	}
	machine.LogTopology(topology, log)
	start.member.is(cfg)
	set := volumes.NewSet(volumes.Config{Conf: cfg, Log: log, StateDir: stateDir, Identity: identity, Naming: naming, Topology: topology, From: start.from, Ceph: rbd.NewClients(openRBD, log), Cluster: start.member.volumes()})
	a := &assembly{Set: set, compared: start, daemon: &daemon{Set: set, service: start.service, images: make(chan struct{}, 1), member: start.member}, targets: map[string]target.TargetConfig{}}
	set.Forgets, set.Resized = a.forgets, a.daemon.imageResized
	a.daemon.assembly = a
	a.daemon.config.Store(cfg)
	a.daemon.file.Store(cfg)
	if a.daemon.qos, err = openQoS(cfg, log); err == nil {
		err = a.OpenCache()
	}
	if err != nil {
		return nil, errors.Join(err, a.daemon.leaveCluster(context.Background()), start.member.unlink())
	}
	if err = a.SealState(); err == nil {
		err = a.openServer()
	}
	if err != nil {
		if a.daemon.Cache != nil {
			err = errors.Join(err, a.daemon.Cache.Close())
		}
		return nil, errors.Join(err, a.daemon.leaveCluster(context.Background()), start.member.unlink())
	}
	if a.daemon.Cache != nil {
		a.daemon.Cache.Serve(a.daemon.Server.Loops()...)
	}
	if err := errors.Join(a.daemon.openTCP(cfg, log), a.addVolumes(), a.addTargets()); err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		return nil, errors.Join(err, a.daemon.Shutdown(ctx))
	}
	if err := a.daemon.openISER(cfg, log); err != nil {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		return nil, errors.Join(err, a.daemon.Shutdown(ctx))
	}
	return a.daemon, nil
}

// openServer makes the server, of no volumes and targets.
func (a *assembly) openServer() error {
	config, err := serverConfig(a.Conf, a.Topology, a.Log)
	if err != nil {
		return err
	}
	config.Refusals = a.daemon.Refusals
	config.Guests = loadGuests(a.StateDir, a.Log)
	if config.QoS, err = a.daemon.qos.settle(a.daemon.member.linked()); err != nil {
		return err
	}
	spareProcessors(&a.Conf.Server)
	if a.daemon.Server, err = target.NewServer(config); err == nil {
		a.daemon.watch(a.daemon.Loops())
	}
	return err
}

func serverConfig(cfg *conf.Config, topology numa.Topology, log *slog.Logger) (target.Config, error) {
	limits := cfg.Server.Limits
	huge, err := arena.ParseHuge(cfg.Cache.Huge)
	c := target.Config{
		Logger:        log,
		Topology:      topology,
		Threads:       cfg.Server.Threads,
		CPUs:          cfg.Server.CPUs,
		Buffers:       int(cfg.Server.BuffersPerThread),
		Huge:          huge,
		RealTime:      cfg.Server.RealTime,
		Poll:          pollOf(&cfg.Server),
		Offer:         login.DefaultOffer(),
		DiscoveryAuth: authOf(cfg.AuthGroup(cfg.Discovery.AuthGroup), ""),
		Owners:        nameOwnersOf(cfg),
		DiscoverAll:   cfg.Discovery.Portals == conf.AllPortals,
		NOPInterval:   cfg.Server.NOP.Interval,
		NOPTimeout:    cfg.Server.NOP.Timeout,
		FlushTime:     flushTimeOf(cfg),
		Limits: target.Limits{
			LoginConnections: limits.ConnectionsInLogin,
			LoginTimeout:     limits.LoginTimeout,
			Sessions:         limits.Sessions,

			LoginsPerAddress: limits.LoginsPerAddress, LoginsPerNetwork: limits.LoginsPerNetwork,
			SessionsPerAddress: limits.SessionsPerAddress, SessionsPerNetwork: limits.SessionsPerNetwork,
			Known: limits.KnownNetworks,

			QueueDepth:     limits.QueueDepth,
			Recovery:       limits.ErrorRecoveryLevel,
			MaxConnections: limits.MaxConnections,
			SessionMemory:  int(limits.MemoryPerSession),
		},
	}
	if c.NOPInterval == 0 {
		c.NOPInterval = -1 // never; 0 would be the default
	}
	return c, err
}

// addVolumes opens every volume, and reports all that cannot be opened.
func (a *assembly) addVolumes() error {
	if err := medium.StoredTwice(a.Conf); err != nil {
		return err
	}
	a.Fresh = &durable.Batch{}
	defer func() { a.Fresh = nil }()
	var errs []error
	for i := range a.Conf.Volumes {
		v := &a.Conf.Volumes[i]
		lu, err := a.OpenVolume(v)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		a.daemon.AddLogicalUnit(lu, max(v.Threads, 1))
	}
	errs = append(errs, a.Fresh.Flush())
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := a.SettleCache(); err != nil {
		return err
	}
	return a.NoteStores(a.Conf.Volumes)
}

func (a *assembly) addTargets() error {
	for i := range a.Conf.Targets {
		c := a.target(&a.Conf.Targets[i])
		if _, err := a.daemon.AddTarget(c); err != nil {
			return fmt.Errorf("target %s: %w", c.Name, err)
		}
		a.targets[c.Name] = c
	}
	return nil
}

// target translates a target.
func (a *assembly) target(t *conf.Target) target.TargetConfig {
	c := target.TargetConfig{Name: t.Name, Alias: t.Alias, Redirect: t.Redirect, Moved: t.Moved}
	for _, name := range t.PortalGroups {
		c.PortalGroups = append(c.PortalGroups, a.Conf.PortalGroup(name).Tag)
	}
	for i := range t.Access {
		c.Access = append(c.Access, a.rule(&t.Access[i], t.Alias))
	}
	return c
}

// rule translates an access rule. Of the rule's own lists and its
// auth-group's, at most one of each kind is there.
func (a *assembly) rule(r *conf.Access, alias string) target.AccessRule {
	g := a.Conf.AuthGroup(r.AuthGroup)
	out := target.AccessRule{Initiators: r.Match.Initiators, Networks: r.Match.Networks, Auth: authOf(g, alias)}
	if g != nil {
		out.Initiators = append(out.Initiators, g.Match.Initiators...)
		out.Networks = append(out.Networks, g.Match.Networks...)
	}
	for _, l := range r.LUNs {
		if lu := a.Unit(l.Volume); lu != nil { // else its volume's error is reported
			out.LUNs = append(out.LUNs, target.LUNMapping{LUN: uint16(l.LUN), LU: lu, ReadOnly: l.ReadOnly})
		}
	}
	return out
}
