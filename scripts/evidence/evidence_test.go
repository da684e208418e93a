package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"lunar/scripts/evidence/daemon"

	"golang.org/x/sys/unix"
)

// tgtd is the server that all checks break.
var tgtd string

func TestMain(m *testing.M) {
	os.Exit(daemon.Built(func(binary string) int {
		tgtd = binary
		return m.Run()
	}))
}

// TestChecks runs every check in a small number. The whole of them is
// `make evidence-reliability`.
func TestChecks(t *testing.T) {
	r := &runCommand{
		Tgtd: tgtd, Servers: 2, Seed: uint64(time.Now().UnixNano()),
		Points: 30, Kills: 8, Members: 6, Cuts: 16, Ext4: 6, Flips: 32, Configurations: 50,
	}
	t.Logf("seed %d", r.Seed)
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			if why := forbidden(t, c.name); why != "" {
				t.Skip(why)
			}
			dir, err := os.MkdirTemp("/dev/shm", "evidence-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			found, err := c.run(r, filepath.Join(dir, c.name), c.count(r))
			if err != nil {
				t.Fatal(err)
			}
			t.Log(found.Figures)
			for _, f := range found.Found {
				t.Log(f)
			}
			if found.Wrong > 0 {
				t.Errorf("found %d %s (seed %d)", found.Wrong, found.Words, r.Seed)
			}
		})
	}
}

// forbidden says why this machine cannot run a check.
func forbidden(t *testing.T, name string) string {
	t.Helper()
	switch name {
	case "points":
		if err := traced(); err != nil {
			return fmt.Sprintf("ptrace is forbidden here: %v", err)
		}
	case "cuts", "ext4", "ext4-without-journal":
		if os.Geteuid() != 0 {
			return "mounting needs root"
		}
		if _, err := os.Stat("/dev/fuse"); err != nil {
			return fmt.Sprintf("no FUSE here: %v", err)
		}
	}
	if _, err := os.Stat("/dev/loop-control"); strings.HasPrefix(name, "ext4") && err != nil {
		return fmt.Sprintf("no loop devices here: %v", err)
	}
	return ""
}

// traced tries to follow a process.
func traced() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s := &daemon.Server{Binary: self, Dir: os.TempDir()}
	done := make(chan error)
	go func() { // on a thread that ends with it
		runtime.LockOSThread()
		if err := s.Launch(true); err != nil {
			done <- err
			return
		}
		t, err := seize(s.Process.Pid)
		if err == nil {
			err = errors.Join(unix.Kill(s.Process.Pid, unix.SIGKILL), t.follow(nil))
		}
		done <- err
	}()
	return <-done
}

// TestLedger: what may be there passes, everything else does not.
func TestLedger(t *testing.T) {
	block := func(generation uint32) []byte {
		b := make([]byte, blockSize)
		if generation > 0 {
			fill(b, 3, 1, generation)
		}
		return b
	}
	torn := append(block(1)[:256:256], block(2)[256:]...)
	other := make([]byte, blockSize)
	fill(other, 3, 2, 1)
	for _, c := range []struct {
		name  string
		found []byte
		fine  [3]bool // with the second write under way, acknowledged, and made to last
	}{
		{"zeroes", block(0), [3]bool{true, true, false}},
		{"the first", block(1), [3]bool{true, true, false}},
		{"the second", block(2), [3]bool{true, true, true}},
		{"torn", torn, [3]bool{}},
		{"another block's", other, [3]bool{}},
		{"refused", nil, [3]bool{}},
	} {
		for state, fine := range c.fine {
			l := newLedger(3, 2)
			first := l.begin(1, 1, false, false)
			l.acknowledged(1, 1, first, false)
			second := l.begin(1, 1, false, false)
			if state > 0 {
				l.acknowledged(1, 1, second, state == 2)
			}
			if wrong := l.inspect([][]byte{make([]byte, blockSize), c.found}); (len(wrong) == 0) != fine {
				t.Errorf("%s, state %d: found %v, expected fine: %v", c.name, state, wrong, fine)
			}
		}
	}
}

// TestLedgerFlush: a flush makes last what was acknowledged when it was sent.
func TestLedgerFlush(t *testing.T) {
	l := newLedger(0, 1)
	l.acknowledged(0, 1, l.begin(0, 1, false, false), false)
	then := l.snapshot()
	l.acknowledged(0, 1, l.begin(0, 1, false, false), false)
	l.flushed(then)
	for generation, fine := range []bool{false, true, true} {
		b := make([]byte, blockSize)
		if generation > 0 {
			fill(b, 0, 0, uint32(generation))
		}
		if wrong := l.inspect([][]byte{b}); (len(wrong) == 0) != fine {
			t.Errorf("generation %d: found %v, expected fine: %v", generation, wrong, fine)
		}
	}
}

// TestLedgerAtomic: half of an atomic write is wrong, though each block is right.
func TestLedgerAtomic(t *testing.T) {
	for has := range 3 {
		l := newLedger(0, 2)
		v := l.begin(0, 2, false, true)
		blocks := [][]byte{make([]byte, blockSize), make([]byte, blockSize)}
		for i := range has {
			fill(blocks[i], 0, i, v.generation)
		}
		if wrong := l.survey(blocks); (len(wrong) == 0) != (has != 1) {
			t.Errorf("%d of 2 blocks are there: found %v", has, wrong)
		}
	}
}

// TestLeaked: parts of secrets are found.
func TestLeaked(t *testing.T) {
	for text, want := range map[string]string{"secret": "", `found "zwirn"`: "zwirn", "xp@ss:x": "p@ss:", "p@ss: d": "p@ss:"} {
		if found := leaked(text); found != want {
			t.Errorf("%q: found %q, expected %q", text, found, want)
		}
	}
}

// TestMalformed: most of what is drawn is refused, or the check would have nothing to do.
func TestMalformed(t *testing.T) {
	random, same := rand.New(rand.NewPCG(1, 2)), 0
	for range 100 {
		if malformed(random) == secretsConfig {
			same++
		}
	}
	if same > 30 {
		t.Errorf("%d of 100 configurations were not changed", same)
	}
}
