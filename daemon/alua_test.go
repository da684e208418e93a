package daemon

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"lunar/conf"
	"lunar/daemon/volumes"
	"lunar/internal/cli"
	"lunar/internal/initiator"
	"lunar/target/scsi"
)

const aluaConfig = `
server: {threads: 1, buffers-per-thread: 8MiB}
portal-groups:
  fast: {tag: 1, listen: ["127.0.0.1:0"], alua: {preferred: true}}
  slow: {tag: 2, listen: ["127.0.0.1:0"], alua: {state: standby}}
volumes: {a: {type: ram, size: 1MiB}, b: {type: ram, size: 1MiB}}
targets: {"iqn.2026-11.test:t": {luns: {0: a, 1: b}}}
`

// aluaServer serves aluaConfig; dir is its state directory.
func aluaServer(t *testing.T) (s *serving, dir string) {
	t.Helper()
	dir = t.TempDir()
	file := filepath.Join(dir, "tgtd.yaml")
	writeFile(t, file, aluaConfig)
	return serve(t, "-c", file, "--state-dir", dir), dir
}

// TestALUA: the states of the configuration are in force, and change while
// initiators use the volumes.
func TestALUA(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tgtd.yaml")
	writeFile(t, file, aluaConfig)
	s := serve(t, "-c", file, "--state-dir", dir)
	tgtd := func(status int, args ...string) string {
		t.Helper()
		var out, messages strings.Builder
		args = append(append([]string{"alua"}, args...), "--state-dir", dir)
		if got := run(t.Context(), args, cli.Console{Out: &out, Err: &messages}); got != status {
			t.Errorf("tgtd %q: status %d, expected %d: %s", args, got, status, messages.String())
		}
		return out.String() + messages.String()
	}
	has := func(text string, rows ...string) {
		t.Helper()
		for _, row := range rows {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), row) {
				t.Errorf("found\n%s\nexpected %q", text, row)
			}
		}
	}
	has(tgtd(cli.ExitOK, "show"), "fast 1 a optimized yes fast 1 b optimized yes slow 2 a standby no slow 2 b standby no")
	has(tgtd(cli.ExitOK, "show", "--json"), `"state":"standby"`)
	has(tgtd(cli.ExitOK, "set", "slow", "--state", "non-optimized", "--volume", "a"), "slow 2 a non-optimized no slow 2 b standby no")
	c := dial(t, s.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	has(tgtd(cli.ExitOK, "set", "fast", "--state", "unavailable", "--no-preferred"), "fast 1 a unavailable no fast 1 b unavailable no")
	for _, want := range []string{"062a06", "02040c"} {
		r, err := c.Command([]byte{0, 0, 0, 0, 0, 0}, 0, nil, 0)
		if err != nil || r.Status != initiator.StatusCheckCondition {
			t.Fatalf("%+v, %v", r, err)
		}
		if key, asc, ascq := r.SenseKey(); fmt.Sprintf("%02x%02x%02x", key, asc, ascq) != want {
			t.Errorf("sense %02x%02x%02x, expected %s", key, asc, ascq, want)
		}
	}
	writeFile(t, file, strings.Replace(aluaConfig, "{preferred: true}", "{state: non-optimized}", 1))
	if status := run(t.Context(), []string{"apply", "--state-dir", dir, file}, cli.Console{Out: io.Discard, Err: io.Discard}); status != cli.ExitOK {
		t.Errorf("apply: status %d", status)
	}
	has(tgtd(cli.ExitOK, "show"), "fast 1 a non-optimized no fast 1 b non-optimized no slow 2 a non-optimized no slow 2 b standby no")
	has(tgtd(cli.ExitFailure, "set", "medium", "--state", "standby"), `no portal group "medium"`)
	has(tgtd(cli.ExitFailure, "set", "slow", "--state", "standby", "--volume", "c"), `no volume "c"`)
	has(tgtd(cli.ExitFailure, "set", "slow", "--state", "idle"), "expected value to be one of")
	has(tgtd(cli.ExitUsage, "set", "slow"), "nothing to change")
}

// TestAccessStatesOfConfiguration: conf and scsi have the same names.
func TestAccessStatesOfConfiguration(t *testing.T) {
	for _, name := range scsi.AccessStateNames() {
		text := strings.Replace(aluaConfig, "state: standby", "state: "+name, 1)
		cfg, _, err := conf.Parse("c", []byte(text))
		if name == scsi.Transitioning.String() {
			if err == nil {
				t.Error("a configuration in transition")
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := volumes.ConfiguredAccess(cfg)[2].State; got.String() != name {
			t.Errorf("%v, expected %s", got, name)
		}
	}
}
