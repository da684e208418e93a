package main

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"lunar/scripts/evidence/daemon"
)

var tgtd string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "drive" || os.Args[1] == "fill") { // a process that a check starts
		main()
		return
	}
	os.Exit(daemon.Built(func(binary string) int {
		tgtd = binary
		return m.Run()
	}))
}

// TestScale is the check of scale in a small number, without times. The whole of it is
// `make evidence-operate`.
func TestScale(t *testing.T) {
	found, err := scale(t.Context(), options{Tgtd: tgtd, Volumes: 20, Changes: 100, Writers: 4, Untimed: true})
	if err != nil {
		t.Fatal(err)
	}
	judge(t, found)
}

// TestStall is the check of calls beside I/O with few objects, without times.
func TestStall(t *testing.T) {
	found, err := stall(t.Context(), options{Tgtd: tgtd, Objects: 10, Untimed: true})
	if err != nil {
		t.Fatal(err)
	}
	judge(t, found)
}

// TestFull is the check of full disks.
func TestFull(t *testing.T) {
	found, err := full(t.Context(), options{Tgtd: tgtd})
	if errors.Is(err, fs.ErrPermission) {
		t.Skipf("no right to mount: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	judge(t, found)
}

func judge(t *testing.T, found facts) {
	t.Helper()
	for _, f := range found {
		t.Logf("%s: %s", f.Name, f.Value)
		if !f.Good {
			t.Errorf("%s: found %s", f.Name, f.Value)
		}
	}
}
