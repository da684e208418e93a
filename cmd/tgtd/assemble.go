package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"

	"lunar/backstore/crypt"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/internal/arena"
	"lunar/internal/numa"
	"lunar/internal/refusals"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
)

// assembly is a server while it is put together.
type assembly struct {
	cfg       *conf.Config
	log       *slog.Logger
	stateDir  string
	identity  string // of the server
	topology  numa.Topology
	left      segmentNote // of the server before this one
	compared  *compared   // with what was applied last
	from      whence      // of the configuration that is put into force; changed under applier.changing
	cacheSize conf.Size   // of data on all nodes
	daemon    *daemon
	rehearsal *tier.Rehearsal              // nil: it is none
	units     map[string]*scsi.LogicalUnit // by volume name
	caches    map[string]tier.Changeable   // of the units behind the cache
	files     map[string]fs.FileInfo       // what volumes were opened from, by their names
	ciphers   map[string]*crypt.Store      // of encrypted volumes that are open
	targets   map[string]target.TargetConfig
	aliases   sync.Map      // from names of volumes to alias
	owners    func() owners // of the stores on record; gathered once, when one is not what it was
}

// assemble makes a server with all volumes and targets of cfg. No portal is
// open yet, so that no initiator comes too early.
func assemble(cfg *conf.Config, stateDir string, log *slog.Logger) (*daemon, error) {
	return (&compared{}).assemble(cfg, stateDir, log)
}

// assemble makes a server that does what a start may do.
func (start *compared) assemble(cfg *conf.Config, stateDir string, log *slog.Logger) (*daemon, error) {
	fresh := newStateDir(stateDir)
	identity, _, err := readIdentity(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		identity, err = serverIdentity(stateDir)
	}
	if err != nil {
		return nil, err
	}
	if fresh {
		warnOfSegments(cfg.Cache.Segment, stateDir, log)
	}
	a := &assembly{
		cfg: cfg, log: log, stateDir: stateDir, identity: identity, compared: start, from: start.from,
		owners: sync.OnceValue(func() owners { return recordedOwners(cfg.Volumes, stateDir) }),
		daemon: &daemon{health: newHealth(), refusals: &refusals.Counters{}}, units: map[string]*scsi.LogicalUnit{}, caches: map[string]tier.Changeable{}, ciphers: map[string]*crypt.Store{}, files: map[string]fs.FileInfo{}, targets: map[string]target.TargetConfig{},
	}
	a.daemon.assembly = a
	a.daemon.config.Store(cfg)
	a.daemon.file.Store(cfg)
	if a.topology, err = topologyFor(&cfg.Server, log); err != nil {
		return nil, err
	}
	logTopology(a.topology, log)
	if a.daemon.qos, err = openQoS(cfg, log); err != nil {
		return nil, err
	}
	if err := a.openCache(); err != nil {
		return nil, err
	}
	if err = a.sealState(); err == nil {
		err = a.openServer()
	}
	if err != nil {
		if a.daemon.cache != nil {
			err = errors.Join(err, a.daemon.cache.Close())
		}
		return nil, err
	}
	if a.daemon.cache != nil {
		a.daemon.cache.Serve(a.daemon.Server.Loops()...)
	}
	if err := errors.Join(a.addVolumes(), a.addTargets()); err != nil {
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

// sealState rewrites the files of an older version. This one has the cache segment by
// then: where it is refused, the older one is to be started again, and must find them.
func (a *assembly) sealState() error {
	_, err := serverIdentity(a.stateDir)
	if err == nil && a.left.old {
		err = a.left.write()
	}
	return err
}

// openServer makes the server, of no volumes and targets.
func (a *assembly) openServer() error {
	config, err := serverConfig(a.cfg, a.topology, a.log)
	if err != nil {
		return err
	}
	config.Refusals = a.daemon.refusals
	config.Guests = loadGuests(a.stateDir, a.log)
	if config.QoS, err = a.daemon.qos.settle(); err != nil {
		return err
	}
	spareProcessors(&a.cfg.Server)
	a.daemon.Server, err = target.NewServer(config)
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
		Poll:          pollOf(&cfg.Server),
		Batching:      batchingOf(&cfg.Server),
		Congestion:    congestionOf(&cfg.Server),
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
	if err := storedTwice(a.cfg); err != nil {
		return err
	}
	var errs []error
	for i := range a.cfg.Volumes {
		v := &a.cfg.Volumes[i]
		lu, err := a.openVolume(v)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		a.units[v.Name] = lu
		a.daemon.AddLogicalUnit(lu, max(v.Threads, 1))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if err := a.settleCache(); err != nil {
		return err
	}
	return a.noteStores(a.cfg.Volumes)
}

func (a *assembly) addTargets() error {
	for i := range a.cfg.Targets {
		c := a.target(&a.cfg.Targets[i])
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
		c.PortalGroups = append(c.PortalGroups, a.cfg.PortalGroup(name).Tag)
	}
	for i := range t.Access {
		c.Access = append(c.Access, a.rule(&t.Access[i], t.Alias))
	}
	return c
}

// rule translates an access rule. Of the rule's own lists and its
// auth-group's, at most one of each kind is there.
func (a *assembly) rule(r *conf.Access, alias string) target.AccessRule {
	g := a.cfg.AuthGroup(r.AuthGroup)
	out := target.AccessRule{Initiators: r.Match.Initiators, Networks: r.Match.Networks, Auth: authOf(g, alias)}
	if g != nil {
		out.Initiators = append(out.Initiators, g.Match.Initiators...)
		out.Networks = append(out.Networks, g.Match.Networks...)
	}
	for _, l := range r.LUNs {
		if lu := a.units[l.Volume]; lu != nil { // else its volume's error is reported
			out.LUNs = append(out.LUNs, target.LUNMapping{LUN: uint16(l.LUN), LU: lu, ReadOnly: l.ReadOnly})
		}
	}
	return out
}
