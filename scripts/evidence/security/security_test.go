package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lunar/internal/eventually"
	"lunar/scripts/evidence/daemon"
)

// tgtd is the server that is attacked.
var tgtd string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "attack" { // a process that besiege started
		main()
		return
	}
	os.Exit(daemon.Built(func(binary string) int {
		tgtd = binary
		return m.Run()
	}))
}

// TestAttacks runs all of them for moments, and judges what needs no clock: what the
// attacker got, the canary's data and sessions, and how the server ends. The whole of
// them is `make evidence-security`.
func TestAttacks(t *testing.T) {
	r := &runCommand{Tgtd: tgtd, Phases: 1, Minutes: 0.01, Seed: uint64(time.Now().UnixNano()), settle: 300 * time.Millisecond, ctx: context.Background()}
	t.Logf("seed %d", r.Seed)
	for _, a := range everything() {
		t.Run(a.name, func(t *testing.T) {
			dir, err := os.MkdirTemp("/dev/shm", "security-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			var found outcome
			for _, r.Seconds = range []float64{0.2, 2, 20} { // a busy machine does nothing in a moment
				if found, err = r.besiege(a, filepath.Join(dir, fmt.Sprint(a.name, r.Seconds))); err != nil {
					t.Fatal(err)
				}
				if served, asked := found.Figures[othersServed]; served > 0 || !asked {
					break
				}
			}
			t.Log(found.Figures)
			for _, f := range found.Failed {
				t.Errorf("%s (canary: %v)", f, found.Seen)
			}
		})
	}
}

// TestStorm: all who had sessions get them back although a stranger floods the server.
// How soon is for `SCALE=1 make evidence-security`.
func TestStorm(t *testing.T) {
	dir, err := os.MkdirTemp("/dev/shm", "security-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	r := &runCommand{Tgtd: tgtd, ctx: context.Background()}
	found, err := r.stormOf(filepath.Join(dir, storm.name), 40)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(found.Figures)
	for _, f := range found.Failed {
		t.Error(f)
	}
}

// TestBounds: a share of nothing is none.
func TestBounds(t *testing.T) {
	for _, c := range []struct {
		bound bound
		found figures
		holds bool
	}{
		{atMost("a", 0), figures{}, true},
		{atMost("a", 0), figures{"a": 1}, false},
		{atLeast("a", 1), figures{}, false},
		{share("a", "b", 0.9), figures{}, false},
		{share("a", "b", 0.9), figures{"a": 9, "b": 1}, true},
		{share("a", "b", 0.9), figures{"a": 8, "b": 1}, false},
	} {
		if c.bound.holds(c.found) != c.holds {
			t.Errorf("%+v of %v: expected %v", c.bound, c.found, c.holds)
		}
	}
}

// TestSumOfFuzzing: hours and inputs of all runs add up; what the canary saw is that of the
// last run on a quiet machine, and what was wrong on a busy one is told.
func TestSumOfFuzzing(t *testing.T) {
	run := func(latency, seconds float64, failed ...string) outcome {
		return outcome{Version: "v", Latency: latency, CPUSeconds: seconds, Figures: figures{inputs: seconds}, Failed: failed}
	}
	all := outcome{}
	for _, c := range []struct {
		found                  outcome
		busy                   bool
		latency, seconds, late float64
		failed                 int
	}{
		{run(9, 1), true, 9, 1, 1, 0},
		{run(2, 10), false, 2, 11, 1, 0},
		{run(9, 100, "a crash"), true, 2, 111, 101, 1},
		{run(3, 1000), false, 3, 1111, 101, 0},
	} {
		all = sumOfFuzzing(all, c.found, c.busy)
		if all.Latency != c.latency || all.CPUSeconds != c.seconds || all.BusySeconds != c.late || all.Figures[inputs] != c.seconds || len(all.Failed) != c.failed {
			t.Errorf("after %+v: %+v", c.found, all)
		}
	}
}

// TestVerdict: a process that was killed because it hung is a crash, as one that ended by a
// signal of its own.
func TestVerdict(t *testing.T) {
	for _, end := range []func(*os.Process) bool{starve, func(p *os.Process) bool { return p.Signal(syscall.SIGSEGV) != nil }} {
		c := exec.Command("sleep", "60")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if end(c.Process) {
			t.Error("a process that sleeps waited for a CPU")
		}
		failed := c.Wait()
		if said, err := verdict(c.ProcessState, nil, failed); err != nil || !strings.HasPrefix(said, crashed) {
			t.Errorf("%v: found %q, %v", c.ProcessState, said, err)
		}
	}
}

// TestWaitedForCPU: a thread that shares its CPU with another one waits for about half of
// the time.
func TestWaitedForCPU(t *testing.T) {
	var busy []*exec.Cmd
	for range 2 {
		c := exec.Command("taskset", "-c", "0", "sh", "-c", "while :; do :; done")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer c.Wait()
		defer c.Process.Kill()
		busy = append(busy, c)
	}
	eventually.Holds(t, "the one waits for the other", func() bool { return waitedForCPU(busy[0].Process.Pid) > 50*time.Millisecond })
}

// TestJain: the index by its definition.
func TestJain(t *testing.T) {
	for _, c := range []struct {
		rates []float64
		want  float64
	}{{[]float64{5, 5, 5, 5}, 1}, {[]float64{4, 0, 0, 0}, 0.25}} {
		if found := jain(c.rates); found != c.want {
			t.Errorf("%v: found %g, expected %g", c.rates, found, c.want)
		}
	}
}
