package overview

import (
	"slices"

	"lunar/control"
)

const (
	// heldShare is the share of the time from which a limit is what holds somebody back.
	heldShare = 0.1
	// fullShare is how busy an event thread is that hardly has a pause, and how full what
	// else is full.
	fullShare = 0.9
	// waitedShare is how much of the time in which it had something to do an event thread
	// lacks a CPU at least when it is the machine that is full.
	waitedShare = 0.25
	// crowd is how many commands are under way in a volume that others wait behind, where
	// nobody measures the device.
	crowd = 8
	// fewest is how many commands a second somebody sends who is not idle.
	fewest = 1
)

// tight is what is full of the machine, by name.
type tight struct {
	threads, memory, devices, volumes map[string]bool
	networks                          map[string]bool // by initiator
	writes                            map[string]bool // volumes whose writes wait for the dirty limit
}

// tight finds what is full.
func (s *span) tight() tight {
	t := tight{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for i := range s.out.Threads {
		thread := &s.out.Threads[i]
		t.threads[thread.Name] = thread.Busy >= fullShare
		t.memory[thread.Name] = thread.Buffers >= fullShare
	}
	for _, d := range s.out.Devices {
		t.devices[d.Name] = d.Full
	}
	for i := range s.out.Volumes {
		v := &s.out.Volumes[i]
		t.volumes[v.Volume] = s.now.Status.QoS == nil && underWay(&v.Rates, v.Recent) >= crowd
	}
	for i := range s.now.Status.Volumes {
		v := &s.now.Status.Volumes[i]
		if v.Type == "ram" || v.Type == "null" {
			t.volumes[v.Name] = false // nobody waits for these
		}
		if c, old := v.Cache, s.cached[v.Name].Cache; c != nil && old != nil {
			t.writes[v.Name] = c.ThrottledWrites > old.ThrottledWrites
		}
	}
	s.nets = s.networks()
	for _, n := range s.nets {
		for _, who := range n.initiators {
			t.networks[who] = t.networks[who] || n.full()
		}
	}
	return t
}

func (n *network) full() bool {
	return n.carries > 0 && share(float64(n.rate), float64(n.carries)) >= fullShare
}

// networks are those whose bottleneck is known, by network device.
func (s *span) networks() map[string]*network {
	all := map[string]*network{}
	if s.now.Status.QoS == nil {
		return all
	}
	for i := range s.now.Status.QoS.Connections {
		c := &s.now.Status.QoS.Connections[i]
		if c.Device == "" || c.Bottleneck == 0 {
			continue
		}
		n := all[c.Device]
		if n == nil {
			n = &network{}
			all[c.Device] = n
		}
		n.carries, n.rate = max(n.carries, c.Bottleneck), n.rate+c.Rate
		n.initiators = noted(n.initiators, c.Initiator)
	}
	for _, n := range all { // a connection's rate is that of its bursts: pauses do not count
		moved := 0.0
		for _, name := range n.initiators {
			if who := s.known[name]; who != nil {
				moved += max(who.ReadBytes, who.WrittenBytes)
			}
		}
		n.rate = min(n.rate, int64(moved))
	}
	return all
}

// bound says of each initiator what its rate ends at.
func (s *span) bound() {
	t := s.tight()
	s.crowds = t.volumes
	volumes := map[string][]string{} // that an initiator uses now
	for i := range s.out.Uses {
		if u := &s.out.Uses[i]; u.IOPS >= fewest || u.Waiting > 0 {
			volumes[u.Initiator] = append(volumes[u.Initiator], u.Volume)
		}
	}
	for i := range s.out.Initiators {
		who := &s.out.Initiators[i]
		who.Bound = s.boundOf(who, volumes[who.Initiator], &t)
	}
}

func (s *span) boundOf(who *control.SeenInitiator, uses []string, t *tight) string {
	any := func(names []string, full map[string]bool) bool {
		return slices.ContainsFunc(names, func(n string) bool { return full[n] })
	}
	devices := []string{}
	for _, v := range uses {
		devices = noted(devices, s.devices[v])
	}
	switch {
	case who.IOPS < fewest && who.Waiting == 0 && who.InFlight == 0:
		return "idle"
	case who.Throttled >= heldShare:
		return "limit"
	case any(who.Threads, t.memory):
		return "memory"
	case any(who.Threads, t.threads):
		return "thread"
	case who.Writes >= fewest && any(uses, t.writes):
		return "cache"
	case any(devices, t.devices), any(uses, t.volumes):
		return "device"
	case t.networks[who.Initiator]:
		return "network"
	case who.Window > 0 && share(float64(who.InFlight), float64(who.Window)) >= fullShare:
		return "window"
	}
	return "depth"
}

// boundBy are the initiators whose rate ends at a kind of thing, and of which holds is true.
func (s *span) boundBy(kind string, holds func(*control.SeenInitiator) bool) []string {
	names := []string{}
	for i := range s.out.Initiators {
		if who := &s.out.Initiators[i]; who.Bound == kind && (holds == nil || holds(who)) {
			names = append(names, who.Initiator)
		}
	}
	return names
}
