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

// paired makes one pair per two rates; lunar uses a fifth of tgt's CPU.
func paired(rates ...float64) []pair {
	var list []pair
	for i := 0; i < len(rates); i += 2 {
		list = append(list, pair{result: [contenders]load.Result{result(rates[i], 20), result(rates[i+1], 4)}})
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

// TestRequirementTable pins that the ratio is the median of the pairs' ratios,
// not the ratio of the medians (4.00).
func TestRequirementTable(t *testing.T) {
	s := samples{
		"read-32":   paired(100, 1000, 10, 90, 50, 450),
		"write-32":  paired(100, 250),
		"read-8x32": paired(10, 30),
	}
	want := `| | C tgt | Lunar | Lunar / tgt | to reach | reached |
|---|--:|--:|--:|--:|---|
| 4 KiB random read, depth 32, IOPS | 50 | 450 | 9.00× | ≥ 8× | yes |
| 4 KiB random read, 8 connections of depth 32, IOPS | 10 | 30 | 3.00× | ≥ 8× | **no** |
| 4 KiB random write, depth 32, write: back, IOPS | 100 | 250 | 2.50× | ≥ 6× | **no** |
| server CPU per 4 KiB read, depth 32, µs | 20.00 | 4.00 | 0.20× | ≤ 0.12× | **no** |
| server CPU per 4 KiB write, depth 32, µs | 20.00 | 4.00 | 0.20× | ≤ 0.25× | yes |
| 8 connections of depth 32, slowest / mean | 0.75 | 0.75 | 1.00× | ≥ 0.8 | **no** |

`
	if got := requirementTable(requirements, s); got != want {
		t.Errorf("got\n%s\nexpected\n%s", got, want)
	}
}

func TestDetailTable(t *testing.T) {
	got := detailTable(samples{"read-1": paired(10, 30, 20, 50, 12, 40)}, matrix[2:3])
	for _, want := range []string{
		"| 4 KiB random read, depth 1 | C tgt | 12 (10 to 20) |",
		"| 4 KiB random read, depth 1 | Lunar | 40 (30 to 50) |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestEveryRequirementIsMeasured(t *testing.T) {
	for _, r := range requirements {
		if _, err := selected(matrix, []string{r.workload}); err != nil {
			t.Error(err)
		}
	}
	if _, err := selected(matrix, []string{"nothing"}); err == nil {
		t.Error("an unknown workload was selected")
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
	s := samples{"x": {{foreign: 0.02}, {foreign: 0.04}, {foreign: 0.03}}}
	if got := machine(&options{Client: 1}, plan{repeats: 3}, s, "files here"); !strings.Contains(got, "3 interleaved repeats") || !strings.Contains(got, "4 % in the worst") {
		t.Error(got)
	}
}
