package server

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"lunar/control"
	"lunar/internal/refusals"
)

// TestMetrics: every row of the tables is served with its value, and an
// initiator's name that is not UTF-8 spoils nothing.
func TestMetrics(t *testing.T) {
	_, c := serve(t, sample())
	code, kind, body := request(t, c, "GET", "http://control/metrics")
	if code != http.StatusOK || !strings.HasPrefix(kind, "text/plain") {
		t.Fatalf("found %d %s\n%s", code, kind, body)
	}
	for _, m := range allMetrics() {
		if !strings.Contains(body, "\n"+m.name+"{") && !strings.Contains(body, "\n"+m.name+" ") {
			t.Errorf("%s is not served", m.name)
		}
	}
	for _, d := range allDistributions() {
		if !strings.Contains(body, "\n"+d.name+"_bucket{") {
			t.Errorf("%s is not served", d.name)
		}
	}
	for _, want := range []string{
		`lunar_build_info{build="go1.26",version="1.2.3"} 1`,
		`lunar_refusals_total{reason="login-places"} 6`,
		`lunar_cache_hits_total 75`,
		`lunar_cache_dirty_bytes 8192`,
		`lunar_cache_evictions_total 3`,
		`lunar_cache_forward_threshold_bytes 65536`,
		`lunar_cache_attach_info{outcome="warm"} 1`,
		`lunar_cache_orphan_dirty_bytes{volume="old"} 4096`,
		`lunar_node_forwarded_bytes_total{node="0"} 15`,
		`lunar_thread_buffer_used_bytes{node="1",thread="event0"} 4096`,
		`lunar_volume_cache_flush_failing{volume="db"} 1`,
		`lunar_session_written_bytes_total{initiator="iqn.2026-11.test:` + "\uFFFD" + `host",lun="0",target="iqn.2026-11.test:t",tsih="1",volume="db"} 35`,
		`lunar_qos_dispatches_total{initiator="iqn.2026-11.test:` + "\uFFFD" + `host",lun="2",target="iqn.2026-11.test:t",token="opportunistic"} 1`,
		`lunar_qos_throttled_seconds_total{initiator="iqn.2026-11.test:` + "\uFFFD" + `host",limit="bandwidth",lun="2",rule="gold",target="iqn.2026-11.test:t"} 2.5`,
		`lunar_qos_reservation_periods_missed_total{level="initiator",name="iqn.2026-11.test:host",rule="gold"} 2`,
		`lunar_qos_queue_seconds_bucket{initiator="iqn.2026-11.test:` + "\uFFFD" + `host",lun="2",target="iqn.2026-11.test:t",le="+Inf"} 9`,
		`lunar_qos_service_seconds_bucket{initiator="iqn.2026-11.test:` + "\uFFFD" + `host",lun="2",target="iqn.2026-11.test:t",le="1"} 8`,
		`lunar_volume_latency_seconds_bucket{operation="read",volume="db",le="0.001"} 8`,
		`lunar_cluster_info{cluster="c",node="n"} 1`,
		`lunar_cluster_nodes{state="behind"} 1`,
		`lunar_link_round_trip_seconds{peer="n"} 0.5`,
		`lunar_cluster_volume_owned{volume="v"} 1`,
		`lunar_cluster_promise_served_tokens 900`,
		`lunar_cluster_promise_node_capacity_tokens{node="n"} 20000`,
		`lunar_volume_latency_seconds_count{operation="read",volume="db"} 9`,
		`lunar_initiator_latency_seconds{initiator="iqn.2026-11.test:host",operation="read",user="hosts/u",quantile="0.99"} 0.002`,
		`lunar_initiator_latency_seconds{initiator="iqn.2026-11.test:host",operation="read",user="hosts/u",quantile="1"} 0.004`,
		`lunar_initiator_latency_seconds_count{initiator="iqn.2026-11.test:host",operation="read",user="hosts/u"} 9`,
		`lunar_latency_replaced_total 4`,
		`lunar_scsi_errors_total{asc="1100",key="medium error"} 4`,
		`lunar_task_management_total{function="ABORT TASK"} 5`,
		`lunar_volume_store_errors_total{operation="read",volume="db"} 6`,
		`lunar_config_last_apply_successful 1`,
		`lunar_qos_capacity_tokens_per_second{device="sda"} 50000`,
		`lunar_qos_overcommitted 1`,
		`go_goroutines `,
		`process_resident_memory_bytes `,
	} {
		if !strings.Contains(body, "\n"+want) {
			t.Errorf("found no %s in\n%s", want, body)
		}
	}
}

// TestMetricsOfLittle: without cache and sessions the rest is still there.
func TestMetricsOfLittle(t *testing.T) {
	_, c := serve(t, control.Status{})
	code, _, body := request(t, c, "GET", "http://control/metrics")
	if code != http.StatusOK || !strings.Contains(body, "lunar_sessions 0") || strings.Contains(body, "lunar_cache") {
		t.Errorf("found %d\n%s", code, body)
	}
}

// TestMetricsPort: the TCP port serves metrics and nothing else.
func TestMetricsPort(t *testing.T) {
	s := start(t, Config{Socket: filepath.Join(t.TempDir(), control.SocketName), Metrics: MetricsPort{Address: "127.0.0.1:0"}, Source: fixed(sample())})
	c := &http.Client{Transport: &http.Transport{}}
	defer c.CloseIdleConnections()
	base := "http://" + s.MetricsAddr().String()
	if code, _, body := request(t, c, "GET", base+"/metrics"); code != http.StatusOK || !strings.Contains(body, "lunar_cache_hits_total 75") {
		t.Errorf("found %d\n%s", code, body)
	}
	for _, path := range []string{"/v1/status", "/openapi.json", "/"} {
		if code, _, body := request(t, c, "GET", base+path); code != http.StatusNotFound || strings.Contains(body, "4711") {
			t.Errorf("%s: found %d %s, expected 404", path, code, body)
		}
	}
}

// TestMetricNames: names follow Prometheus' conventions: base units, and counters
// end in _total.
func TestMetricNames(t *testing.T) {
	name := regexp.MustCompile(`^lunar_[a-z]+(_[a-z]+)*$`)
	for _, m := range allMetrics() {
		plain := strings.TrimSuffix(m.name, "_total")
		switch {
		case !name.MatchString(m.name):
			t.Errorf("%s: expected lunar_ and words", m.name)
		case (m.kind == prometheus.CounterValue) != strings.HasSuffix(m.name, "_total"):
			t.Errorf("%s: counters, and only they, end in _total", m.name)
		case m.unit == "bytes" != strings.HasSuffix(plain, "_bytes"), m.unit == "s" != strings.HasSuffix(plain, "_seconds"):
			t.Errorf("%s: the unit is %q", m.name, m.unit)
		case m.help == "" || !strings.HasSuffix(m.help, "."):
			t.Errorf("%s: expected a sentence of help", m.name)
		}
	}
	for _, d := range allDistributions() {
		if !name.MatchString(d.name) || !strings.HasSuffix(d.name, "_seconds") || d.unit != "s" || !strings.HasSuffix(d.help, ".") {
			t.Errorf("found %+v, expected a histogram of seconds", d)
		}
	}
}

// TestSampleIsWhole: the sample has a value in every field, so that the tests
// see all metrics.
func TestSampleIsWhole(t *testing.T) {
	zero := map[string]bool{"Status.Cache.Nodes.Node": true,
		"Status.Volumes.ReadOnly": true, "Status.Targets.Alias": true, "Status.Sessions.Alias": true,
		"Status.Sessions.LUNs.LUN": true, "Status.Sessions.LUNs.ReadOnly": true}
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		if v.IsZero() && !zero[path] {
			t.Errorf("%s is zero", path)
		}
		switch v.Kind() {
		case reflect.Pointer:
			walk(path, v.Elem())
		case reflect.Slice:
			for i := range v.Len() {
				walk(path, v.Index(i))
			}
		case reflect.Struct:
			if v.Type().PkgPath() != reflect.TypeFor[control.Status]().PkgPath() {
				return
			}
			for i := range v.NumField() {
				walk(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		}
	}
	walk("Status", reflect.ValueOf(sample()))
}

var update = flag.Bool("update", false, "write docs/metrics.md anew")

// TestDocument: docs/metrics.md has the tables as they are.
func TestDocument(t *testing.T) {
	const path = "../../docs/metrics.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := between(t, string(text), "<!-- metrics -->\n", metricTable())
	want = between(t, want, "<!-- reasons -->\n", reasonTable())
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Errorf("%s is stale: go test ./control/server -run TestDocument -update writes it anew", path)
	}
}

// between replaces what is between a mark and the next end mark.
func between(t *testing.T, text, begin, table string) string {
	t.Helper()
	const end = "<!-- end -->"
	head, rest, found := strings.Cut(text, begin)
	_, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("found no %s%s", begin, end)
	}
	return head + begin + table + end + tail
}

func reasonTable() string {
	var b bytes.Buffer
	fmt.Fprintln(&b, "| reason | what is counted |\n|---|---|")
	for _, r := range refusals.Reasons() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", r, r.Means())
	}
	return b.String()
}

func metricTable() string {
	var b bytes.Buffer
	fmt.Fprintln(&b, "| metric | type | unit | labels | meaning |\n|---|---|---|---|---|")
	kinds := map[prometheus.ValueType]string{counter: "counter", gauge: "gauge"}
	for _, m := range allMetrics() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.name, kinds[m.kind], m.unit, strings.Join(m.labels, ", "), m.help)
	}
	for _, d := range allDistributions() {
		fmt.Fprintf(&b, "| `%s` | histogram | %s | %s | %s |\n", d.name, d.unit, strings.Join(d.labels, ", "), d.help)
	}
	for _, m := range latencySummaries {
		fmt.Fprintf(&b, "| `%s` | summary | %s | %s | %s |\n", m.name, m.unit, strings.Join(m.labels, ", "), m.help)
	}
	return b.String()
}

// TestClusterMetrics: what is promised over all nodes is told by the node that keeps it alone, and
// a server of no cluster tells nothing of one.
func TestClusterMetrics(t *testing.T) {
	other := sample()
	other.Cluster.Promise.Controller = "m"
	alone := sample()
	alone.Cluster = nil
	for _, c := range []struct {
		status  control.Status
		there   []string
		nowhere string
	}{
		{other, []string{"lunar_cluster_controller 0", "lunar_cluster_etcd_answers 1"}, "\nlunar_cluster_promise"}, {alone, nil, "\nlunar_cluster"},
	} {
		_, api := serve(t, c.status)
		_, _, body := request(t, api, "GET", "http://control/metrics")
		for _, want := range c.there {
			if !strings.Contains(body, want+"\n") {
				t.Errorf("found no %q", want)
			}
		}
		if strings.Contains(body, c.nowhere) {
			t.Errorf("found %q in\n%s", c.nowhere, body)
		}
	}
}
