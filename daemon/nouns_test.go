package daemon

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/initiator"
)

const nounsConfig = `# kept
portal-groups: {a: {listen: ["127.0.0.1:0"], tag: 1}}
auth-groups:
  hosts:
    chap:
      - {user: host, secret: "secret of the host", initiators: ["iqn.2026-11.test:host"]}
volumes:
  one: {type: ram, size: 1MiB} # first
targets:
  iqn.2026-11.test:t: {auth-group: none, luns: {0: one}}
  iqn.2026-11.test:c:
    access:
      - {networks: [192.0.2.0/24], auth-group: hosts, luns: {3: one}}
`

// TestNouns: objects are made, shown, changed and removed by commands, and the file follows.
func TestNouns(t *testing.T) {
	c := &controlled{t: t, dir: t.TempDir()}
	c.file = filepath.Join(c.dir, "tgtd.yaml")
	writeFile(t, c.file, nounsConfig)
	c.serving = serve(t, "-c", c.file, "--state-dir", c.dir)
	file := func(want ...string) {
		t.Helper()
		text, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		c.has(string(text), want...)
	}
	cells := func(line string) string {
		t.Helper()
		return strings.Join(strings.Fields(c.tgtd(cli.ExitOK, strings.Fields(line)...)), " ")
	}

	c.has(c.tgtd(cli.ExitOK, "volume", "create", "two", "type=ram", "size=2MiB", "read-only=true", "--dry-run"), "volumes.two: new")
	c.has(c.tgtd(cli.ExitFailure, "volume", "show", "two"), "there is no such object")
	c.has(c.tgtd(cli.ExitOK, "volume", "create", "two", "type=ram", "size=2MiB", "serial=007", "block-size=4096"), "volumes.two: new")
	c.has(c.tgtd(cli.ExitFailure, "volume", "create", "two", "type=ram", "size=2MiB"))
	c.has(c.tgtd(cli.ExitFailure, "volume", "create", "three", "type=ram"), "volumes.three.size")
	c.has(c.tgtd(cli.ExitUsage, "volume", "create", "three", "type"), "expected KEY=VALUE")
	file("# kept", "two:", "size: 2MiB", "# first")
	c.has(c.tgtd(cli.ExitOK, "volume", "show", "two"), "size_bytes: 2097152", "serial: \"007\"", "state: ok")
	if got, want := cells("volume list --columns volume,size,serial,block-size --sort volume"), "VOLUME SIZE SERIAL BLOCK-SIZE one 1MiB - - two 2MiB 007 4096"; got != want {
		t.Errorf("found %q, expected %q", got, want)
	}
	c.has(c.tgtd(cli.ExitOK, "lun", "create", "iqn.2026-11.test:t", "1", "volume=two", "read-only=true"), "luns")
	dial(t, c.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	if got, want := cells("lun list iqn.2026-11.test:t --no-header"), "iqn.2026-11.test:t 0 one read, write 1 iqn.2026-11.test:t 1 two read 1"; got != want {
		t.Errorf("found %q, expected %q", got, want)
	}
	c.has(c.tgtd(cli.ExitDestructive, "lun", "delete", "iqn.2026-11.test:t", "1", "-n"), "destructive:", "session", "add --yes")
	c.has(c.tgtd(cli.ExitDestructive, "lun", "delete", "iqn.2026-11.test:t", "1"), "add --yes")
	c.has(c.tgtd(cli.ExitOK, "lun", "delete", "iqn.2026-11.test:t", "1", "--yes"), "removed")
	c.has(c.tgtd(cli.ExitDestructive, "volume", "set", "two", "size=1MiB"), "--allow-shrink two")
	c.has(c.tgtd(cli.ExitOK, "volume", "set", "two", "size=1MiB", "--allow-shrink", "two", "--temporary"), "size: 1MiB, was 2MiB")
	file("size: 2MiB")
	c.has(c.tgtd(cli.ExitOK, "target", "create", "iqn.2026-11.test:new", "auth-group=none", "luns={0: two}", "alias=new one"))
	if got, want := cells("target list --columns target,auth-group,volumes,sessions,alias --filter target=*:new --no-header"), "iqn.2026-11.test:new none two 0 new one"; got != want {
		t.Errorf("found %q, expected %q", got, want)
	}
	yaml := filepath.Join(c.dir, "more.yaml")
	writeFile(t, yaml, "alias: from a file\n")
	c.has(c.tgtd(cli.ExitOK, "target", "set", "iqn.2026-11.test:new", "-f", yaml), "alias")
	c.has(c.tgtd(cli.ExitUsage, "target", "set", "iqn.2026-11.test:new"), "nothing to change")
	c.has(c.tgtd(cli.ExitOK, "target", "set", "iqn.2026-11.test:new", "alias="), "alias")
	c.has(c.tgtd(cli.ExitOK, "portal", "create", "b", `listen=["127.0.0.1:0"]`, "tag=2"))
	if got := cells("portal list --columns group,tag --no-header"); got != "a 1 b 2" {
		t.Errorf("found %q", got)
	}
	c.has(c.tgtd(cli.ExitOK, "portal", "delete", "b"))
	c.has(c.tgtd(cli.ExitOK, "session", "list"), initiator.DefaultInitiator)
	c.has(c.tgtd(cli.ExitOK, "session", "show", "1"), "tsih: 1", "volume: one")
	c.has(c.tgtd(cli.ExitFailure, "session", "show", "99"), "no session 99")
	var who struct {
		Initiators []struct{ Initiator, Is, By, From, Target string }
	}
	text := c.tgtd(cli.ExitOK, "initiator", "list", "-o", "json")
	if err := json.Unmarshal([]byte(text), &who); err != nil || len(who.Initiators) != 4 || who.Initiators[0].Is != "connected" || strings.Contains(text, "secret") {
		t.Errorf("found %s, %v", text, err)
	}
	c.has(c.tgtd(cli.ExitOK, "initiator", "list", "--filter", "target=*:c"), "(any)", "192.0.2.0/24", "hosts/host (iqn.2026-11.test:host)", "access rule 1, auth-group hosts")
	c.has(c.tgtd(cli.ExitOK, "qos", "set", "slow", "--initiators", "iqn.2026-11.test:*", "--limit", "100"))
	if got := cells("qos list --columns rule,limit,file --no-header"); got != "slow 100 not there" {
		t.Errorf("found %q", got)
	}
	c.has(c.tgtd(cli.ExitOK, "alua", "list"), "optimized")
	c.has(c.tgtd(cli.ExitOK, "session", "delete", "1"), "asked to log out: 1")
	c.has(c.tgtd(cli.ExitOK, "target", "delete", "iqn.2026-11.test:new"), "removed")
}
