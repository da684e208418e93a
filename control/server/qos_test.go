package server

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"lunar/control"
)

// The sample has rules that nobody can change.
func (f fixed) Rules() control.QoS {
	return control.QoS{RuleSet: sampleRules(), Configured: sampleRules()}
}

func (f fixed) ChangeRules(func(*control.RuleSet) error) (control.QoS, error) { return f.Rules(), nil }

func (f fixed) ALUA() control.ALUA {
	return control.ALUA{Paths: []control.AccessPath{{Group: "a", Tag: 1, Volume: "v", State: "standby"}}}
}

func (f fixed) ChangeAccess(group string, _ control.AccessChange) (control.ALUA, error) {
	if group != "a" {
		return control.ALUA{}, &control.Refusal{What: "nothing was changed"}
	}
	return f.ALUA(), nil
}

func (f fixed) ClusterState() (control.Cluster, error) { return *sampleCluster(), nil }

func (f fixed) ClusterPromises() (control.ClusterPromises, error) {
	return control.ClusterPromises{Controller: "n1", Nodes: []string{"n1"}, Silent: []string{}, Devices: []control.Device{}, Promises: []control.ClusterPromise{}}, nil
}

func (f fixed) MoveInCluster(_ Asker, m control.ClusterMove) (control.Cluster, error) {
	if m.Volume != "v" {
		return control.Cluster{}, &control.Refusal{What: "nothing was changed"}
	}
	return f.ClusterState()
}

func (f fixed) DrainInCluster(Asker, control.ClusterDrain) (control.Cluster, error) {
	return f.ClusterState()
}

func (f fixed) ClusterRevisions() ([]control.ClusterRevision, error) { return nil, nil }

func (f fixed) ClusterRevision(int64) (control.ClusterRevision, error) {
	return control.ClusterRevision{}, nil
}

func (f fixed) ApplyInCluster(Asker, control.ClusterFile) (control.ClusterApplied, error) {
	return control.ClusterApplied{}, nil
}

func (f fixed) FenceInCluster(Asker, control.ClusterFence) (control.Cluster, error) {
	return f.ClusterState()
}

func sampleCluster() *control.Cluster {
	heard := 0.25
	return &control.Cluster{
		Name: "c", Node: "n", Joined: true, Why: "w", Lease: 2, Etcd: true, Full: true, Answered: 0.5, Revision: 2, Newest: 3, Behind: "b",
		Nodes: []control.ClusterNode{{
			Name: "n", State: "behind", Incarnation: "i", Revision: 1, Behind: "b", Version: "1", Since: time.Unix(1, 0), Heard: true, Silent: 3, Lease: &control.ClusterLease{Age: 0.5, Left: 1.5},
			Link:  &control.ClusterLink{Address: "192.0.2.2:7424", Up: true, Why: "w", Heard: &heard, RoundTrip: 0.5, Queued: 1, Relayed: 2, Relaying: 3, Unknown: 4, Served: 5, Serving: 6},
			Hears: []string{"m"}, Draining: true, Stranger: true, Portals: []string{"192.0.2.1:3260,1"}, Volumes: []string{"v"}, Unable: []control.ClusterUnable{{Volume: "v", Why: "w"}},
		}},
		Volumes: []control.ClusterVolume{{Name: "v", Owner: "n", State: "owned", Since: time.Unix(2, 0), Epoch: 3, InFlux: true, Here: "owner", Owners: []string{"n"}, Unable: []string{"n"}, Access: []control.ClusterAccess{{Node: "n", State: "optimized"}}, Size: 512}},
		Promise: &control.ClusterPromiseTotals{
			Controller: "n", Term: 7, Elected: 60, Promises: 2, Reserved: 1000, Limit: 5000, Served: 900, Missed: 1,
			Nodes: []control.ClusterNodeTotals{{Node: "n", Reserved: 400, Served: 900, Capacity: 20000}}, Silent: []string{"m"},
		},
	}
}

func (f fixed) Reservations() control.Reservations {
	return control.Reservations{Volumes: []control.VolumeReservations{{Volume: "v", Type: "none", Registrations: []control.Registration{}}}}
}

func (f fixed) ClearReservations(volume string) (control.VolumeReservations, error) {
	if volume != "v" {
		return control.VolumeReservations{}, &control.Refusal{What: "nothing was changed"}
	}
	return f.Reservations().Volumes[0], nil
}

func (f fixed) Why(q control.WhyQuery) (control.Why, error) {
	return control.Why{Initiator: q.Initiator, Target: q.Target}, nil
}
func (f fixed) Explain(string) control.Explanation { return *sampleQoS() }

func (f fixed) Apply(Asker, control.File) (control.Applied, error) {
	return control.Applied{}, errors.New("this source has no file")
}

func (f fixed) Running() (control.RunningConfig, error) {
	return control.RunningConfig{YAML: "log: {level: info}"}, nil
}

func (f fixed) Kick(k control.Kick) (int, error) { return len(k.Initiator), nil }

func (f fixed) Drain(d control.Drain) (control.Drained, error) {
	if d.Off {
		return control.Drained{}, &control.Refusal{What: "nothing is drained"}
	}
	return control.Drained{Sessions: 1, Draining: []string{d.Portal + " " + d.To}}, nil
}

func (f fixed) Scrub(_ Asker, volume string) (control.Scrubbed, error) {
	return control.Scrubbed{Compared: 4096, Differs: []int64{}}, nil
}

func (f fixed) Resync(_ Asker, volume string) (control.Resynced, error) {
	return control.Resynced{Member: "b of " + volume, Regions: 3}, nil
}

func (f fixed) Rescan(_ Asker, volume string) (control.Rescanned, error) {
	return control.Rescanned{Before: 1, Now: int64(len(volume))}, nil
}

func (f fixed) Freeze(_ Asker, volume string, k control.Freeze, gone <-chan struct{}) (control.Frozen, error) {
	if k.Attended && gone == nil {
		return control.Frozen{}, &control.Refusal{What: "volume " + volume + " was not frozen"}
	}
	return control.Frozen{Volumes: append([]string{volume}, k.With...)}, nil
}

func (f fixed) SendVolume(_ Asker, volume string, k control.Send) (control.SentVolume, error) {
	return control.SentVolume{Checksum: volume + k.To}, nil
}

func (f fixed) ReceiveVolume(_ Asker, volume string, k control.Receive) (control.ReceivedVolume, error) {
	return control.ReceivedVolume{Path: k.Path, Source: volume}, nil
}

func (f fixed) Checksum(_ Asker, volume string) (control.VolumeChecksum, error) {
	return control.VolumeChecksum{Checksum: volume}, nil
}

func (f fixed) Snapshots(volume string) ([]control.Snapshot, error) {
	if volume != "v" {
		return nil, &control.Refusal{What: "found no volume " + volume, Missing: true}
	}
	return []control.Snapshot{{Name: "s", Size: 7}}, nil
}

func (f fixed) MakeSnapshot(_ Asker, volume string, r control.SnapshotRequest) (control.SnapshotMade, error) {
	return control.SnapshotMade{Name: r.Name, Volumes: append([]string{volume}, r.With...)}, nil
}

func (f fixed) DeleteSnapshot(_ Asker, _, snapshot string) (control.Snapshot, error) {
	return control.Snapshot{Name: snapshot}, nil
}

func (f fixed) CloneSnapshot(_ Asker, _, _ string, r control.SnapshotClone) (control.SnapshotCloned, error) {
	return control.SnapshotCloned{Path: r.Path}, nil
}

func (f fixed) RollBack(_ Asker, _, snapshot string, _ control.SnapshotRollback) (control.RolledBack, error) {
	return control.RolledBack{Kept: snapshot}, nil
}

func (f fixed) Thaw(volume string) (control.Thawed, error) {
	return control.Thawed{Volumes: []string{volume}}, nil
}

func (f fixed) Detach(_ Asker, volume string, d control.Detach) (control.Detached, error) {
	if d.Discard {
		return control.Detached{Store: volume, Lost: 7}, nil
	}
	return control.Detached{}, &control.Refusal{What: "volume " + volume + " is configured"}
}

func sampleRules() control.RuleSet {
	lun := uint64(2)
	return control.RuleSet{
		Rules: []control.Rule{{Name: "gold", Initiators: []string{"iqn.2026-11.test:db*"}, Target: "iqn.2026-11.test:t", LUN: &lun,
			Reservation: control.Rate{IOPS: 5000}, Limit: control.Rate{IOPS: 20000, Bytes: 500 << 20}, Burst: control.Rate{IOPS: 100}, Weight: 3, Class: "high"}},
		Groups: []control.Group{{Name: "all", Initiators: []string{"*"}}},
	}
}

// sampleQoS has a value in every field.
func sampleQoS() *control.Explanation {
	latency := control.Latency{Count: 9, Sum: 0.9, P50: 0.1, P90: 0.2, P99: 0.3, P999: 0.4, Max: 0.5, Buckets: []control.Bucket{{Below: 0.001, Count: 1}, {Below: 1, Count: 8}}}
	return &control.Explanation{
		Lapsed: "nothing is heard",
		Capacity: control.Capacity{Overcommitted: true, Warning: "too much", Bottleneck: []string{"event thread event0"}, Threads: []control.ThreadCapacity{{
			Name: "event0", Tokens: 400_000, Served: 390_000, Load: 97,
		}}, Devices: []control.Device{
			{Name: "sda", Volumes: []string{"v"}, Tokens: 50000, Source: "configured", Admission: 40000, Reserved: 300, History: []int64{49000, 50000}}}},
		Rules: 1,
		Flows: []control.Flow{{
			Initiator: "iqn.2026-11.test:\xffhost", Target: "iqn.2026-11.test:t", LUN: 2, Open: true, Threads: 1,
			Offered: 10, Served: 9, OfferedTokens: 40, ServedTokens: 36, ServedBytes: 36 << 12, Reserved: 5, Normal: 3, Opportunistic: 1, Hits: 2, Cancelled: 4, Named: 6, Waiting: 1,
			Rules: []control.Effect{{Rule: "gold", Level: "nexus", Reservation: control.Rate{IOPS: 5000, Bytes: 1 << 20}, Limit: control.Rate{IOPS: 20000, Bytes: 500 << 20}, Tokens: 17, HeldIOPS: 1.5, HeldBandwidth: 2.5}},
			Queue: latency, Service: latency,
		}},
		Promises: []control.Promised{{Rule: "gold", Level: "initiator", Name: "iqn.2026-11.test:host", Reservation: 5000, Met: 58, Missed: 2, Unused: 3,
			Periods: []control.Period{{Reservation: 5000, Offered: 6000, Served: 5500, Yielded: 1, Met: true}}}},
		Connections: []control.ClassedConnection{{
			Initiator: "iqn.2026-11.test:host", Target: "iqn.2026-11.test:t", Remote: "192.0.2.1:40000", Class: "high", DSCP: 26, Congestion: "dctcp", GovernedBy: "marks",
			Device: "eth0", Window: 65536, Alpha: 0.25, Quality: 0.5, Rate: 100, Share: 50, Bottleneck: 1000, Asked: 4096, Pace: 200, WritePace: 100,
		}},
	}
}

// shelf is a Source whose rules can be changed. It refuses those that are
// called bad, and all while it is full.
type shelf struct {
	fixed
	mu   sync.Mutex
	set  control.RuleSet
	full bool
}

func (s *shelf) Rules() control.QoS {
	s.mu.Lock()
	defer s.mu.Unlock()
	return control.QoS{RuleSet: s.set}
}

func (s *shelf) ChangeRules(change func(*control.RuleSet) error) (control.QoS, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := control.RuleSet{Rules: append([]control.Rule(nil), s.set.Rules...), Groups: s.set.Groups}
	if err := change(&set); err != nil {
		return control.QoS{}, err
	}
	if s.full {
		return control.QoS{}, &control.Refusal{What: "more than there is", State: true}
	}
	r := &control.Refusal{What: "the rules were refused"}
	for _, rule := range set.Rules {
		if strings.HasPrefix(rule.Name, "bad") {
			r.Reasons = append(r.Reasons, control.Reason{Place: rule.Name, Text: "found a bad rule"})
		}
	}
	if r.Reasons != nil {
		return control.QoS{}, r
	}
	s.set = set
	return control.QoS{RuleSet: set}, nil
}

func (s *shelf) Apply(_ Asker, f control.File) (control.Applied, error) {
	return control.Applied{Changes: []string{f.Name + " " + f.Text}}, nil
}

// shelved returns a client of a server of s.
func shelved(t *testing.T, s *shelf) (*control.Client, *http.Client) {
	t.Helper()
	socket, plain := serveSource(t, s)
	c, err := control.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, plain
}

// TestRuleChanges: what a change does not name stays, and of initiators and
// group the newer one counts.
func TestRuleChanges(t *testing.T) {
	s := &shelf{}
	c, _ := shelved(t, s)
	lun, all, group, weight, class := int64(2), int64(-1), "all", int64(3), "high"
	for i, test := range []struct {
		change control.RuleChange
		want   control.Rule
	}{
		{control.RuleChange{Initiators: []string{"a*"}, Limit: &control.Rate{IOPS: 7}, LUN: &lun}, control.Rule{Initiators: []string{"a*"}, Limit: control.Rate{IOPS: 7}, LUN: &[]uint64{2}[0]}},
		{control.RuleChange{Limit: &control.Rate{Bytes: 8192}}, control.Rule{Initiators: []string{"a*"}, Limit: control.Rate{Bytes: 8192}, LUN: &[]uint64{2}[0]}},
		{control.RuleChange{Group: &group, LUN: &all, Weight: &weight}, control.Rule{Group: "all", Limit: control.Rate{Bytes: 8192}, Weight: 3}},
		{control.RuleChange{Limit: &control.Rate{}, Class: &class}, control.Rule{Group: "all", Weight: 3, Class: "high"}},
		{control.RuleChange{Initiators: []string{"b"}}, control.Rule{Initiators: []string{"b"}, Weight: 3, Class: "high"}},
	} {
		test.want.Name = "r.1"
		q, err := c.PatchRule(t.Context(), "r.1", test.change)
		if err != nil || len(q.Rules) != 1 || !reflect.DeepEqual(q.Rules[0], test.want) {
			t.Errorf("change %d: found %+v, %v, expected %+v", i, q.Rules, err, test.want)
		}
	}
	if q, err := c.DeleteRule(t.Context(), "r.1"); err != nil || len(q.Rules) != 0 {
		t.Errorf("found %+v, %v after the deletion", q.Rules, err)
	}
	if _, err := c.DeleteRule(t.Context(), "r.1"); err == nil || !strings.Contains(err.Error(), `no rule "r.1"`) {
		t.Errorf("a second deletion: found %v", err)
	}
	if a, err := c.Apply(t.Context(), control.File{Name: "file", Text: "text"}); err != nil || a.Changes[0] != "file text" {
		t.Errorf("found %+v, %v", a, err)
	}
}

// put sends a JSON text.
func put(t *testing.T, c *http.Client, method, path, text string) (int, string) {
	t.Helper()
	r, err := http.NewRequest(method, "http://control"+path, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	rsp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	body, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return rsp.StatusCode, string(body)
}

// TestQoSRefused: requests that are refused say all that is wrong, and change
// nothing.
func TestQoSRefused(t *testing.T) {
	for name, test := range map[string]struct {
		method, path, body string
		full               bool
		status             int
		want               []string
	}{
		"all reasons":   {"PUT", "/v1/qos", `{"rules":[{"name":"bad1"},{"name":"bad2"}],"groups":[]}`, false, 422, []string{"bad1", "bad2", "were refused"}},
		"no room":       {"PUT", "/v1/qos", `{"rules":[]}`, true, 409, []string{"more than there is"}},
		"bounds":        {"PUT", "/v1/qos", `{"rules":[{"name":"r","weight":-1,"limit":{"iops":-5}},{"name":"no spaces"}]}`, false, 422, []string{"rules[0].weight", "rules[0].limit.iops", "rules[1].name"}},
		"unknown key":   {"PUT", "/v1/qos", `{"rules":[{"name":"r","limits":{}}]}`, false, 422, []string{"limits"}},
		"another name":  {"PUT", "/v1/qos/rules/a", `{"name":"b"}`, false, 422, []string{`\"b\"`, `\"a\"`}},
		"class":         {"PATCH", "/v1/qos/rules/a", `{"class":"best"}`, false, 422, []string{"class"}},
		"no such rule":  {"DELETE", "/v1/qos/rules/a", ``, false, 404, []string{"no rule"}},
		"not supported": {"POST", "/v1/qos", `{}`, false, 405, []string{"expected GET, PUT"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shelf{set: sampleRules(), full: test.full}
			_, plain := shelved(t, s)
			status, body := put(t, plain, test.method, test.path, test.body)
			if status != test.status {
				t.Errorf("found status %d, expected %d", status, test.status)
			}
			for _, want := range test.want {
				if !strings.Contains(body, want) {
					t.Errorf("found no %q in %s", want, body)
				}
			}
			if !reflect.DeepEqual(s.set, sampleRules()) {
				t.Errorf("the rules have changed: %+v", s.set)
			}
		})
	}
}

// TestQoSResources: rules and groups are replaced as a whole, and come back as
// they were sent.
func TestQoSResources(t *testing.T) {
	c, plain := shelved(t, &shelf{})
	text, err := json.Marshal(sampleRules())
	if err != nil {
		t.Fatal(err)
	}
	if status, body := put(t, plain, "PUT", "/v1/qos", string(text)); status != http.StatusOK {
		t.Fatalf("found status %d, %s", status, body)
	}
	if q, err := c.QoS(t.Context()); err != nil || !reflect.DeepEqual(q.RuleSet, sampleRules()) {
		t.Errorf("found %+v, %v, expected what was put", q, err)
	}
	if status, body := put(t, plain, "PUT", "/v1/qos/rules/gold", `{"name":"gold","initiators":["x"]}`); status != http.StatusOK || strings.Contains(body, "20000") {
		t.Errorf("found status %d, %s", status, body)
	}
	var x control.Explanation
	if err := c.Get(t.Context(), control.ExplainPath("iqn.2026-11.test:host"), &x); err != nil || x.Flows[0].Offered != 10 {
		t.Errorf("found %+v, %v", x, err)
	}
}

// TestLastingIsSaid in words.
func TestLastingIsSaid(t *testing.T) {
	if text := control.Lasting(true); !strings.Contains(text, "until the next start") {
		t.Errorf("found %q", text)
	}
	if text := control.Lasting(false); strings.Contains(text, "until") {
		t.Errorf("found %q", text)
	}
}
