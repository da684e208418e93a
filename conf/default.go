package conf

import (
	_ "embed"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// DefaultFile is the commented default configuration, conf/tgtd.yaml.
//
//go:embed tgtd.yaml
var DefaultFile []byte

// defaults is the configuration that the keys of a file are read into.
func defaults() *Config {
	return &Config{
		Server: Server{
			BuffersPerThread: 64 * MiB,
			Poll:             PollAdaptive,
			BusyPoll:         200 * time.Microsecond,
			ISER:             ISER{ImmediateData: 8 * KiB, RemoteInvalidation: true},
			PollBudget:       20,
			Congestion:       AutoCongestion,
			Sandbox:          SandboxEnforce,
			Limits: Limits{
				ConnectionsInLogin: 256,
				LoginTimeout:       15 * time.Second,
				Sessions:           1024,
				// open-iscsi's default of node.session.cmds_max: a smaller
				// window would slow it down, a larger one it never fills.
				QueueDepth:     128,
				MaxConnections: 1,
				// 64 commands of 256 KiB, twice open-iscsi's default depth of
				// a LUN, and a quarter of a thread's buffers.
				MemoryPerSession: 16 * MiB,
			},
			NOP: NOP{Interval: 15 * time.Second, Timeout: 10 * time.Second},
		},
		Log:   Log{Level: "info", Format: "text"},
		Cache: defaultCache,
		QoS:   defaultQoS,
	}
}

// Default is DefaultFile with its volume below stateDir. listen replaces its
// portals unless it is empty; see ParseListen for the elements.
func Default(stateDir string, listen []string) (*Config, error) {
	c, _, err := Parse("default configuration", DefaultFile)
	if err != nil {
		return nil, err
	}
	c.InStateDir(stateDir)
	return c, c.SetListen(listen)
}

// SetListen replaces the portals of a configuration that has one portal
// group. An empty list changes nothing.
func (c *Config) SetListen(listen []string) error {
	if len(listen) == 0 {
		return nil
	}
	if len(c.PortalGroups) != 1 {
		return fmt.Errorf("listen: found %d portal-groups, expected one: with several, set their listen keys in the file", len(c.PortalGroups))
	}
	var portals []netip.AddrPort
	for _, text := range listen {
		parsed, ok := ParseListen(text)
		if !ok {
			return fmt.Errorf("listen: found %q, expected %s", text, wantListen)
		}
		portals = append(portals, parsed...)
	}
	for i, p := range portals {
		for _, o := range portals[:i] {
			if overlap(p, o) {
				return fmt.Errorf("listen: found %v, expected a portal that does not overlap with %v", p, o)
			}
		}
	}
	slices.SortFunc(portals, netip.AddrPort.Compare)
	c.PortalGroups[0].Listen = portals
	return nil
}
