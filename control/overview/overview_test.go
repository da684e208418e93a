package overview

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"lunar/control"
)

const (
	db     = "iqn.2026-11.test:db"
	vm     = "iqn.2026-11.test:vm"
	target = "iqn.2026-11.test:t"
)

var began = time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)

// two are the states of a server at 0 s and at 2 s, in which db has read 2,000 blocks of
// 4 KiB and vm has written 200 of 64 KiB.
func two() (now, before *Snapshot) {
	before = &Snapshot{At: began, Status: status(), Latencies: latency()}
	now = &Snapshot{At: began.Add(2 * time.Second), Status: status(), Latencies: latency()}
	n := &now.Status
	n.Sessions[0].LUNs[0].IO = control.IO{Reads: 3000, ReadBytes: 3000 * 4096}
	n.Sessions[1].LUNs[0].IO = control.IO{Writes: 200, WrittenBytes: 200 * 65536}
	n.Volumes[0].IO = control.IO{Reads: 3000, Writes: 200, ReadBytes: 3000 * 4096, WrittenBytes: 200 * 65536}
	n.Server.Threads[0].BusySeconds, n.Server.Threads[0].RunSeconds = 1, 2
	now.QoS.Capacity.Devices = []control.Device{{Name: "nvme0n1", Volumes: []string{"disk"}, Tokens: 48000}}
	return now, before
}

func status() control.Status {
	session := func(tsih int, who string, io control.IO) control.Session {
		return control.Session{TSIH: tsih, Initiator: who, Target: target, Thread: "event0", Address: "192.0.2.1:5000", Connected: began, Window: 128, InFlight: 1,
			LUNs: []control.SessionLUN{{LUN: 0, Volume: "disk", IO: io}}}
	}
	return control.Status{
		Server:   control.Daemon{Version: "1.2.3", Started: began, Threads: []control.Thread{{Name: "event0", CPU: 1, Connections: 2, BufferBytes: 100, BufferUsedBytes: 10}}},
		Volumes:  []control.Volume{{Name: "disk", Type: "file", SizeBytes: 1 << 30, Health: control.Health{State: control.HealthOK}, IO: control.IO{Reads: 1000, ReadBytes: 1000 * 4096}}},
		Sessions: []control.Session{session(1, db, control.IO{Reads: 1000, ReadBytes: 1000 * 4096}), session(2, vm, control.IO{})},
	}
}

func latency() control.Latencies {
	reads := []control.OperationQuantile{{Operation: "read", Count: 10000, Mean: 0.001, P50: 0.001, P99: 0.004, Max: 0.01}}
	buckets := []control.Bucket{{Below: 0.001, Count: 6}, {Below: 0.002, Count: 9}}
	return control.Latencies{Interval: 10, Volumes: []control.VolumeLatency{{Volume: "disk", Recent: reads, Total: []control.OperationLatency{
		{Operation: "read", Latency: control.Latency{Count: 10, Buckets: buckets}}, {Operation: "other", Latency: control.Latency{Count: 99, Buckets: buckets}}}}},
		Initiators: []control.InitiatorLatency{{Initiator: db, Recent: reads}},
		Uses:       []control.UseLatency{{Volume: "disk", Initiator: db, Recent: reads}}}
}

// TestRates: what the counters grew by, per second, by initiator, volume and both.
func TestRates(t *testing.T) {
	now, before := two()
	now.Latencies.Volumes[0].Total[0].Latency = control.Latency{Count: 17, Buckets: []control.Bucket{{Below: 0.001, Count: 8}, {Below: 0.002, Count: 14}}}
	o := Of(now, before)
	if o.Interval != 2 || o.Total != (control.Rates{IOPS: 1100, Reads: 1000, Writes: 100, ReadBytes: 1000 * 4096, WrittenBytes: 100 * 65536}) {
		t.Errorf("total: %+v over %v s", o.Total, o.Interval)
	}
	if len(o.Initiators) != 2 || o.Initiators[0].Initiator != db || o.Initiators[0].IOPS != 1000 || o.Initiators[1].WrittenBytes != 100*65536 {
		t.Errorf("initiators: %+v", o.Initiators)
	}
	if got := o.Initiators[0].UnderWay; math.Abs(got-1) > 1e-9 {
		t.Errorf("under way: %v, expected 1,000 a second for 1 ms", got)
	}
	if len(o.Uses) != 2 || o.Uses[0].Volume != "disk" || o.Uses[0].Recent[0].P99 != 0.004 || o.Uses[1].Initiator != vm {
		t.Errorf("uses: %+v", o.Uses)
	}
	if v := o.Volumes[0]; v.Device != "nvme0n1" || v.HitRatio != nil || len(v.Heat) != 3 || v.Heat[0] != 2 || v.Heat[1] != 3 || v.Heat[2] != 2 {
		t.Errorf("volume: %+v", v)
	}
	if th := o.Threads[0]; th.Busy != 0.5 || th.Buffers != 0.1 {
		t.Errorf("thread: %+v", th)
	}
	if d := o.Devices[0]; d.IOPS != 1100 || d.Full {
		t.Errorf("device: %+v", d)
	}
	text, err := json.Marshal(o)
	if err != nil || strings.Contains(string(text), ":null") {
		t.Errorf("%v: a list is null in %s", err, text)
	}
}

// TestNewSessions: a session that has the number of another, a server that was started anew
// and a volume that is new have grown from zero.
func TestNewSessions(t *testing.T) {
	now, before := two()
	now.Status.Sessions[0].Connected = began.Add(time.Second)
	before.Status.Volumes, before.Latencies = nil, control.Latencies{}
	o := Of(now, before)
	if o.Initiators[0].IOPS != 1500 || o.Total.Reads != 1500 {
		t.Errorf("found %+v", o.Initiators[0].Rates)
	}
	now, before = two()
	before.Status.Sessions[0].LUNs[0].IO.Reads = 1 << 40
	if o := Of(now, before); o.Initiators[0].Reads != 1500 {
		t.Errorf("a counter that went back: found %v", o.Initiators[0].Reads)
	}
	if o := Of(now, now); math.IsNaN(o.Total.IOPS) || o.Total.IOPS != 0 {
		t.Errorf("no time between: found %v", o.Total.IOPS)
	}
}

// ruled gives db a reservation and vm a limit.
func ruled(now, before *Snapshot) {
	flow := func(who, rule string, served int64, held float64) control.Flow {
		return control.Flow{Initiator: who, Target: target, Open: true, Threads: 1, OfferedTokens: served, ServedTokens: served, Rules: []control.Effect{{Rule: rule, Level: "initiator", Limit: control.Rate{IOPS: 100}, HeldIOPS: held}}}
	}
	before.Status.QoS = &control.Explanation{Flows: []control.Flow{flow(db, "gold", 1000, 0), flow(vm, "tests", 0, 3)}}
	now.Status.QoS = &control.Explanation{
		Flows: []control.Flow{flow(db, "gold", 3000, 0), flow(vm, "tests", 200, 4)},
		Promises: []control.Promised{{Rule: "gold", Level: "initiator", Name: db, Reservation: 5000,
			Periods: []control.Period{{Reservation: 5000, Offered: 6000, Served: 4000}, {Reservation: 5000, Offered: 6000, Served: 5000, Met: true}}}},
	}
	now.QoS.Cost.UnitBytes = 4096
	now.QoS.Rules = []control.Rule{{Name: "gold", Initiators: []string{db}, Reservation: control.Rate{IOPS: 5000}}, {Name: "tests", Initiators: []string{vm}, Limit: control.Rate{IOPS: 100}}}
}

// TestPromises: what is promised, asked for, received and held back.
func TestPromises(t *testing.T) {
	now, before := two()
	ruled(now, before)
	o := Of(now, before)
	who := o.Initiators[0]
	if who.Reserved != 5000 || who.Received != 1000 || who.Promise != "kept" || who.Rules[0] != "gold" {
		t.Errorf("db: %+v", who)
	}
	if held := o.Initiators[1]; held.Throttled != 0.5 || held.HeldBy != "tests" || held.Bound != "limit" || held.Limit.IOPS != 100 {
		t.Errorf("vm: %+v", held)
	}
	p := o.Promises[0]
	if p.State != "kept" || p.MissedOf60 != 1 || p.Served != 5000 || len(p.History) != 2 || p.Initiators[0] != db {
		t.Errorf("promise: %+v", p)
	}
	now.Status.QoS.Promises[0].Periods[1].Met = false
	if o := Of(now, before); o.Initiators[0].Promise != "missed" || o.Promises[0].State != "missed" {
		t.Errorf("missed: %+v", o.Promises)
	}
}

// TestAnswers: what each state of a server is answered with, in red or not, and what an
// initiator's rate ends at.
func TestAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(now, before *Snapshot)
		severity string // of the first answer
		says     string // part of one
		bound    string // of db
	}{
		"nothing": {func(*Snapshot, *Snapshot) {}, "ok", "Nothing in the server is full for iqn.2026-11.test:db (1.0 under way on average, 1ms each)", "depth"},
		"nobody":  {func(n, b *Snapshot) { n.Status.Sessions = nil }, "ok", "no initiator is connected", ""},
		"idle": {func(n, b *Snapshot) {
			n.Status.Sessions, n.Status.Volumes = b.Status.Sessions, b.Status.Volumes
			n.Status.Sessions[0].InFlight = 0
		}, "ok", "nobody asks for anything now", "idle"},
		"dirty": {func(n, _ *Snapshot) {
			n.Status.Volumes[0].Cache = &control.VolumeCache{DirtyBytes: 12 << 20, FlushFailing: true, FailingSince: &began}
			n.Status.Volumes[0].Health.Troubles = []control.Trouble{{State: "failed", What: control.DirtyTrouble + " since then"}}
		}, "failed", "12MiB of volume disk are in the cache alone since 03:00:00", "depth"},
		"orphan": {func(n, _ *Snapshot) {
			o := control.Orphan{Name: "old", DirtyBytes: 4096}
			n.Status.Cache, n.Status.Warnings = &control.Cache{Attach: &control.Attach{Orphans: []control.Orphan{o}}}, []string{o.Warning()}
		}, "failed", "4KiB of volume old, which is not served", "depth"},
		"trouble": {func(n, _ *Snapshot) {
			n.Status.Volumes[0].Health = control.Health{State: "degraded", Troubles: []control.Trouble{{State: "degraded", What: "its file was deleted"}}}
		}, "failed", "Volume disk is degraded: its file was deleted.", "depth"},
		"drift": {func(n, _ *Snapshot) {
			n.Status.Drift = []control.Drift{{Kind: "qos", What: "qos.rules.gold: new"}, {Kind: "drain", What: "portal lan"}}
		}, "differs", "in 2 things: qos.rules.gold: new; portal lan.", "depth"},
		"missed, too few commands": {func(n, b *Snapshot) {
			ruled(n, b)
			n.Status.QoS.Promises[0].Periods[1].Met = false
		}, "missed", "it got 5,000 of 5,000 tokens in the last second, and less than promised in 2 seconds of the last minute. No device and no event thread is full", "depth"},
		"missed, a thread": {func(n, b *Snapshot) {
			ruled(n, b)
			n.Status.Server.Threads[0].BusySeconds = 1.9
		}, "missed", "The bottleneck is event thread event0.", "thread"},
		"missed, a device": {func(n, b *Snapshot) {
			ruled(n, b)
			n.QoS.Capacity.Bottleneck = []string{control.DeviceBottleneck("nvme0n1")}
		}, "missed", "The bottleneck is device nvme0n1.", "device"},
		"limit": {func(n, b *Snapshot) {
			ruled(n, b)
			n.Status.QoS.Promises = nil
		}, "full", "Rule tests held iqn.2026-11.test:vm back for 50 % of the time, at its limit of 100 commands of 4KiB per second.", "depth"},
		"thread": {func(n, _ *Snapshot) { n.Status.Server.Threads[0].BusySeconds = 1.9 }, "full", "Event thread event0 is full: it had something to do for 95 % of the time, for 2 connections.", "thread"},
		"machine": {func(n, _ *Snapshot) {
			n.Status.Server.Threads[0].BusySeconds, n.Status.Server.Threads[0].WaitedSeconds = 1.9, 1.2
		}, "full", "The machine is busy: event thread event0 had something to do for 95 % of the time, and for 60 % of the time no CPU to do it with.", "thread"},
		"missed, the machine": {func(n, b *Snapshot) {
			ruled(n, b)
			n.Status.Server.Threads[0].BusySeconds, n.Status.Server.Threads[0].WaitedSeconds = 1.9, 1.2
		}, "missed", "The bottleneck is the machine: event thread event0 waits for a CPU.", "thread"},
		"memory": {func(n, _ *Snapshot) { n.Status.Server.Threads[0].BufferUsedBytes = 95 }, "full", "has handed out 95 % of its data buffers", "memory"},
		"crowd": {func(n, _ *Snapshot) {
			n.Latencies.Volumes[0].Recent[0].Mean, n.Latencies.Volumes[0].Recent[0].Count = 0.012, 10000
		}, "full", "Commands wait in the file or device of volume disk: 12.0 were under way on average, for 12ms each.", "device"},
		"window":  {func(n, _ *Snapshot) { n.Status.Sessions[0].InFlight = 128 }, "full", "iqn.2026-11.test:db fill their command windows", "window"},
		"warning": {func(n, _ *Snapshot) { n.Status.Warnings = []string{"qos: too much is reserved"} }, "warning", "Qos: too much is reserved.", "depth"},
		"cache": {func(n, b *Snapshot) {
			n.Status.Cache, b.Status.Cache = &control.Cache{ThrottledWrites: 4, DirtyBytes: 1 << 20, DirtyLimitBytes: 1 << 20}, &control.Cache{}
		}, "full", "Writes wait for the cache: 1MiB are not written yet, of 1MiB that may be", "depth"},
		"bursts": {func(n, b *Snapshot) {
			ruled(n, b)
			n.Status.QoS.Promises = nil
			n.Status.QoS.Connections = []control.ClassedConnection{{Initiator: db, Device: "eth0", Rate: 1 << 40, Bottleneck: 1 << 40}}
		}, "ok", "", "depth"},
		"network": {func(n, b *Snapshot) {
			ruled(n, b)
			n.Status.QoS.Promises = nil
			n.Status.QoS.Connections = []control.ClassedConnection{{Initiator: db, Device: "eth0", Rate: 99 << 20, Bottleneck: 4 << 20}}
		}, "full", "The network behind eth0 is full: 3.91MiB/s of 4MiB/s reach initiators.", "network"},
	} {
		t.Run(name, func(t *testing.T) {
			now, before := two()
			test.change(now, before)
			o := Of(now, before)
			var said []string
			for _, a := range o.Answers {
				said = append(said, a.Severity+": "+a.What)
			}
			if len(o.Answers) == 0 || o.Answers[0].Severity != test.severity && test.severity != "ok" || !strings.Contains(strings.Join(said, "\n"), test.says) {
				t.Errorf("found\n%s\nexpected first %s, and %s", strings.Join(said, "\n"), test.severity, test.says)
			}
			found := ""
			for _, who := range o.Initiators {
				if who.Initiator == db {
					found = who.Bound
				}
			}
			if found != test.bound {
				t.Errorf("bound by %q, expected %q", found, test.bound)
			}
			for i, a := range o.Answers {
				for _, b := range o.Answers[:i] {
					if a.What == b.What {
						t.Errorf("said twice: %s", a.What)
					}
				}
			}
		})
	}
}

// TestShortened: a list has the busiest and says how many it leaves out.
func TestShortened(t *testing.T) {
	now, before := two()
	for i := range 3 * mostListed {
		v := now.Status.Volumes[0]
		v.Name, v.IO = strings.Repeat("x", i+1), control.IO{Reads: uint64(i)}
		now.Status.Volumes = append(now.Status.Volumes, v)
	}
	o := Of(now, before)
	if len(o.Volumes) != mostListed || o.LeftOut.Volumes != 2*mostListed+1 || o.Volumes[0].Volume != "disk" || len(o.Volumes[1].Volume) != 3*mostListed {
		t.Errorf("found %d volumes, %d left out", len(o.Volumes), o.LeftOut.Volumes)
	}
}

// TestExplained: rules in words.
func TestExplained(t *testing.T) {
	lun := uint64(3)
	for want, r := range map[string]control.Rule{
		"Initiator iqn.a is promised 5,000 commands per second.":                                                                                {Initiators: []string{"iqn.a"}, Reservation: control.Rate{IOPS: 5000}},
		"Each initiator iqn.a* and iqn.b gets at most 1,000 commands and 500MiB per second.":                                                    {Initiators: []string{"iqn.a*", "iqn.b"}, Limit: control.Rate{IOPS: 1000, Bytes: 500 << 20}},
		"Group vmware as a whole gets at most 1GiB per second, and after a pause at once 2GiB more; and is of class low.":                       {Group: "vmware", Limit: control.Rate{Bytes: 1 << 30}, Burst: control.Rate{Bytes: 2 << 30}, Class: "low"},
		"Each initiator, with LUN 3 of target iqn.t, has 3 parts of what is left, where others have one.":                                       {Initiators: []string{"*"}, Target: "iqn.t", LUN: &lun, Weight: 3},
		"Each initiator has one part of what others leave.":                                                                                     {Initiators: []string{"*"}, Class: "medium"},
		"Each initiator, with LUN 3 of each target, may name a class with each command.":                                                        {Initiators: []string{"*"}, LUN: &lun, GroupNumber: true},
		"Each initiator, with each LUN of target iqn.t, is promised 1MiB per second; and is of class high, unless a command names another one.": {Initiators: []string{"*"}, Target: "iqn.t", Reservation: control.Rate{Bytes: 1 << 20}, Class: "high", GroupNumber: true},
	} {
		if got := explained(&r, 0); got != want {
			t.Errorf("found    %s\nexpected %s", got, want)
		}
	}
}
