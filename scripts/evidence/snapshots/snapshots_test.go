package main

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"lunar/scripts/evidence/daemon"
)

var tgtd string

func TestMain(m *testing.M) {
	os.Exit(daemon.Built(func(binary string) int {
		tgtd = binary
		return m.Run()
	}))
}

// TestKills is the check of kills with few snapshots, and TestRollbacks that of rollbacks,
// without times. The whole of it is `make evidence-snapshots`.
func TestKills(t *testing.T) {
	judge(t, "xfs", func(ctx context.Context, o options) (result, error) { return kills(ctx, o, "xfs", 20) })
}

func TestRollbacks(t *testing.T) {
	for _, keys := range []string{"", protected} {
		judge(t, "xfs", func(ctx context.Context, o options) (result, error) { return rollbacks(ctx, o, keys) })
	}
}

// TestFull is the check of a full disk, on xfs.
func TestFull(t *testing.T) {
	judge(t, "xfs", func(ctx context.Context, o options) (r result, err error) {
		err = fullOn(ctx, o, "xfs", &r)
		return r, err
	})
}

func judge(t *testing.T, system string, run func(context.Context, options) (result, error)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may mount the file system that this is tried on")
	}
	if _, err := exec.LookPath("mkfs." + system); err != nil {
		t.Skip(err)
	}
	memory, err := os.MkdirTemp("/dev/shm", "snapshots-") // syncs of a busy disk take seconds
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(memory)
	o := options{Tgtd: tgtd, Snapshots: 40, Every: 5, MiB: 2, Disk: memory, Untimed: true}
	d, err := newDisk(o, system, gib)
	if err != nil {
		t.Skip(err) // no loop device, or a kernel without the file system
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	r, err := run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Facts {
		t.Logf("%s: %s", f.Name, f.Value)
		if !f.Good {
			t.Errorf("found %s: %s", f.Name, f.Value)
		}
	}
}
