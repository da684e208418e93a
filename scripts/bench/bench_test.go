package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lunar/internal/initiator/load"
)

func result(iops, server float64) load.Result {
	return load.Result{IOPS: iops, BytesPerSecond: iops * 4096, ServerCPU: &load.CPU{PerIO: server},
		Connections: load.Spread{Min: 75, Mean: 100}}
}

// rounds are of SPDK and of Lunar's ram volume in turns; lunar uses a fifth of the CPU.
func rounds(rates ...float64) (list []round) {
	for i := 0; i < len(rates); i += 2 {
		list = append(list, round{Results: map[string]load.Result{spdkName: result(rates[i], 20), lunarRAM: result(rates[i+1], 4)}})
	}
	return list
}

func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := median(test.values); got != test.want {
			t.Errorf("median of %v is %v, expected %v", test.values, got, test.want)
		}
	}
}

// TestTable pins that a ratio is the median of the ratios within a round, not the
// ratio of the medians (4.00), and what is said of those who are not there.
func TestTable(t *testing.T) {
	c := inMemory
	c.workloads, _ = selected(matrix, []string{"read-32", "read-128"})
	s := samples{"read-32": rounds(100, 1000, 10, 90, 50, 450)}
	const head = "| workload | server | IOPS (min to max) | MB/s | p50 µs | p99 µs | server CPU µs | client busy, % | slowest / mean | of echo in C | of SPDK | of C tgt | CPU of SPDK | reached |\n" +
		"|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n"
	want := head +
		"| 4 KiB random read, depth 32 | SPDK | 50 (10 to 100) | 0 | – | – | 20.00 | 0 | 0.75 | | | | | |\n" +
		"| 4 KiB random read, depth 32 | Lunar, ram | 450 (90 to 1000) | 2 | – | – | 4.00 | 0 | 0.75 | – | 9.00 | – | 0.20 | yes |\n\n"
	if got := c.table(s); got != want {
		t.Errorf("got\n%s\nexpected\n%s", got, want)
	}
	f := &field{contenders: []contender{{name: ringName, absent: "no cc"}, {name: echoName, absent: "no cc"}, {name: spdkName, absent: "gone by now"}, {name: tgtName}}}
	if got, want := c.missing(f, s), "Not measured: echo with io_uring: no cc.\n\nNot measured: echo in C: no cc.\n\n"; got != want {
		t.Errorf("got %q, expected %q", got, want)
	}
}

func TestGoals(t *testing.T) {
	for _, test := range []struct {
		spdk, echo, lunar, cpu float64
		want                   string
	}{
		{100, 1000, 111, 10, "yes"},
		{100, 1000, 109, 10, "**no**: rate"},
		{100, 110, 105, 10, "yes"}, // 0.95 of the echo
		{100, 1000, 111, 19, "**no**: CPU"},
		{100, 1000, 90, 19, "**no**: rate, CPU"},
		{0, 100, 96, 10, "yes"},
		{0, 100, 94, 10, "**no**: rate"},
		{0, 0, 100, 10, "–"},
	} {
		r := round{Results: map[string]load.Result{lunarRAM: result(test.lunar, test.cpu)}}
		if test.spdk > 0 {
			r.Results[spdkName] = result(test.spdk, 20)
		}
		if test.echo > 0 {
			r.Results[echoName] = result(test.echo, 1)
		}
		if got := inMemory.judged(workload{goal: goal{1.1, 0.9}}, lunarRAM, []round{r}); got != test.want {
			t.Errorf("%+v: found %q", test, got)
		}
	}
	if got := inMemory.judged(workload{}, lunarRAM, rounds(1, 1)); got != "–" {
		t.Errorf("a workload without a goal: found %q", got)
	}
}

func TestSamplesAccumulate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "samples")
	for i := range 2 {
		s, err := readSamples(path)
		if err != nil || len(s["read-32"]) != i {
			t.Fatalf("found %d rounds in %v (%v), expected %d", len(s["read-32"]), s, err, i)
		}
		s["read-32"] = append(s["read-32"], rounds(1, 2)...)
		if err := s.write(path); err != nil {
			t.Fatal(err)
		}
	}
	s, err := readSamples(path)
	if v := ratios(s["read-32"], lunarRAM, spdkName, iops); err != nil || median(v) != 2 {
		t.Errorf("found ratios %v (%v), expected 2", v, err)
	}
}

func TestWorkloadNames(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range append(diskMatrix(), cachedMatrix...) {
		if seen[w.name] {
			t.Errorf("%s is there twice", w.name)
		}
		seen[w.name] = true
	}
	if _, err := selected(matrix, []string{"nothing"}); err == nil {
		t.Error("an unknown workload was selected")
	}
}

func TestFIO(t *testing.T) {
	const said = `{"jobs":[{"usr_cpu":5,"sys_cpu":15,"read":{"iops":700,"bw_bytes":7,"clat_ns":{"mean":9000,"percentile":{"50.000000":8000,"99.000000":20000}}},
		"write":{"iops":300,"bw_bytes":3,"clat_ns":{"mean":1,"percentile":{"50.000000":1,"99.000000":1}}}}]}`
	r, err := fioResult([]byte(said), workload{}, usage{})
	if err != nil || r.IOPS != 1000 || r.BytesPerSecond != 10 || r.Latency.P50 != 8 || r.Latency.P99 != 20 || r.ServerCPU.PerIO != 200 {
		t.Errorf("found %+v (%v), expected 1000 IOPS at 200 µs of CPU, p50 8 µs and p99 20 µs", r, err)
	}
	for _, bad := range []string{"", "{}", `{"jobs":[{}]}`} {
		if r, err := fioResult([]byte(bad), workload{}, usage{}); err == nil {
			t.Errorf("%q was accepted as %+v", bad, r)
		}
	}
}

func TestUpdateDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d.md")
	text := "a\n<!-- bench:table -->\nold\n<!-- /bench:table -->\nb\n<!-- bench:profile --><!-- /bench:profile -->\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second update changes nothing more
		if err := updateDocument(path, map[string]string{"table": "new\n\n", "profile": "p"}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	want := "a\n<!-- bench:table -->\nnew\n<!-- /bench:table -->\nb\n<!-- bench:profile -->\np\n<!-- /bench:profile -->\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	if err := updateDocument(path, map[string]string{"other": "x"}); err == nil {
		t.Error("a section without markers was updated")
	}
}

func TestParseResult(t *testing.T) {
	if r, err := parseResult([]byte(`{"iops": 5, "server_cpu": {"us_per_io": 2}}`)); err != nil || r.IOPS != 5 || r.ServerCPU.PerIO != 2 {
		t.Error(r, err)
	}
	for _, bad := range []string{"", "{}", `{"iops": 5}`, `{"iops": 5, "server_cpu": {}, "scsi_status": {"0x08": 1}}`} {
		if r, err := parseResult([]byte(bad)); err == nil {
			t.Errorf("%q was accepted as %+v", bad, r)
		}
	}
}

func TestForeignShare(t *testing.T) {
	from, err := parseMachineLoad([]byte("cpu  100 10 50 1000 0 7 9 20 0 0\ncpu0 1 1 1 1 1 1 1 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	to, err := parseMachineLoad([]byte("cpu  200 10 150 1000 0 7 9 30 0 0\n"))
	if err != nil {
		t.Fatal(err)
	}
	from.at, to.at = time.Unix(0, 0), time.Unix(1, 0)
	to.server = time.Second
	cpus := foreign(from, to, 0) // 2 s taken and 0.1 s stolen, 1 s the server's own
	if again := foreign(from, to, 600*time.Millisecond); cpus <= again || again <= 0 {
		t.Errorf("foreign share %v, with a client of 0.6 s %v", cpus, again)
	}
	if got := foreign(from, to, 3*time.Second); got != 0 {
		t.Errorf("foreign share %v, expected 0 where rounding makes it negative", got)
	}
	for _, bad := range []string{"", "cpu 1 2 3", "intr 1 2 3 4 5 6 7 8 9", "cpu a 1 1 1 1 1 1 1 1"} {
		if _, err := parseMachineLoad([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestProfileTable(t *testing.T) {
	list := parseProfile([]byte("# Samples\n#\n    60.00%  [k] copy_to_iter\n    15.50%  [.] lunar/target.(*Connection).turn  \n\n     4.50%  [k] tcp_ack\n"))
	if len(list) != 3 || list[1] != (symbol{15.5, false, "lunar/target.(*Connection).turn"}) {
		t.Fatalf("parsed %+v", list)
	}
	got := profileTable("reads", list, 2.5)
	for _, want := range []string{"reads: 2.50 µs", "81 % of it in the kernel, 19 % in tgtd", "| 60.0 % | kernel | `copy_to_iter` |"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := profileTable("", nil, 1); got != "The profile is empty.\n" {
		t.Error(got)
	}
}

func TestMachine(t *testing.T) {
	info := []byte("processor\t: 0\nmodel name\t: A CPU\nprocessor\t: 1\nmodel name\t: A CPU\n")
	if cpuField(info, "model name") != "A CPU" || cpuCount(info) != "2" {
		t.Errorf("%q, %q CPUs", cpuField(info, "model name"), cpuCount(info))
	}
	s := samples{"x": {{Foreign: 0.02}, {Foreign: 0.04}, {Foreign: 0.03}}}
	if got := machine(&options{Client: 1}, plan{repeats: 1}, s, "files here"); !strings.Contains(got, "3 interleaved repeats") || !strings.Contains(got, "4 % in the worst") {
		t.Error(got)
	}
}
