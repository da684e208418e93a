package server

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lunar/control"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixed is a Source that always tells the same.
type fixed control.Status

func (f fixed) Status() control.Status { return control.Status(f) }
func (f fixed) VolumeState(name string) control.Volume {
	return byName(f.Volumes, func(v control.Volume) string { return v.Name })[name]
}
func (f fixed) TargetState(name string) control.Target {
	return byName(f.Targets, func(t control.Target) string { return t.Name })[name]
}

func (f fixed) Latency() control.Latencies {
	if f.Latencies == nil {
		return control.Latencies{}
	}
	return *f.Latencies
}

// sample has a value in every field.
func sample() control.Status {
	since := time.Date(2026, 11, 21, 10, 30, 0, 0, time.UTC)
	threshold := int64(65536)
	return control.Status{
		Server: control.Daemon{
			Version: "1.2.3", Build: "go1.26", PID: 4711, Started: since, UptimeSeconds: 90, RetainedBytes: 70, AuditMissing: 1,
			Threads: []control.Thread{{Name: "event0", CPU: 3, Node: 1, Connections: 2, Passes: 11, Sleeps: 5, Wakeups: 4, Handovers: 7,
				Looks: 20, LooksInVain: 3,
				BusySeconds: 1.5, RunSeconds: 90, WaitedSeconds: 0.5, BufferBytes: 1 << 20, BufferUsedBytes: 4096, Refused: map[string]uint64{"withheld-data": 3}}},
		},
		Refusals: []control.Refusals{{Reason: "login-places", Count: 6}},
		Cache: &control.Cache{
			SizeBytes: 1 << 30, BlockBytes: 1 << 18, UsedBytes: 1 << 20, DirtyBytes: 8192, DirtyLimitBytes: 1 << 29,
			Hits: 75, Misses: 25, HitRatio: control.Ratio(75, 25), Bypassed: 1, Waits: 2, Evictions: 3, FillErrors: 5,
			FlushedBytes: 6, FlushErrors: 7, ThrottledWrites: 8, WaitingWrites: 9, ReadAheadBytes: 10,
			Nodes: []control.Node{{Node: 0, Partitions: 16, SizeBytes: 1 << 29, UsedBytes: 1 << 19, DirtyBytes: 4096, Hits: 70, Misses: 20,
				Evictions: 2, Interpreted: 12, Local: 16, LocalBytes: 13, Remote: 17, RemoteBytes: 14, Forwarded: 18, ForwardedBytes: 15}},
			Attach: &control.Attach{Outcome: "warm", Previous: "1.2.2", Generation: 4, DirtyBytes: 4096, WarmBlocks: 17, Dropped: 2,
				Replaced: "of 3 nodes", Orphans: []control.Orphan{{Name: "old", DirtyBytes: 4096}}},
			ForwardThreshold: &threshold, SegmentLost: true, ChecksumFailures: 9, ForwardAdaptive: true,
		},
		Volumes: []control.Volume{{
			Name: "db", Type: "file", SizeBytes: 1 << 31, BlockBytes: 512, Write: "back",
			Health: control.Health{State: control.HealthDegraded, Troubles: []control.Trouble{{State: control.HealthDegraded, What: "its file was deleted", Since: since}}},
			IO:     control.IO{Reads: 21, Writes: 22, Others: 23, ReadBytes: 24, WrittenBytes: 25},
			Anew:   5,
			Frozen: &control.FrozenVolume{At: since, Until: since.Add(time.Minute)},
			Errors: []control.StoreErrors{{Operation: "read", Count: 6}},
			Space:  &control.Space{Free: 1 << 20, Size: 1 << 30, Unallocated: 1 << 25},
			Cache: &control.VolumeCache{ResidentBytes: 1 << 19, DirtyBytes: 8192, Hits: 30, Misses: 10, HitRatio: control.Ratio(30, 10),
				Admission: "fussy", Fussy: &control.Fussy{Partitions: 16, FallenBack: 2, Switches: 3, Counted: 5, Popular: 1, FreqThreshold: 3, AccessThreshold: 500},
				ThrottledWrites: 8, FlushFailing: true, FailingSince: &since},
			Mirror:    &control.Mirror{Leader: "/a", Missing: "/b", Behind: 7, Held: 4096, Exchanged: 8, Copied: 9, Mended: 10, Lost: 11, Differ: 12},
			Snapshots: &control.VolumeSnapshots{Count: 3, Newest: &since, OwnedBytes: 4096, SharedBytes: 8192, Due: &since, Failed: "it is frozen"},
			Excess:    &control.Excess{Held: 8192, Used: 12, Slow: 13, Fast: 14, Back: 15},
		}},
		Closing: []string{"old"},
		Drift:   []control.Drift{{Kind: "drain", What: "portal-groups.lan: logins are refused until later"}},
		Incidents: &control.Incidents{Aborted: 3, HeaderDigests: 1, DataDigests: 2,
			Sense:     []control.SenseCount{{Key: "medium error", ASC: "1100", Count: 4}},
			Functions: []control.FunctionCount{{Function: "ABORT TASK", Count: 5}}},
		Cluster: sampleCluster(), LastApply: &control.LastApply{OK: true, At: since},
		Moves:    control.Moves{UnderWay: 1, Sent: 2, Received: 3, SendsFailed: 4, ReceiptsFailed: 5, SentBytes: 6, ReceivedBytes: 7},
		Warnings: []string{"qos: too much is reserved"},
		Targets:  []control.Target{{Name: "iqn.2026-11.test:t", Portals: []string{"127.0.0.1:3260"}, Volumes: []string{"db"}, Sessions: 1}},
		Sessions: []control.Session{{
			TSIH: 1, Initiator: "iqn.2026-11.test:\xffhost", User: "hosts/u", ISID: "00023d000001", Target: "iqn.2026-11.test:t", Transport: "iser",
			Portal: "127.0.0.1:3260", Address: "127.0.0.1:40000", Connected: since, Thread: "event0", Window: 128, InFlight: 7,
			LUNs:        []control.SessionLUN{{LUN: 0, Volume: "db", IO: control.IO{Reads: 31, Writes: 32, Others: 33, ReadBytes: 34, WrittenBytes: 35}}},
			Connections: []control.SessionConnection{{CID: 1, Portal: "127.0.0.1:3260", Address: "127.0.0.1:40000", Transport: "iser", Thread: "event0", State: "open", ReadBytes: 34, WrittenBytes: 35}},
		}},
		RDMA: &control.RDMA{Off: "it is not", Devices: []control.RDMADevice{{
			Name: "rxe0", Connections: 1, RegisteredBytes: 2, Receives: 3, Sends: 4, Writes: 5, Reads: 6, WriteBytes: 7, ReadBytes: 8,
			Posts: 9, Invalidations: 10, BouncedBytes: 11, Polls: 12, Arms: 13, Failures: 14, Ports: []control.RDMACounter{{Port: 1, Name: "rcvd_rnr_err", Value: 15}},
		}}},
		QoS:       sampleQoS(),
		Latencies: sampleLatency(),
	}
}

func sampleLatency() *control.Latencies {
	recent := []control.OperationQuantile{{Operation: "read", Count: 5, Mean: 0.001, P50: 0.001, P90: 0.0015, P99: 0.002, P999: 0.003, Max: 0.004}}
	return &control.Latencies{
		Interval: 10, Replaced: 4,
		Volumes: []control.VolumeLatency{{Volume: "db", Recent: recent, Total: []control.OperationLatency{{Operation: "read", Latency: control.Latency{
			Count: 9, Sum: 0.01, P50: 0.001, P90: 0.0015, P99: 0.002, P999: 0.003, Max: 0.004, Buckets: []control.Bucket{{Below: 0.001, Count: 8}}}}}}},
		Initiators: []control.InitiatorLatency{{Initiator: "iqn.2026-11.test:host", User: "hosts/u", Recent: recent,
			Total: []control.OperationTotal{{Operation: "read", Count: 9, Sum: 0.01}}}},
		Uses: []control.UseLatency{{Volume: "db", Initiator: "iqn.2026-11.test:host", User: "hosts/u", Recent: recent}},
	}
}

// start serves until the end of the test.
func start(t *testing.T, c Config) *Server {
	t.Helper()
	s, err := Serve(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(s) })
	return s
}

func stop(s *Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	s.Stop(ctx)
}

// serve returns the socket and a plain HTTP client of a server of Status.
func serve(t *testing.T, status control.Status) (string, *http.Client) {
	t.Helper()
	return serveSource(t, fixed(status))
}

// serveSource returns the same of a server of any Source.
func serveSource(t *testing.T, source Source) (string, *http.Client) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), control.SocketName)
	start(t, Config{Socket: socket, Version: "1.2.3", Source: source})
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return socket, &http.Client{Transport: transport}
}

// request returns status, content type and body of an answer.
func request(t *testing.T, c *http.Client, method, url string) (int, string, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	rsp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	body, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return rsp.StatusCode, rsp.Header.Get("Content-Type"), string(body)
}

// TestResources: each path answers with its part of the Status.
func TestResources(t *testing.T) {
	_, c := serve(t, sample())
	for path, want := range map[string]any{
		"/v1/status":   sample(),
		"/v1/sessions": SessionList{sample().Sessions},
		"/v1/volumes":  VolumeList{[]control.VolumeResource{volumeResource(sample().Volumes[0], control.ObjectResource{Name: "db", ETag: `"1"`, Config: control.Object{"type": "file"}})}},
		"/v1/cache":    sample().Cache,
	} {
		code, kind, body := request(t, c, "GET", "http://control"+path)
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if code != http.StatusOK || kind != "application/json" || strings.TrimSpace(body) != string(text) {
			t.Errorf("%s: found %d %s\n%s\nexpected\n%s", path, code, kind, body, text)
		}
	}
}

// TestProblems: whatever cannot be answered is answered with a problem document.
func TestProblems(t *testing.T) {
	_, c := serve(t, control.Status{})
	for _, test := range []struct {
		method, path string
		code         int
		detail       string
	}{
		{"GET", "/v1/cache", http.StatusNotFound, "no cache"},
		{"GET", "/v1/nothing", http.StatusNotFound, "/openapi.json"},
		{"GET", "/", http.StatusNotFound, "/openapi.json"},
		{"GET", "/docs", http.StatusNotFound, "/openapi.json"},
		{"POST", "/v1/status", http.StatusMethodNotAllowed, "expected GET"},
		{"DELETE", "/metrics", http.StatusMethodNotAllowed, "expected GET"},
		{"DELETE", "/v1/qos/rules/..", http.StatusNotFound, "no object has such a name"}, // not those of /v1/qos
		{"GET", "/v1/volumes/.", http.StatusNotFound, "no object has such a name"},
		{"GET", "/v1/volumes/", http.StatusNotFound, "no object has such a name"},
		{"GET", "/v1//status", http.StatusNotFound, "no object has such a name"},
	} {
		code, kind, body := request(t, c, test.method, "http://control"+test.path)
		if code != test.code || kind != "application/problem+json" || !strings.Contains(control.Detail([]byte(body)), test.detail) {
			t.Errorf("%s %s: found %d %s %s", test.method, test.path, code, kind, body)
		}
	}
}

// TestOpenAPI: the description has every operation, and every field of the
// Status is described.
func TestOpenAPI(t *testing.T) {
	_, c := serve(t, sample())
	code, kind, body := request(t, c, "GET", "http://control/openapi.json")
	var doc struct {
		OpenAPI    string
		Paths      map[string]map[string]any
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Description, Ref string }
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &doc); err != nil || code != http.StatusOK {
		t.Fatalf("found %d %s, %v", code, kind, err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("found OpenAPI %q", doc.OpenAPI)
	}
	for path, methods := range map[string][]string{
		"/v1/status": {"get"}, "/v1/sessions": {"get"}, "/v1/volumes": {"get"}, "/v1/cache": {"get"},
		"/v1/qos": {"get", "put"}, "/v1/qos/rules/{name}": {"put", "patch", "delete"}, "/v1/qos/explain": {"get"}, "/v1/qos/cluster": {"get"}, "/v1/apply": {"post"},
	} {
		for _, method := range methods {
			if doc.Paths[path][method] == nil {
				t.Errorf("no %s %s in the description", method, path)
			}
		}
	}
	for name, schema := range doc.Components.Schemas {
		for field, p := range schema.Properties {
			if p.Description == "" {
				t.Errorf("%s.%s has no description", name, field)
			}
		}
	}
}

func (f fixed) Object(path []string) (control.ObjectResource, error) {
	return control.ObjectResource{Name: path[len(path)-1], ETag: `"1"`, Config: control.Object{"type": "file"}}, nil
}

func (f fixed) Objects(path []string) ([]control.ObjectResource, error) {
	o, err := f.Object([]string{"db"})
	return []control.ObjectResource{o}, err
}

func (f fixed) Change(_ Asker, c control.Changes) (control.Changed, error) {
	return control.Changed{Applied: control.Applied{Changes: []string{}, Warnings: []string{}, Impacts: []control.Impact{}, Drift: []control.Drift{}}, ETag: `"2"`}, nil
}

func (f fixed) Generations() ([]control.Generation, error) {
	return []control.Generation{{Number: 1, By: "start"}}, nil
}

func (f fixed) Generation(n int) (control.Generation, error) {
	return control.Generation{Number: n}, nil
}

func (f fixed) Rollback(by Asker, _ control.Rollback) (control.Changed, error) {
	return f.Change(by, control.Changes{})
}

func (f fixed) Save(by Asker, _ control.Save) (control.Changed, error) {
	return f.Change(by, control.Changes{})
}

func (f fixed) GroupReach() []control.Reach {
	return []control.Reach{{Group: "lan", States: []string{"optimized"}, Draining: []control.PortalDrain{{To: "192.0.2.9:3260"}}}}
}

func (f fixed) TargetReach(string) map[string][]control.Reach {
	return map[string][]control.Reach{f.Targets[0].Name: f.GroupReach()}
}

func (f fixed) Drains() control.Drained { return control.Drained{Draining: []string{}} }
