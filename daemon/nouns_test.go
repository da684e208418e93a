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
	again := c.tgtd(cli.ExitOK, "target", "set", "iqn.2026-11.test:new", "-f", yaml)
	if c.has(again, "nothing to change", "has it already"); strings.Contains(again, "Written") {
		t.Errorf("found %s", again)
	}
	c.has(c.tgtd(cli.ExitOK, "target", "set", "iqn.2026-11.test:new", "alias="), "alias")
	c.has(c.tgtd(cli.ExitOK, "portal", "create", "b", `listen=["127.0.0.1:0"]`, "tag=2"))
	if got := cells("portal list --columns group,tag --no-header"); got != "a 1 b 2" {
		t.Errorf("found %q", got)
	}
	c.tgtd(cli.ExitOK, "alua", "set", "b", "--state", "standby")
	c.tgtd(cli.ExitOK, "drain", "b", "--to", "192.0.2.9:3260")
	if got, want := cells("portal list --columns group,state,drained --no-header"), "a optimized - b standby all to 192.0.2.9:3260"; got != want {
		t.Errorf("found %q, expected %q", got, want)
	}
	c.has(c.tgtd(cli.ExitOK, "portal", "show", "b", "-o", "json"), `"reach":{"group":"b","states":["standby"],"draining":[{"to":"192.0.2.9:3260"}]}`)
	c.has(c.tgtd(cli.ExitOK, "target", "show", "iqn.2026-11.test:t", "-o", "json"), `{"group":"a","states":["optimized"],"draining":[]},{"group":"b","states":["standby"],"draining":[{"to":"192.0.2.9:3260"}]}`)
	c.tgtd(cli.ExitOK, "drain", "b", "--off")
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

// TestAuthNouns: auth groups and users are made and changed by commands that get secrets
// from files and prompts alone; logins need what was given last, and nothing tells it.
func TestAuthNouns(t *testing.T) {
	c := &controlled{t: t, dir: t.TempDir()}
	c.file = filepath.Join(c.dir, "tgtd.yaml")
	writeFile(t, c.file, nounsConfig)
	c.serving = serve(t, "-c", c.file, "--state-dir", c.dir)
	secret := func(text string) string {
		path := filepath.Join(t.TempDir(), "secret")
		writeFile(t, path, text+"\n")
		return path
	}
	said := ""
	ok := func(args ...string) string {
		t.Helper()
		out := c.tgtd(cli.ExitOK, args...)
		said += out
		return out
	}
	login := func(user, secret string) error {
		conn, err := initiator.Dial(t.Context(), c.portal, initiator.Options{Target: "iqn.2026-11.test:c", CHAP: &initiator.CHAP{User: user, Secret: []byte(secret)}})
		if err == nil {
			conn.Close()
		}
		return err
	}
	for _, args := range [][]string{
		{"user", "create", "hosts", "new", "secret=a secret for all"},
		{"user", "set", "hosts", "host", "secret=a secret for all"},
		{"auth-group", "create", "more", "chap=[{user: u, secret: a secret for all}]"},
		{"auth-group", "set", "hosts", "mutual={user: t, secret: a secret for all}"},
	} {
		c.has(c.tgtd(cli.ExitUsage, args...), "found a secret on the command line")
	}
	c.has(c.tgtd(cli.ExitFailure, "user", "create", "hosts", "new", "--secret-from", secret("")), "expected a secret")
	c.has(ok("user", "create", "hosts", "new", "--secret-from", secret("secret of the new one")), "auth-groups.hosts")
	c.has(c.tgtd(cli.ExitFailure, "user", "create", "hosts", "new", "--secret-from", secret("secret of another")), "found one, expected none")
	c.has(ok("auth-group", "create", "all", "networks=[127.0.0.0/8]"), "auth-groups.all: new")
	c.has(ok("user", "create", "all", "one", "secret-file="+secret("secret in a file")), "auth-groups.all")
	c.has(ok("auth-group", "set", "all", "mutual.user=target", "--mutual-secret-from", secret("secret of the target")), "auth-groups.all.mutual")
	if got, want := strings.Join(strings.Fields(ok("user", "list", "--no-header")), " "), "all one - in a file hosts host iqn.2026-11.test:host in the configuration hosts new - in the configuration"; got != want {
		t.Errorf("found %q, expected %q", got, want)
	}
	c.has(ok("user", "list", "all", "-o", "json"), `"user":"one"`)
	c.has(c.tgtd(cli.ExitFailure, "user", "list", "none"), `found no auth-group "none"`)
	if got, want := strings.Join(strings.Fields(ok("auth-group", "list", "--no-header")), " "), "all one target - 127.0.0.0/8 hosts host, new - - -"; got != want {
		t.Errorf("found %q, expected %q", got, want)
	}
	ok("target", "set", "iqn.2026-11.test:c", "access=[{auth-group: hosts, luns: {3: one}}]", "--yes")
	if err := login("new", "secret of the new one"); err != nil {
		t.Error(err)
	}
	c.has(ok("user", "set", "hosts", "new", "--secret-from", secret("secret of later")), "auth-groups.hosts")
	if login("new", "secret of the new one") == nil || login("new", "secret of later") != nil {
		t.Error("the new secret is not in force")
	}
	c.has(ok("user", "set", "all", "one", "--secret-from", secret("no more in a file")), "auth-groups.all")
	c.has(ok("user", "list", "all"), "in the configuration")
	c.has(ok("user", "set", "all", "one", "secret-file="+secret("in a file again")), "auth-groups.all")
	c.has(ok("user", "list", "all"), "in a file")
	c.has(ok("user", "show", "hosts", "new"), `secret: "*** not shown ***"`)
	ok("auth-group", "show", "all")
	ok("auth-group", "set", "all", "mutual=")
	ok("user", "delete", "all", "one", "--yes")
	c.has(ok("auth-group", "delete", "all"), "removed")
	for _, text := range []string{said, c.log.String()} {
		if strings.Contains(text, "secret of the") || strings.Contains(text, "secret of later") || strings.Contains(text, "a secret for all") || strings.Contains(text, "in a file again") {
			t.Errorf("found a secret in %s", text)
		}
	}

	c.has(ok("qos", "group", "create", "both", `initiators=["iqn.2026-11.test:*"]`), "qos.groups.both")
	c.has(ok("qos", "create", "shared", "--group", "both", "--limit", "100,1MiB", "--weight", "3"), "qos.rules.shared")
	c.has(c.tgtd(cli.ExitFailure, "qos", "create", "shared", "--limit", "7"), "found one, expected none")
	c.has(c.tgtd(cli.ExitUsage, "qos", "create", "other"), "found no settings")
	if got := strings.Join(strings.Fields(ok("qos", "list", "--columns", "rule,initiators,limit,weight,file", "--no-header")), " "); got != "shared group both 100, 1MiB/s 3 the same" {
		t.Errorf("found %q", got)
	}
	c.has(ok("qos", "group", "list"), "both", "iqn.2026-11.test:*")
	c.has(ok("qos", "delete", "shared"), "deleted")
	c.has(ok("qos", "delete", "shared", "--keep", "file"), "Written to")
	if text, err := os.ReadFile(c.file); err != nil || strings.Contains(string(text), "shared") || !strings.Contains(string(text), "both") {
		t.Errorf("found %s, %v", text, err)
	}
	ok("qos", "group", "delete", "both")
}
