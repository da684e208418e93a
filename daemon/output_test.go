package daemon

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/initiator"
)

const outputConfig = `
portal-groups: {a: {listen: ["127.0.0.1:0"], tag: 1}, b: {listen: ["127.0.0.1:0"], tag: 2}}
volumes: {one: {type: ram, size: 1MiB}, two: {type: ram, size: 1MiB}}
targets: {"iqn.2026-11.test:t": {auth-group: none, luns: {0: one, 7: two}}}
`

// TestOutput: lists are chosen from by column, in each form, and mistakes have their own
// exit status.
func TestOutput(t *testing.T) {
	c := &controlled{t: t, dir: t.TempDir()}
	c.file = filepath.Join(c.dir, "tgtd.yaml")
	writeFile(t, c.file, outputConfig)
	c.serving = serve(t, "-c", c.file, "--state-dir", c.dir)
	dial(t, c.portal, initiator.Options{Target: "iqn.2026-11.test:t"})

	spaces := regexp.MustCompile(`\s+`)
	for line, want := range map[string]string{
		"alua show --no-header --sort volume --reverse --filter group=A":     "a 1 two optimized no a 1 one optimized no",
		"alua show --columns volume,group --filter volume=o* --filter tag>1": "VOLUME GROUP one b",
		"sessions --columns lun,volume,rights --filter lun>=7":               "LUN VOLUME RIGHTS 7 two read, write",
		"reservations show --columns volume,type --sort volume":              "VOLUME TYPE one none two none",
		"status --check": "ok: 2 volumes, 1 session",
	} {
		if got := strings.TrimSpace(spaces.ReplaceAllString(c.tgtd(cli.ExitOK, strings.Fields(line)...), " ")); got != want {
			t.Errorf("%s: found %q, expected %q", line, got, want)
		}
	}
	var paths control.ALUA
	if err := json.Unmarshal([]byte(c.tgtd(cli.ExitOK, "alua", "show", "-o", "json", "--filter", "volume=two")), &paths); err != nil || len(paths.Paths) != 2 {
		t.Errorf("found %+v, %v", paths, err)
	}
	var sessions struct{ Sessions []struct{ Initiator string } }
	if err := yaml.Unmarshal([]byte(c.tgtd(cli.ExitOK, "sessions", "-o", "yaml")), &sessions); err != nil || len(sessions.Sessions) != 1 || sessions.Sessions[0].Initiator != initiator.DefaultInitiator {
		t.Errorf("found %+v, %v", sessions, err)
	}
	c.has(c.tgtd(cli.ExitUsage, "sessions", "--sort", "name"), "expected one of the columns session, initiator")
	c.has(c.tgtd(cli.ExitUsage, "sessions", "--columns", "name"), "expected one of the columns")
	c.has(c.tgtd(cli.ExitUsage, "alua", "show", "--filter", "name"), "expected COLUMN=PATTERN")
	c.has(c.tgtd(cli.ExitOK, "drain", "b"))
	c.has(c.tgtd(cli.ExitOK, "status"), "ok: 2 volumes, 1 session; 1 drain that the configuration file does not have\n")
}
