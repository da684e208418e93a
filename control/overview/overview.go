package overview

import "lunar/control"

// mostListed bounds the lists of an Overview, for a page that is made every second.
const mostListed = 200

// Of makes an Overview of a server's state now and of one that is older.
func Of(now, before *Snapshot) control.Overview {
	s := newSpan(now, before)
	s.out = control.Overview{
		At: now.At, Interval: s.seconds, Version: now.Status.Server.Version, Uptime: now.Status.Server.UptimeSeconds,
		Drift: filled(now.Status.Drift), Events: filled(now.Events), Rules: rulesIn(&now.QoS),
	}
	s.out.State, s.out.Line = now.Status.Summary()
	s.sessions()
	s.traffic()
	s.scheduled()
	s.out.Volumes = s.seenVolumes()
	s.out.Threads, s.out.Cache = s.threads(), s.cache()
	s.out.Devices = s.seenDevices()
	s.out.Promises = s.promises()
	s.out.Warnings = s.warnings()
	s.out.Uses, s.out.Initiators = s.listed()
	s.out.Cluster = clusterIn(now.Status.Cluster)
	s.bound()
	s.out.Answers = s.answers()
	s.shorten()
	return s.out
}

// shorten leaves out the less busy.
func (s *span) shorten() {
	o := &s.out
	o.Initiators, o.LeftOut.Initiators = shortened(o.Initiators)
	o.Uses, o.LeftOut.Uses = shortened(o.Uses)
	o.Volumes, o.LeftOut.Volumes = shortened(o.Volumes)
	o.Promises, o.LeftOut.Promises = shortened(o.Promises)
	if o.Cluster != nil {
		o.Cluster.Volumes, o.LeftOut.Owned = shortened(o.Cluster.Volumes)
	}
}

func shortened[T any](list []T) ([]T, int) {
	if len(list) <= mostListed {
		return list, 0
	}
	return list[:mostListed], len(list) - mostListed
}
