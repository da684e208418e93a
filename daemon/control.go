package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"lunar/cache"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
	"lunar/daemon/machine"
	"lunar/internal/cli"
	"lunar/internal/refusals"
	"lunar/internal/version"
	"lunar/target"
	"lunar/target/scsi"
)

// controlStopTime is how long a stop waits for requests of the control API.
const controlStopTime = 2 * time.Second

// metricsOf is empty for no metrics over TCP.
func metricsOf(s *conf.Server) (p server.MetricsPort) {
	if s.Metrics.IsValid() {
		p = server.MetricsPort{Address: s.Metrics.String(), Certificate: s.MetricsCertificate, Key: s.MetricsKey, Token: s.MetricsToken}
	}
	return p
}

// startControl begins to serve the control API.
func startControl(socket string, a *applier) (*server.Server, error) {
	cfg := a.daemon.config.Load()
	a.beginTrail(cfg)
	c := server.Config{
		Socket: socket, Version: version.Number, Source: &source{daemon: a.daemon, started: time.Now(), changes: a}, Logger: a.log,
		Metrics: metricsOf(&cfg.Server), Access: openAccess(cfg, a.log), Trail: a.trail, Vitals: a.daemon, Events: a.daemon.events, MaxFile: int64(conf.MaxFile), Refusals: a.daemon.Refusals,
	}
	api, err := server.Serve(c)
	if errors.Is(err, server.ErrInUse) {
		return nil, fmt.Errorf("%w; is tgtd running with this state directory? --state-dir chooses another", err)
	}
	return api, err
}

func stopControl(api *server.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), controlStopTime)
	defer cancel()
	api.Stop(ctx)
}

// Status implements server.Source. Lists are never nil.
func (s *source) Status() control.Status {
	status := control.Status{
		Server: s.server(), Volumes: []control.Volume{}, Targets: []control.Target{}, Sessions: []control.Session{},
	}
	var cached tier.Snapshot
	if s.daemon.Cache != nil {
		cached = s.daemon.Cache.Snapshot()
		status.Cache = s.cache(&cached)
	}
	traffic, units := s.daemon.Traffic(), map[string]*scsi.LogicalUnit{}
	for lu := range traffic {
		units[lu.Name()] = lu
	}
	cfg := s.daemon.config.Load()
	for i := range cfg.Volumes {
		v := &cfg.Volumes[i]
		if lu := units[v.Name]; lu != nil {
			status.Volumes = append(status.Volumes, s.volumeOf(v, lu, traffic[lu], &cached))
		}
	}
	for _, t := range s.daemon.Targets() {
		status.Targets = append(status.Targets, targetOf(t))
	}
	status.Cluster = s.daemon.clusterState(s.daemon.config.Load())
	status.Incidents, status.LastApply = s.daemon.incidents(), s.daemon.lastApply.Load()
	status.RDMA, status.Moves = s.daemon.rdmaStatus(), s.changes.moves.status()
	status.Drift, status.Closing = append(s.daemon.drift(), s.changes.frozen.drift()...), s.changes.stillLeaving()
	status.Warnings, status.QoS = append(s.daemon.warnings(), s.daemon.keptWarnings()...), s.qosStatus()
	status.Warnings = append(append(status.Warnings, unlockedWarnings(nil)...), s.changes.snapshots.warnings()...)
	if n := cached.Damaged; n > 0 {
		status.Warnings = append(status.Warnings, fmt.Sprintf("cache: %s of its data had a wrong checksum; the log says which: check the machine's memory", cli.Counted(int(n), "part")))
	}
	if cached.Lost {
		status.Warnings = append(status.Warnings, "cache: the segment was removed, renamed or replaced: a crash loses what is not written; stop in order and start again")
	}
	for _, r := range refusals.Reasons() {
		status.Refusals = append(status.Refusals, control.Refusals{Reason: r.String(), Count: s.daemon.Refusals.Of(r)})
	}
	for _, n := range s.daemon.Sessions() {
		status.Sessions = append(status.Sessions, sessionOf(n))
	}
	return status
}

// VolumeState implements server.Source.
func (s *source) VolumeState(name string) control.Volume {
	v := s.daemon.config.Load().Volume(name)
	if v == nil {
		return control.Volume{}
	}
	cached := s.daemon.snapshot()
	for lu, t := range s.daemon.Traffic() {
		if lu.Name() == name {
			return s.volumeOf(v, lu, t, &cached)
		}
	}
	return control.Volume{}
}

// TargetState implements server.Source.
func (s *source) TargetState(name string) control.Target {
	for _, t := range s.daemon.Targets() {
		if t.Name == name {
			return targetOf(t)
		}
	}
	return control.Target{}
}

func (s *source) server() control.Daemon {
	d := control.Daemon{
		Version: version.Number, Build: build(), PID: os.Getpid(), Started: s.started, UptimeSeconds: time.Since(s.started).Seconds(),
		Threads: []control.Thread{}, RetainedBytes: s.daemon.Retained(), AuditMissing: s.changes.trail.Failures(),
	}
	stolen := machine.Stolen()
	for _, t := range s.daemon.Threads() {
		d.Threads = append(d.Threads, control.Thread{
			Name: t.Name, CPU: t.CPU, Node: t.Node, Connections: t.Connections,
			Passes: t.Passes, Sleeps: t.Sleeps, Wakeups: t.Wakeups, Handovers: t.Handovers,
			Looks: t.Looks, LooksInVain: t.Empty,
			BusySeconds: (t.Run - t.Idle).Seconds(), RunSeconds: t.Run.Seconds(), WaitedSeconds: (machine.Waited(t.Thread) + stolen[t.CPU]).Seconds(),
			BufferBytes: int64(t.Pool), BufferUsedBytes: int64(t.PoolUsed), Refused: t.Refused,
		})
	}
	return d
}

// build names what the program was made by and from.
func build() string {
	text := fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				text += " " + s.Value
			}
		}
	}
	return text
}

func (s *source) cache(c *tier.Snapshot) *control.Cache {
	out := &control.Cache{
		SizeBytes: c.Size, BlockBytes: c.Block, UsedBytes: int64(c.Used+c.InFlight) * c.Block,
		DirtyBytes: int64(c.DirtyBytes), DirtyLimitBytes: c.DirtyLimit,
		Hits: c.Hits, Misses: c.Misses, HitRatio: control.Ratio(c.Hits, c.Misses),
		Bypassed: c.Bypassed, Waits: c.Waits, Evictions: c.Evictions, FillErrors: c.FillFails,
		FlushedBytes: c.Flushed, FlushErrors: c.FlushErrors, ThrottledWrites: c.Throttled, WaitingWrites: c.Waiting,
		ReadAheadBytes: c.ReadAhead, SegmentLost: c.Lost, ChecksumFailures: c.Damaged, Nodes: []control.Node{}, Attach: attachOf(s.daemon.Cache.Attached()),
	}
	nodes, threshold := s.daemon.Cache.Forwarding()
	for i, n := range c.Nodes {
		f := nodes[i]
		out.Nodes = append(out.Nodes, control.Node{
			Node: f.Node, Partitions: n.Partitions, SizeBytes: n.Size, UsedBytes: int64(n.Used+n.InFlight) * c.Block,
			DirtyBytes: int64(n.DirtyBytes), Hits: n.Hits, Misses: n.Misses, Evictions: n.Evictions,
			Interpreted: f.Interpreted, Local: f.Local, LocalBytes: f.LocalBytes, Remote: f.Remote, RemoteBytes: f.RemoteBytes,
			Forwarded: f.Forwarded, ForwardedBytes: f.ForwardedBytes,
		})
	}
	if len(nodes) > 1 {
		out.ForwardAdaptive = s.daemon.config.Load().Cache.ForwardThreshold == 0
		if threshold < cache.NeverForward {
			out.ForwardThreshold = &threshold
		}
	}
	return out
}

func attachOf(a tier.Attached) *control.Attach {
	out := &control.Attach{
		Outcome: a.Outcome, Previous: a.Previous, Generation: a.Generation, DirtyBytes: a.DirtyBytes,
		WarmBlocks: a.WarmBlocks, Dropped: a.Dropped, Replaced: a.Replaced, Orphans: []control.Orphan{},
	}
	for _, o := range a.Orphans {
		out.Orphans = append(out.Orphans, control.Orphan{Name: o.Name, DirtyBytes: o.Bytes})
	}
	return out
}

func (s *source) volumeOf(v *conf.Volume, lu *scsi.LogicalUnit, t target.Traffic, cached *tier.Snapshot) control.Volume {
	info := lu.Store().Info()
	out := control.Volume{
		Name: v.Name, Type: string(v.Type), SizeBytes: info.Size, BlockBytes: v.BlockSize,
		ReadOnly: v.ReadOnly || info.ReadOnly, Write: string(v.Write), IO: ioOf(t),
		Health: s.healthOf(v, cached), Frozen: s.changes.frozen.status(v.Name), Errors: storeErrors(lu), Space: s.daemon.Health.Space(v.Name),
	}
	if slot := s.daemon.Health.Slot(v.Name); slot != nil {
		if p, ok := slot.Content().(interface{ Anew() uint64 }); ok {
			out.Anew = p.Anew()
		}
	}
	if c, ok := cached.Volumes[s.daemon.Health.Cached(v.Name)]; ok {
		out.Cache = cachedOf(&c)
	}
	out.Mirror, out.Excess = windowsOf(s.daemon.Health.Base(v.Name))
	out.Snapshots = s.changes.snapshots.status(v.Name)
	return out
}

func cachedOf(v *tier.VolumeStats) *control.VolumeCache {
	out := &control.VolumeCache{
		ResidentBytes: v.Resident, DirtyBytes: v.Dirty, Hits: v.Hits, Misses: v.Misses, HitRatio: control.Ratio(v.Hits, v.Misses),
		Admission: v.Admission, ThrottledWrites: v.Throttled, FlushFailing: !v.FailingSince.IsZero(),
	}
	if out.FlushFailing {
		out.FailingSince = &v.FailingSince
	}
	if f := &v.Fussy; f.Partitions > 0 {
		out.Fussy = &control.Fussy{
			Partitions: f.Partitions, FallenBack: f.LRU, Switches: uint64(f.Switches), Counted: f.Counted, Popular: f.Popular,
			FreqThreshold: f.Params.FreqThreshold, AccessThreshold: f.Params.AccessThreshold,
		}
	}
	return out
}

func targetOf(t target.TargetStats) control.Target {
	out := control.Target{Name: t.Name, Alias: t.Alias, Portals: []string{}, Volumes: []string{}, Sessions: t.Sessions}
	out.Portals = append(out.Portals, t.Portals...)
	for _, lu := range t.Units {
		out.Volumes = append(out.Volumes, lu.Name())
	}
	return out
}

func sessionOf(n target.SessionStats) control.Session {
	out := control.Session{
		TSIH: int(n.TSIH), Initiator: n.Initiator, Alias: n.Alias, User: server.Sayable(n.Proof.String()), ISID: n.ISID, Target: n.Target, Transport: n.Transport,
		Portal: n.Local.String(), Address: n.Remote.String(), Connected: n.Opened, Thread: n.Thread,
		Window: n.Window, InFlight: n.InFlight, LUNs: []control.SessionLUN{},
	}
	out.Connections = []control.SessionConnection{}
	for _, c := range n.Connections {
		state := "open"
		if c.Lost {
			state = "lost"
		}
		out.Connections = append(out.Connections, control.SessionConnection{
			CID: int(c.CID), Portal: c.Local.String(), Address: c.Remote.String(), Transport: n.Transport, Thread: n.Thread,
			State: state, ReadBytes: c.Traffic.ReadBytes, WrittenBytes: c.Traffic.WrittenBytes,
		})
	}
	for _, l := range n.LUNs {
		out.LUNs = append(out.LUNs, control.SessionLUN{LUN: int(l.LUN), Volume: l.LU.Name(), ReadOnly: l.ReadOnly, IO: ioOf(l.Traffic)})
	}
	return out
}

func ioOf(t target.Traffic) control.IO {
	return control.IO{Reads: t.Reads, Writes: t.Writes, Others: t.Others, ReadBytes: t.ReadBytes, WrittenBytes: t.WrittenBytes}
}
