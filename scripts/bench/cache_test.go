package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"lunar/conf"
)

// TestCommandLine: the first argument says what is compared, and without one
// everything is as it was before there were two.
func TestCommandLine(t *testing.T) {
	file, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tools := []string{"--tgtd", file, "--tgtload", file}
	for _, test := range []struct {
		line    []string
		command string
		mode    func(o *commandLine) string
		want    string
	}{
		{nil, "servers", func(o *commandLine) string { return o.Servers.Mode }, "quick"},
		{[]string{"full"}, "servers <mode>", func(o *commandLine) string { return o.Servers.Mode }, "full"},
		{[]string{"--only", "read-32"}, "servers", func(o *commandLine) string { return strings.Join(o.Only, ",") }, "read-32"},
		{[]string{"cache", "--tests", t.TempDir()}, "cache", func(o *commandLine) string { return o.Cache.Mode }, "full"},
		{[]string{"cache", "--tests", t.TempDir(), "quick", "--repeats", "1"}, "cache <mode>", func(o *commandLine) string { return o.Cache.Mode }, "quick"},
	} {
		var o commandLine
		parser, err := kong.New(&o)
		if err != nil {
			t.Fatal(err)
		}
		line, err := parser.Parse(slices.Concat(tools, test.line))
		if err != nil {
			t.Errorf("%v: %v", test.line, err)
			continue
		}
		if line.Command() != test.command || test.mode(&o) != test.want {
			t.Errorf("%v is %q with %q, expected %q with %q", test.line, line.Command(), test.mode(&o), test.command, test.want)
		}
	}
}

func TestConfigurationsAreValid(t *testing.T) {
	for name, text := range map[string]string{
		"memory": memory(&options{Data: 1024}, "/dev/shm/x").yaml(3260, []string{"/dev/shm/x/0"}),
		"disk":   fmt.Sprintf(diskConfig, diskCache, "/dev/shm/x", 3260, "/var/tmp/0", "/var/tmp/1", targetName),
		"asleep": fmt.Sprintf(asleepConfig, 3260, "/var/tmp/2", targetName),
	} {
		if _, _, err := conf.Parse(name, []byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

const iscsiPerfOutput = "will run for 2 seconds.\n\n\r00:00:01 - lba 5, iops current 40 (1 MB/s), iops average 40 (1 MB/s), in_flight 32, busy 0   " +
	"\riops average 50000 (195 MB/s)          \n\nfinished.\n"

func TestIscsiPerf(t *testing.T) {
	chosen, _ := selected(matrix, []string{"perf-32"})
	w := chosen[0]
	spent := usage{runtime: 1500 * time.Millisecond, server: 400 * time.Millisecond, client: time.Second}
	r, err := w.tool.result([]byte(iscsiPerfOutput), w, spent)
	if err != nil {
		t.Fatal(err)
	}
	if r.IOPS != 50000 || r.BytesPerSecond != 50000*4096 || r.ServerCPU.PerIO != 4 || r.ClientCPU.PerIO != 10 {
		t.Errorf("found %+v, server %+v; expected 50000 IOPS of 4 KiB in 2 s, at 4 µs of the server's CPU and 10 µs of the client's", r, r.ServerCPU)
	}
	for _, bad := range []string{"", "iops average 0 (0 MB/s)", "Login Failed."} {
		if r, err := w.tool.result([]byte(bad), w, spent); err == nil {
			t.Errorf("%q was accepted as %+v", bad, r)
		}
	}
	line := strings.Join(w.tool.arguments(client{}, &server{urls: []string{"iscsi://x"}}, w, spent.runtime), " ")
	if line != "iscsi-perf -m 32 -b 1 -t 2 -r iscsi://x" {
		t.Error(line)
	}
}

const goOutput = `goos: linux
BenchmarkHit/index_and_list-2         	 1000	        60.0 ns/op	       0 B/op	       0 allocs/op
BenchmarkCores/loops=1/partitions=4-2 	 1000	       500.0 ns/op
BenchmarkCores/loops=2/partitions=4   	 1000	       250.0 ns/op
BenchmarkCores/loops=2/partitions=16-2 	 1000	       200.0 ns/op
PASS
`

func parsed(t *testing.T, outputs ...string) *benchmarks {
	t.Helper()
	var b benchmarks
	for _, o := range outputs {
		if err := b.parse([]byte(o)); err != nil {
			t.Fatal(err)
		}
	}
	return &b
}

func TestBenchmarksAreParsed(t *testing.T) {
	b := parsed(t, goOutput, strings.ReplaceAll(goOutput, "60.0", "80.0"))
	if len(b.list) != 4 {
		t.Fatalf("found %d benchmarks in %+v, expected 4", len(b.list), b.list)
	}
	if ns, _ := b.named("Hit/index and list").median("ns/op"); ns != 70 {
		t.Errorf("median of 60 and 80 is %v", ns)
	}
	if _, has := b.named("Nothing").median("ns/op"); has {
		t.Error("a benchmark that did not run has a result")
	}
	if err := b.parse([]byte("BenchmarkX 5 x ns/op\n")); err == nil {
		t.Error("a line without a number was accepted")
	}
}

func TestPartTables(t *testing.T) {
	cores := &benchmarks{list: parsed(t, goOutput).list[1:]}
	miss := parsed(t, "BenchmarkMiss/a-2 5 1000 ns/op 4 cpu-µs/op\nBenchmarkMiss/b-2 5 500 ns/op 1 cpu-µs/op\n",
		"BenchmarkMiss/a-2 5 1000 ns/op 4 cpu-µs/op\nBenchmarkMiss/b-2 5 250 ns/op 2 cpu-µs/op\n")
	for name, test := range map[string]struct{ got, want string }{
		"cost":    {costTable(parsed(t, goOutput), 2), "| Hit/index and list | 60.0 | 120 | 0 | 0 |"},
		"counted": {costTable(parsed(t, "BenchmarkA 5 10 ns/op 33 cycles/op\n"), 2), "| A | 10.0 | 33 | – | – |"},
		"cores":   {coresTable(cores, 0), "| loops | 4 | 16 |\n|--:|--:|--:|\n| 1 | 2.00 | – |\n| 2 | 4.00 | 5.00 |\n"},
		"misses":  {missTable(miss, 0), "| a | 1000000 | 1.00× | 4.00 | 1.00× |\n| b | 2666667 | 3.00× | 1.50 | 0.38× |\n"},
		"memory": {overheadTable(parsed(t, "BenchmarkOverhead/block=64KiB 1 12000000 index-B/GiB 1048576 journal-B/GiB 4096 volumes-B/GiB\n"), 0),
			"| 64KiB | 12000000 | 1048576 | 4096 | 13052672 | 1.216 % | ≤ 1 % | **no** |"},
	} {
		if !strings.Contains(test.got, test.want) {
			t.Errorf("%s: found\n%sexpected\n%s", name, test.got, test.want)
		}
	}
}

// TestDocumentsHaveAllSections: what is measured can be written down.
func TestDocumentsHaveAllSections(t *testing.T) {
	ofCache := []string{"clock"}
	for _, p := range parts {
		ofCache = append(ofCache, p.section)
	}
	for document, names := range map[string][]string{
		"performance.md":       {"table", "profile", "ladder", "builds", "scaling", "sessions", "crowd"},
		"performance-disk.md":  {"disk", "cache"},
		"performance-cache.md": ofCache,
	} {
		text, err := os.ReadFile("../../docs/reports/" + document)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if _, err := replaceSection(string(text), name, "x"); err != nil {
				t.Errorf("%s: %v", document, err)
			}
		}
	}
}

func TestDiskReads(t *testing.T) {
	process, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	s := &server{name: "this test", cmd: &exec.Cmd{Process: process}}
	if n, err := s.diskReads(); err != nil || n < 0 {
		t.Errorf("%d, %v", n, err)
	}
	s.cmd.Process.Pid = -1
	if n, err := s.diskReads(); err == nil {
		t.Errorf("a process that there is not has read %d bytes", n)
	}
}

func TestCoreClock(t *testing.T) {
	ghz, how := coreClock()
	if text := clockText(ghz, how); ghz != 0 && !strings.Contains(text, how) || ghz == 0 && how != "" {
		t.Errorf("%v GHz, %q: %s", ghz, how, text)
	}
}
