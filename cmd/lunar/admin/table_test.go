package admin

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"lunar/control"
)

var update = flag.Bool("update", false, "write testdata anew")

// statusOf is a server with something of everything.
func statusOf() control.Status {
	start := time.Date(2026, 11, 21, 10, 30, 0, 0, time.UTC)
	threshold := int64(64 << 10)
	io := control.IO{Reads: 1234567, Writes: 89, Others: 5, ReadBytes: 5 << 30, WrittenBytes: 1023 << 10}
	return control.Status{
		Server: control.Daemon{Version: "1.2.3", Build: "go1.26 linux/amd64", PID: 4711, Started: start, UptimeSeconds: 93784.2, Threads: []control.Thread{
			{Name: "event0", CPU: 0, Node: 0, Connections: 2, BusySeconds: 25, RunSeconds: 100, BufferBytes: 64 << 20, BufferUsedBytes: 1 << 20,
				Looks: 5000, LooksInVain: 40, Handovers: 60},
			{Name: "event1", CPU: -1, Node: -1, BufferBytes: 64 << 20},
		}},
		Cache: &control.Cache{
			SizeBytes: 4 << 30, BlockBytes: 256 << 10, UsedBytes: 1 << 30, DirtyBytes: 12 << 20, DirtyLimitBytes: 2 << 30,
			Hits: 900, Misses: 100, HitRatio: 0.9, Bypassed: 7, Evictions: 42, FlushedBytes: 3 << 20, FlushErrors: 1,
			ThrottledWrites: 6, WaitingWrites: 2, ReadAheadBytes: 8 << 20, ForwardThreshold: &threshold, ForwardAdaptive: true,
			Attach: &control.Attach{Outcome: "crashed", Previous: "1.2.2", Generation: 3, DirtyBytes: 4 << 20, WarmBlocks: 4000, Dropped: 2,
				Orphans: []control.Orphan{{Name: "old", DirtyBytes: 8192}}},
			Nodes: []control.Node{
				{Node: 0, Partitions: 16, SizeBytes: 2 << 30, UsedBytes: 1 << 29, DirtyBytes: 8 << 20, Hits: 500, Misses: 100, Evictions: 40, Interpreted: 9, Local: 8, LocalBytes: 7 << 30, Remote: 1, RemoteBytes: 5 << 10, Forwarded: 12, ForwardedBytes: 3 << 20},
				{Node: 1, Partitions: 16, SizeBytes: 2 << 30, UsedBytes: 1 << 29, DirtyBytes: 4 << 20, Hits: 400, Evictions: 2},
			},
		},
		Volumes: []control.Volume{
			{Name: "db", Type: "block", SizeBytes: 2 << 40, BlockBytes: 4096, Write: "back", IO: io, Cache: &control.VolumeCache{
				ResidentBytes: 900 << 20, DirtyBytes: 12 << 20, Hits: 900, Misses: 100, HitRatio: 0.9, Admission: "fussy",
				Fussy: &control.Fussy{Partitions: 32, FallenBack: 3}, FlushFailing: true, FailingSince: &start},
				Health: control.Health{State: control.HealthFailed, Troubles: []control.Trouble{{State: control.HealthFailed, What: "dirty data cannot be written", Since: start}}}},
			{Name: "scratch", Type: "ram", SizeBytes: 1 << 30, BlockBytes: 512, Write: "through", Cache: &control.VolumeCache{Admission: "lru"}},
			{Name: "iso", Type: "file", SizeBytes: 700 << 20, BlockBytes: 512, ReadOnly: true, Write: "through"},
		},
		Warnings: []string{"qos: reservations add up to 300 tokens per period, 100 more than the capacity of 200"},
		Sessions: []control.Session{
			{TSIH: 1, Initiator: "iqn.2026-11.test:h\x1b[31m\t1", Target: "iqn.2026-11.test:t", Transport: "iser", Address: "192.0.2.7:40000", Connected: start, Thread: "event0",
				Window: 128, InFlight: 32, LUNs: []control.SessionLUN{{LUN: 0, Volume: "db", IO: io}, {LUN: 1, Volume: "scratch"}}},
			{TSIH: 2, Initiator: "iqn.2026-11.test:h2", Transport: "tcp", Address: "[2001:db8::1]:40001", Connected: start, Thread: "event0", Window: 128},
		},
	}
}

// TestStatusTables: what is printed, sums and rates.
func TestStatusTables(t *testing.T) {
	now, before := statusOf(), statusOf()
	before.Server.UptimeSeconds -= 2
	before.Server.Threads[0].BusySeconds, before.Server.Threads[0].RunSeconds = 24, 98
	before.Server.Threads[0].Looks -= 200
	before.Server.Threads[0].Handovers -= 6
	before.Volumes[0].IO.Reads -= 2000
	before.Volumes[0].IO.ReadBytes -= 8 << 20
	before.Volumes[0].Cache.Hits -= 30
	before.Volumes[0].Cache.Misses -= 10
	before.Sessions[0].LUNs[0].IO.Reads -= 1000
	before.Cache.Hits -= 30
	before.Cache.Misses -= 10
	before.Cache.Evictions -= 4
	before.Cache.Nodes[0].Forwarded -= 4
	before.Cache.Nodes[0].ForwardedBytes -= 1 << 20
	rates := ratesOf(&now, &before)
	bare := control.Status{Server: control.Daemon{Version: "1.2.3", Build: "go1.26 linux/amd64", PID: 1}}
	for name, test := range map[string]struct {
		status *control.Status
		per    string
	}{"sums": {&now, ""}, "rates": {&rates, "/s"}, "bare": {&bare, ""}} {
		var out bytes.Buffer
		render(&out, test.status, test.per)
		if again := statusOf(); !reflect.DeepEqual(now, again) {
			t.Fatal("rates have changed the status that they were made of")
		}
		golden(t, filepath.Join("testdata", "status", name+".txt"), out.String())
	}
	var out bytes.Buffer
	now.Sessions[0].Connections = []control.SessionConnection{
		{CID: 0, Portal: "192.0.2.1:3260", Address: "192.0.2.9:40000", Transport: "tcp", Thread: "event0", State: "lost", ReadBytes: 1 << 20},
		{CID: 3, Portal: "192.0.2.2:3260", Address: "192.0.2.9:40001", Transport: "tcp", Thread: "event0", State: "open", ReadBytes: 1 << 30, WrittenBytes: 4096},
	}
	section(&out, connectionTable, connectionRows(now.Sessions), "")
	golden(t, filepath.Join("testdata", "status", "connections.txt"), out.String())
}

// golden compares text with a file.
func golden(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s: found\n%s\nexpected\n%s\n(go test ./cmd/lunar/admin -run %s -update)", path, text, want, t.Name())
	}
}

// TestRatesOfARestartedServer: what was counted before is not taken off.
func TestRatesOfARestartedServer(t *testing.T) {
	now, before := statusOf(), statusOf()
	before.Server.Started = before.Server.Started.Add(-time.Hour)
	now.Server.UptimeSeconds = 1
	if r := ratesOf(&now, &before); r.Cache.Hits != now.Cache.Hits || r.Volumes[0].IO != now.Volumes[0].IO || r.Sessions[0].LUNs[0].IO != now.Sessions[0].LUNs[0].IO {
		t.Errorf("found %+v", r.Cache)
	}
}

// TestQoSTables: what show and explain print.
func TestQoSTables(t *testing.T) {
	lun := uint64(2)
	gold := control.Rule{Name: "gold", Initiators: []string{"iqn.2026-11.test:db*", "iqn.2026-11.test:web"}, Target: "iqn.2026-11.test:t", LUN: &lun,
		Reservation: control.Rate{IOPS: 5000}, Limit: control.Rate{IOPS: 20000, Bytes: 500 << 20}, Burst: control.Rate{IOPS: 100, Bytes: 1 << 20}, Weight: 3, Class: "high"}
	vms := control.Rule{Name: "vms", Group: "vmware", Limit: control.Rate{IOPS: 10000}, Weight: 1, Class: "medium"}
	old, slow := vms, gold
	old.Name, slow.Name, slow.Weight = "old", "slow", 1
	faster := slow
	faster.Weight = 9
	capacity := control.Capacity{Overcommitted: true, Warning: "reservations add up to 60000", Bottleneck: []string{"event thread event0", "device sdb"}, Threads: []control.ThreadCapacity{
		{Name: "event0", Tokens: 400_000, Served: 390_000, Load: 97}, {Name: "event1", Load: 3},
	}, Devices: []control.Device{
		{Name: "nvme0n1", Volumes: []string{"a", "b"}, Tokens: 48000, Source: "measured", Admission: 50000, Reserved: 5000, History: []int64{47000, 51000, 48000}},
		{Name: "ram/c", Volumes: []string{"c"}, Source: "learnt"}}}
	q := control.QoS{
		RuleSet:    control.RuleSet{Rules: []control.Rule{gold, faster, vms}, Groups: []control.Group{{Name: "vmware", Initiators: []string{"iqn.1998-01.com.vmware:*", "iqn.x"}}}},
		Configured: control.RuleSet{Rules: []control.Rule{old, slow, vms}}, Changed: true, Lasting: control.Lasting(true), Capacity: capacity,
		Cost: control.Cost{UnitBytes: 4096, WritePercent: 150}, Window: 32,
	}
	bare := control.QoS{Lasting: control.Lasting(false), Cost: control.Cost{UnitBytes: 4096, WritePercent: 100}, Window: 32}
	latency := control.Latency{Count: 12345, Sum: 13.5, P50: 0.000812, P90: 0.0123, P99: 0.234, P999: 1.5, Max: 1.625}
	name := "iqn.2026-11.test:h\x1b[31m\t1"
	flow := control.Flow{Initiator: name, Target: "iqn.2026-11.test:t", LUN: 2, Open: true, Offered: 12400, Served: 12345, ServedBytes: 5 << 30,
		Reserved: 9000, Normal: 3000, Opportunistic: 345, Hits: 77, Cancelled: 3, Waiting: 55,
		Rules: []control.Effect{{Rule: "vms", Level: "group", Limit: control.Rate{IOPS: 10000}, HeldIOPS: 3.25},
			{Rule: "gold", Level: "nexus", Reservation: control.Rate{IOPS: 5000}, Limit: control.Rate{IOPS: 20000, Bytes: 500 << 20}, HeldBandwidth: 75.4, Tokens: 120}},
		Queue: latency, Service: latency}
	other := control.Flow{Initiator: name, Target: "iqn.2026-11.test:u", Open: true}
	x := control.Explanation{Capacity: capacity, Rules: 3, Flows: []control.Flow{flow, other}, Promises: []control.Promised{{
		Rule: "gold", Level: "nexus", Name: name + " iqn.2026-11.test:t 2", Reservation: 5000, Met: 58, Missed: 2, Unused: 12,
		Periods: []control.Period{{Reservation: 5000, Offered: 6000, Served: 5500, Met: true}, {Reservation: 5000, Offered: 6000, Served: 4000}}}}}
	closed := flow
	closed.Open, closed.Rules[0].HeldIOPS = false, 3.25
	for file, render := range map[string]func(*bytes.Buffer){
		"show": func(b *bytes.Buffer) { renderQoS(b, &q) }, "show-bare": func(b *bytes.Buffer) { renderQoS(b, &bare) },
		"explain":        func(b *bytes.Buffer) { renderExplanation(b, name, &x) },
		"explain-closed": func(b *bytes.Buffer) { renderExplanation(b, name, &control.Explanation{Flows: []control.Flow{closed}}) },
		"explain-none":   func(b *bytes.Buffer) { renderExplanation(b, name, &control.Explanation{}) },
	} {
		var out bytes.Buffer
		render(&out)
		golden(t, filepath.Join("testdata", "qos", file+".txt"), out.String())
	}
}
