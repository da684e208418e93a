package main

import (
	"os"
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

// TestScale is the check of scale in a small number, without times. The whole of it is
// `make evidence-operate`.
func TestScale(t *testing.T) {
	found, err := scale(t.Context(), options{Tgtd: tgtd, Volumes: 20, Changes: 100, Writers: 4, Untimed: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Logf("%s: %s", f.Name, f.Value)
		if !f.Good {
			t.Errorf("%s: found %s", f.Name, f.Value)
		}
	}
}
