package daemon

import (
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"lunar/conf"
	"lunar/internal/eventually"
)

// processStatus is a value of /proc/PID/status of the process and all its threads.
func processStatus(t *testing.T, pid int, key string) map[string]bool {
	t.Helper()
	values := map[string]bool{}
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + task.Name() + "/status")
		if err != nil {
			continue // a thread that has ended
		}
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && name == key {
				values[strings.TrimSpace(value)] = true
			}
		}
	}
	return values
}

// TestSandbox: by default all threads of a server that has started are filtered, and
// with off none. That it can be stopped, and what it logs, is as ever.
func TestSandbox(t *testing.T) {
	for key, filter := range map[string]string{"": "2", "server: {sandbox: log}\n": "2", "server: {sandbox: \"off\"}\n": "0"} {
		file := t.TempDir() + "/tgtd.yaml"
		writeFile(t, file, key+"portal-groups: {a: {listen: [\"127.0.0.1:0\"]}}\nvolumes: {v: {type: ram, size: 1MiB}}\ntargets: {\"iqn.2026-11.test:t\": {luns: {0: v}}}\n")
		c := serveChild(t, "-c", file, "--state-dir", t.TempDir())
		eventually.Says(t, c.log.String, "msg=ready")
		if strings.Contains(c.log.String(), "system calls are not filtered") {
			t.Skipf("this kernel or container takes no filter: %s", c.log)
		}
		if got := processStatus(t, c.cmd.Process.Pid, "Seccomp"); len(got) != 1 || !got[filter] {
			t.Errorf("%q: found %v on the threads, expected %s", key, got, filter)
		}
		if err := c.end(t, syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
}

// TestHeapShare: what the cache and buffers take is not the heap's.
func TestHeapShare(t *testing.T) {
	cfg := &conf.Config{Server: conf.Server{BuffersPerThread: 64 << 20}, Volumes: []conf.Volume{{Type: conf.RAMVolume, Size: 1 << 30}, {Type: conf.FileVolume, Size: 1 << 40}}}
	cfg.Cache.Size = conf.Amount{Percent: 50}
	if got, want := heapShare(cfg, 4, 8<<30), int64(8<<30-4<<30-4*64<<20-1<<30)*9/10; got < want-1 || got > want+1 {
		t.Errorf("found %d, expected %d", got, want)
	}
	if got := heapShare(cfg, 4, 1<<30); got != leastHeap {
		t.Errorf("found %d, expected %d", got, int64(leastHeap))
	}
}

// TestMemoryLimit: the configuration decides, and GOMEMLIMIT where it says auto.
func TestMemoryLimit(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	log := slog.New(slog.DiscardHandler)
	cfg := &conf.Config{}
	for _, test := range []struct {
		key         conf.Size
		environment string
		want        int64
	}{{1 << 30, "", 1 << 30}, {1 << 30, "2GiB", 1 << 30}, {0, "2GiB", 5 << 30}, {conf.NoMemoryLimit, "", math.MaxInt64}} {
		t.Setenv("GOMEMLIMIT", test.environment)
		debug.SetMemoryLimit(5 << 30)
		cfg.Server.MemoryLimit = test.key
		if limitMemory(cfg, 1, log); debug.SetMemoryLimit(-1) != test.want {
			t.Errorf("%v with GOMEMLIMIT=%q: found %d, expected %d", test.key, test.environment, debug.SetMemoryLimit(-1), test.want)
		}
	}
}
