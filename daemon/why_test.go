package daemon

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

const whyConfig = `
portal-groups: {a: {listen: ["127.0.0.1:0"], tag: 1}, b: {listen: ["127.0.0.1:0"], tag: 2}}
auth-groups:
  hosts:
    chap:
      - {user: host, secret: "secret of the host", initiators: ["iqn.2026-11.test:host"]}
      - {user: any, secret: "secret of anybody"}
volumes: {one: {type: ram, size: 1MiB}, two: {type: ram, size: 1MiB, read-only: true}}
targets:
  iqn.2026-11.test:open: {auth-group: none, portal-groups: [a], luns: {0: one, 5: two}}
  iqn.2026-11.test:named:
    auth-group: none
    access:
      - {initiators: ["iqn.2026-11.test:db*"], luns: [{lun: 1, volume: one, read-only: true}]}
      - {networks: [192.0.2.0/24], luns: {2: one}}
  iqn.2026-11.test:chap: {auth-group: hosts, luns: {0: one}}
  iqn.2026-11.test:gone: {auth-group: none, luns: {0: one}, moved: "192.0.2.9:3260"}
qos:
  rules: [{name: slow, initiators: ["iqn.2026-11.test:*"], limit: 100}]
`

// TestWhy: what decides a login, told without one.
func TestWhy(t *testing.T) {
	c := &controlled{t: t, dir: t.TempDir()}
	c.file = filepath.Join(c.dir, "tgtd.yaml")
	writeFile(t, c.file, whyConfig)
	c.serving = serve(t, "-c", c.file, "--state-dir", c.dir)

	for _, test := range []struct {
		line   string
		status int
		want   []string
	}{
		{"x:db open", 0, []string{"iqn.2026-11.test:db would be admitted", "rule 1 of 1: everyone", "CHAP       not required", "0    one     read, write  slow", "5    two     read         slow", "It has no session.", "unknown address"}},
		{"x:db open --portal b", 5, []string{"decides    portal group: no target", "told       0201", "portal-groups of the target"}},
		{"x:db other", 5, []string{"decides    target: no target", "told       0201"}},
		{"x:db named", 0, []string{"rule 1 of 2: iqn.2026-11.test:db*", "1    one     read"}},
		{"x:web named", 5, []string{"decides    access rule: no access rule of iqn.2026-11.test:named matches", "give --address"}},
		{"x:web named --address 192.0.2.7", 0, []string{"rule 2 of 2: from 192.0.2.0/24", "2    one     read, write"}},
		{"x:web named --address ::ffff:192.0.2.7", 0, []string{"from       192.0.2.7"}},
		{"x:host chap", 0, []string{"CHAP       required, auth-group hosts", "user hosts/host: would be admitted", `user hosts/any: the initiator name belongs to user "hosts/host"`}},
		{"x:host chap --user any", 5, []string{"decides    owner of the name", "told       0202"}},
		{"x:web chap --user hosts/host", 5, []string{"decides    owner of the name: the initiator name is none of the initiators of user"}},
		{"x:web chap --user nobody", 5, []string{"decides    authentication", "asks for a user of auth group"}},
		{"x:web chap", 0, []string{"user hosts/any: would be admitted", "user hosts/host: the initiator name is none"}},
		{"x:db gone", 5, []string{"decides    redirection: redirected to 192.0.2.9:3260", "told       0102"}},
		{"x:db open --portal z", 1, []string{`portal: found "z"`, "there are a, b"}},
		{"x:db open --address z", 1, []string{`address: found "z", expected an IP address`}},
		{"nonsense open", 5, []string{"decides    initiator name", "told       0200"}},
	} {
		words := strings.Fields(test.line)
		words[0] = strings.Replace(words[0], "x:", "iqn.2026-11.test:", 1)
		words[1] = "iqn.2026-11.test:" + words[1]
		text := c.tgtd(test.status, append([]string{"why"}, words...)...)
		c.has(text, test.want...)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	const name = "iqn.2026-11.test:host"
	if conn, err := initiator.Dial(ctx, c.portal, initiator.Options{Initiator: name, Target: "iqn.2026-11.test:chap", CHAP: &initiator.CHAP{User: "host", Secret: []byte("another secret")}}); err == nil {
		conn.Close()
		t.Fatal("a wrong secret was accepted")
	}
	dial(t, c.portal, initiator.Options{Initiator: name, Target: "iqn.2026-11.test:chap", CHAP: &initiator.CHAP{User: "host", Secret: []byte("secret of the host")}})
	var w control.Why
	eventually.Holds(t, "the failure is remembered", func() bool {
		text := c.tgtd(cli.ExitOK, "why", name, "iqn.2026-11.test:chap", "-o", "json")
		if strings.Contains(text, "secret of the") || strings.Contains(text, "secret of any") || strings.Contains(text, "another secret") {
			t.Fatalf("a secret is shown: %s", text)
		}
		w = control.Why{}
		if err := json.Unmarshal([]byte(text), &w); err != nil {
			t.Fatal(err)
		}
		return len(w.Failures) == 1
	})
	if f := w.Failures[0]; f.User != "host" || f.Target != "iqn.2026-11.test:chap" || f.Portal != c.portal || !strings.Contains(f.Reason, `wrong secret of CHAP user "host"`) {
		t.Errorf("found %+v", f)
	}
	if len(w.Sessions) != 1 || w.Sessions[0].User != "hosts/host" || w.Address != "127.0.0.1" || !w.Admitted {
		t.Errorf("found %+v", w)
	}
}
