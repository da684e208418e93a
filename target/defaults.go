package target

import (
	"log/slog"
	"time"

	"lunar/internal/numa"
	"lunar/target/scsi"
)

// withDefaults also returns where event threads are to run, in turn.
func (c Config) withDefaults() (Config, []place, error) {
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if len(c.Topology.Nodes) == 0 {
		var err error
		if c.Topology, err = numa.Discover(c.Logger); err != nil {
			return c, nil, err
		}
	}
	at := placesOf(c.Topology, c.CPUs)
	if err := checkPlaces(c.Topology, c.CPUs, at); err != nil {
		return c, nil, err
	}
	setDefault(&c.Threads, len(at))
	setDefault(&c.Buffers, defaultBuffers)
	setDefault(&c.Workers, 16)
	// Data that comes unasked lands in the buffer of the command's first segment.
	c.Offer.FirstBurstLength = min(c.Offer.FirstBurstLength, scsi.SegmentSize)
	return c, at, nil
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// setDefaults fills in what is zero.
func (n *Settings) setDefaults(buffers int) {
	setDefault(&n.NOPInterval, 15*time.Second)
	setDefault(&n.NOPTimeout, 10*time.Second)
	setDefault(&n.FlushTime, 10*time.Second)
	setDefault(&n.LogoutTime, 10*time.Second)
	setDefault(&n.DrainTime, 10*time.Second)
	if len(n.DiscoveryAuth.Incoming) == 0 {
		n.DiscoveryAuth.AllowNone = true
	}
	setDefault(&n.Limits.LoginConnections, 256)
	setDefault(&n.Limits.LoginTimeout, 15*time.Second)
	setDefault(&n.Limits.Sessions, 1024)
	setDefault(&n.Limits.LoginsPerAddress, max(1, n.Limits.LoginConnections/4))
	setDefault(&n.Limits.LoginsPerNetwork, max(1, n.Limits.LoginConnections/2))
	setDefault(&n.Limits.SessionsPerAddress, max(1, n.Limits.Sessions/2))
	setDefault(&n.Limits.SessionsPerNetwork, max(1, n.Limits.Sessions*3/4))
	setDefault(&n.Limits.QueueDepth, defaultQueueDepth)
	setDefault(&n.Limits.MaxConnections, 1)
	setDefault(&n.Limits.SessionMemory, min(defaultSessionMemory, buffers/2))
}
