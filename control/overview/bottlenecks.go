package overview

import (
	"fmt"
	"maps"
	"slices"

	"lunar/control"
	"lunar/internal/bytesize"
)

// missed is promises that are not kept, and why.
func (s *span) missed() []control.Answer {
	t := told{more: "more promises are missed"}
	for i := range s.out.Promises {
		p := &s.out.Promises[i]
		if p.State != "missed" && !s.lately[ruling{p.Rule, p.Name}] || !t.room() {
			continue
		}
		what := fmt.Sprintf("The promise of rule %s to %s %s was missed in %s of the last minute; in the last second it got what it asked for.", p.Rule, p.Level, p.Name, times(p.MissedOf60, "second"))
		if p.State == "missed" {
			what = fmt.Sprintf("The promise of rule %s to %s %s is missed: it got %s of %s tokens in the last second, and less than promised in %s of the last minute.", p.Rule, p.Level, p.Name, number(p.Served), number(min(p.Reservation, max(p.Asked, 1))), times(p.MissedOf60, "second"))
		}
		why, help := s.whyMissed(p)
		t.add(control.Answer{Severity: control.AnswerMissed, Kind: "promise", About: p.Rule, Initiators: p.Initiators, What: what + " " + why,
			Help: help})
	}
	return t.all()
}

// whyMissed names the bottleneck of those who are promised something, and what would help.
func (s *span) whyMissed(p *control.SeenPromise) (why, help string) {
	var threads, devices []string
	overcommitted, starved := false, false
	for i := range s.out.Initiators {
		who := &s.out.Initiators[i]
		if !slices.Contains(p.Initiators, who.Initiator) {
			continue
		}
		for j := range s.out.Threads {
			if t := &s.out.Threads[j]; t.Busy >= fullShare && slices.Contains(who.Threads, t.Name) {
				threads, starved = noted(threads, t.Name), starved || t.Waited >= waitedShare*t.Busy
			}
		}
		for j := range s.out.Devices {
			if d := &s.out.Devices[j]; d.Full && slices.ContainsFunc(who.Volumes, func(v string) bool { return slices.Contains(d.Volumes, v) }) {
				devices, overcommitted = noted(devices, d.Name), overcommitted || d.Tokens > 0 && d.Reserved > d.Tokens
			}
		}
	}
	switch {
	case starved:
		return fmt.Sprintf("The bottleneck is the machine: event thread %s waits for a CPU.", listOf(threads)),
			"Fewer other processes beside the server, or CPUs of its own; with steal, a host that has room."
	case len(threads) > 0:
		return fmt.Sprintf("The bottleneck is event thread %s.", listOf(threads)),
			"More event threads for the volume (its threads) or the server (server.threads), or less that is promised to others there."
	case overcommitted:
		return fmt.Sprintf("The bottleneck is device %s.", listOf(devices)),
			"More is promised of the device than it can do now: promise less, or move a volume to another device. lunar qos show has its capacity."
	case len(devices) > 0:
		return fmt.Sprintf("The bottleneck is device %s.", listOf(devices)),
			"What the device has begun comes before a promise: limits for the others there, or a smaller window (qos.window), leave less of that."
	}
	return "No device and no event thread is full: it has too few commands under way for that rate.",
		"A deeper queue at the initiator, more jobs, or a second session."
}

// limited is rules whose limits hold somebody back.
func (s *span) limited() []control.Answer {
	t := told{more: "more rules hold somebody back"}
	rules := map[string][]string{}
	most := map[string]float64{}
	for i := range s.out.Initiators {
		if who := &s.out.Initiators[i]; who.Throttled >= heldShare {
			rules[who.HeldBy] = append(rules[who.HeldBy], who.Initiator)
			most[who.HeldBy] = max(most[who.HeldBy], who.Throttled)
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(rules)) {
		if !t.room() {
			continue
		}
		limit := ""
		if i := s.now.QoS.Index(rule); i >= 0 {
			limit = ", at its limit of " + rateIn(s.now.QoS.Rules[i].Limit, s.now.QoS.Cost.UnitBytes)
		}
		upTo := "for"
		if len(rules[rule]) > 1 {
			upTo = "for up to"
		}
		t.add(control.Answer{Severity: control.AnswerFull, Kind: "limit", About: rule, Initiators: rules[rule],
			What: fmt.Sprintf("Rule %s held %s back %s %s of the time%s.", rule, listOf(rules[rule]), upTo, percent(most[rule]), limit),
			Help: "That is what the limit is for. lunar qos set " + rule + " --limit RATE raises it at once."})
	}
	return t.all()
}

// fullThreads is event threads that hardly have a pause.
func (s *span) fullThreads() []control.Answer {
	t := told{more: "more event threads are full"}
	room := slices.ContainsFunc(s.out.Threads, func(t control.SeenThread) bool { return t.Busy < fullShare/2 })
	for i := range s.out.Threads {
		thread := &s.out.Threads[i]
		if thread.Busy < fullShare || !t.room() {
			continue
		}
		if thread.Waited >= waitedShare*thread.Busy {
			t.add(control.Answer{Severity: control.AnswerFull, Kind: "thread", About: thread.Name, Initiators: s.onThread("thread", thread.Name),
				What: fmt.Sprintf("The machine is busy: event thread %s had something to do for %s of the time, and for %s of the time no CPU to do it with.", thread.Name, percent(thread.Busy), percent(thread.Waited)),
				Help: "Other processes have the CPUs, or the host gives them to other machines (steal): see what runs beside the server (top, st of vmstat), or give it CPUs of its own. More event threads would not help."})
			continue
		}
		help := "All event threads have much to do: more of them (server.threads) need more CPUs."
		if room {
			help = "Other event threads have room: a volume with more threads (its threads, 1 by default) has its sessions spread over them."
		}
		t.add(control.Answer{Severity: control.AnswerFull, Kind: "thread", About: thread.Name, Initiators: s.onThread("thread", thread.Name),
			What: fmt.Sprintf("Event thread %s is full: it had something to do for %s of the time, for %s.", thread.Name, percent(thread.Busy), times(thread.Connections, "connection")),
			Help: help})
	}
	return t.all()
}

func (s *span) onThread(kind, thread string) []string {
	return s.boundBy(kind, func(who *control.SeenInitiator) bool { return slices.Contains(who.Threads, thread) })
}

// fullMemory is event threads that have hardly a buffer left.
func (s *span) fullMemory() []control.Answer {
	t := told{more: "more event threads have hardly a buffer"}
	for i := range s.out.Threads {
		if thread := &s.out.Threads[i]; thread.Buffers >= fullShare && t.room() {
			t.add(control.Answer{Severity: control.AnswerFull, Kind: "memory", About: thread.Name, Initiators: s.onThread("memory", thread.Name),
				What: fmt.Sprintf("Event thread %s has handed out %s of its data buffers: commands wait for memory.", thread.Name, percent(thread.Buffers)),
				Help: "More memory for each event thread (server.buffers-per-thread), or fewer commands of each session at once (server.limits.queue-depth)."})
		}
	}
	return t.all()
}

// fullCache is writes that wait for the dirty limit.
func (s *span) fullCache() []control.Answer {
	c := s.out.Cache
	if c == nil || c.Throttled == 0 && c.Waiting == 0 {
		return nil
	}
	return []control.Answer{{Severity: control.AnswerFull, Kind: "cache", Initiators: s.boundBy("cache", nil),
		What: fmt.Sprintf("Writes wait for the cache: %s are not written yet, of %s that may be, and %s go to the files and devices below.", bytesize.Text(c.Dirty), bytesize.Text(c.DirtyLimit), bytesPer(c.Flushed)),
		Help: "Initiators write more than what is below takes. A larger dirty-limit (cache) helps with bursts, a faster device for good."}}
}

// fullDevices is devices that commands waited for, as the scheduler sees it.
func (s *span) fullDevices() []control.Answer {
	t := told{more: "more devices are full"}
	for i := range s.out.Devices {
		d := &s.out.Devices[i]
		if !d.Full || !t.room() {
			continue
		}
		can := ""
		if d.Tokens > 0 {
			can = fmt.Sprintf(" It can do %s tokens/s.", number(d.Tokens))
		}
		t.add(control.Answer{Severity: control.AnswerFull, Kind: "device", About: d.Name,
			Initiators: s.boundBy("device", func(who *control.SeenInitiator) bool {
				return slices.ContainsFunc(who.Volumes, func(v string) bool { return slices.Contains(d.Volumes, v) })
			}),
			What: fmt.Sprintf("Device %s is full: commands to %s wait for it.%s", d.Name, listOf(d.Volumes), can),
			Help: "A faster device, a cache for what is read again, or limits for those who matter less (lunar qos set)."})
	}
	return t.all()
}

// crowded is volumes in which many commands are under way, where nobody measures the device.
func (s *span) crowded() []control.Answer {
	t := told{more: "more volumes have commands that wait"}
	for i := range s.out.Volumes {
		v := &s.out.Volumes[i]
		if !s.crowds[v.Volume] {
			continue
		}
		names := s.boundBy("device", func(who *control.SeenInitiator) bool { return slices.Contains(who.Volumes, v.Volume) })
		if len(names) == 0 || !t.room() {
			continue
		}
		t.add(control.Answer{Severity: control.AnswerFull, Kind: "device", About: v.Volume, Initiators: names,
			What: fmt.Sprintf("Commands wait in the file or device of volume %s: %s were under way on average, for %s each.", v.Volume, small(underWay(&v.Rates, v.Recent)), took(meanTime(v.Recent))),
			Help: "A faster device, a cache for what is read again, or QoS rules: with them the server measures the device and shares it."})
	}
	return t.all()
}

// fullNetworks is bottlenecks of the network that the governor sees.
func (s *span) fullNetworks() []control.Answer {
	t := told{more: "more networks are full"}
	all := s.nets
	for _, device := range slices.Sorted(maps.Keys(all)) {
		if n := all[device]; n.full() && t.room() {
			t.add(control.Answer{Severity: control.AnswerFull, Kind: "network", About: device, Initiators: n.initiators,
				What: fmt.Sprintf("The network behind %s is full: %s of %s reach initiators.", device, bytesPer(float64(n.rate)), bytesPer(float64(n.carries))),
				Help: "A faster link, or a second path (multipath). Classes of rules say who gets more of it."})
		}
	}
	return t.all()
}

// fullWindows is initiators that use all that they may have under way.
func (s *span) fullWindows() []control.Answer {
	names := s.boundBy("window", nil)
	if len(names) == 0 {
		return nil
	}
	return []control.Answer{{Severity: control.AnswerFull, Kind: "window", Initiators: names,
		What: fmt.Sprintf("%s fill their command windows, and nothing else is full.", listOf(names)),
		Help: "A larger window (server.limits.queue-depth) lets them have more under way; on a slow device they only wait longer."}}
}

// asksNoMore is initiators that get what they ask for.
func (s *span) asksNoMore() []control.Answer {
	names := s.boundBy("depth", nil)
	if len(names) == 0 {
		return nil
	}
	told := []string{}
	for i := range s.out.Initiators {
		who := &s.out.Initiators[i]
		if who.Bound == "depth" && len(told) < mostNamed {
			text := who.Initiator
			if len(who.Recent) > 0 {
				text += fmt.Sprintf(" (%s under way on average, %s each)", small(who.UnderWay), took(meanTime(who.Recent)))
			}
			told = append(told, text)
		}
	}
	more := ""
	if n := len(names) - len(told); n > 0 {
		more = fmt.Sprintf(" and for %d more", n)
	}
	return []control.Answer{{Severity: control.AnswerNote, Kind: "depth", Initiators: names,
		What: fmt.Sprintf("Nothing in the server is full for %s%s: all that is asked for is done.", listOf(told), more),
		Help: "If it is to be more, ask for more at once: a deeper queue, more jobs, larger commands. Where there is enough at once already, the network or the host takes the time."}}
}
