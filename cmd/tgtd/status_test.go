package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"lunar/internal/control"
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
				BatchLevel: 12, Looks: 5000, LooksInVain: 40, Handovers: 60},
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
	renderConnections(&out, &now)
	golden(t, filepath.Join("testdata", "status", "connections.txt"), out.String())
}

// golden compares text with a file.
func golden(t *testing.T, path, text string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, text)
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s: found\n%s\nexpected\n%s\n(go test ./cmd/tgtd -run %s -update)", path, text, want, t.Name())
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

func TestSizes(t *testing.T) {
	for bytes, want := range map[uint64]string{
		0: "0B", 1023: "1023B", 1024: "1KiB", 1536: "1.5KiB", 1 << 20: "1MiB", 1023 << 10: "0.999MiB", 10 << 30: "10GiB",
		1234567: "1.18MiB", 1<<64 - 1: "16EiB",
	} {
		if got := usize(bytes); got != want {
			t.Errorf("%d: found %s, expected %s", bytes, got, want)
		}
	}
}

// TestStatusFails: without a server, and with contradicting flags, it is said
// what to do.
func TestStatusFails(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--state-dir", t.TempDir()}, "tgtd serve"},
		{[]string{"--socket", filepath.Join(t.TempDir(), "sock")}, "--socket"},
		{[]string{"--json", "--watch"}, "one of them"},
	} {
		var out, err buffer
		if status := run(context.Background(), append([]string{"status"}, test.args...), console{&out, &err}); status != exitFailure || !strings.Contains(err.String(), test.want) {
			t.Errorf("%q: found exit status %d, %s", test.args, status, err.String())
		}
	}
}
