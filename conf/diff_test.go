package conf

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const diffFile = `
server: {threads: 2, cpus: 0-3, busy-poll: 0s, limits: {sessions: 5}}
discovery: {auth: h}
cache: {size: 64MiB, segment: none}
qos: {capacity: 100, pool: soft, rules: [{name: r, initiators: ["*"], limit: 5}]}
portal-groups: {p: {listen: ["127.0.0.1:0"]}}
auth-groups:
  h: {chap: [{user: u, secret: "hidden secret 3"}]}
  g: {chap: [{user: u, secret: "hidden secret 1"}], initiators: ["iqn.2026-11.test:*"]}
volumes:
  a: {type: ram, size: 1MiB}
  b: {type: file, path: b, size: 1MiB, cache: {read-ahead: 64KiB}}
targets:
  iqn.2026-11.test:t: {luns: {0: a, 1: b}, auth-group: g}
`

func parsedFile(t *testing.T, replace ...string) *Config {
	t.Helper()
	c, _, err := Parse("file", []byte(strings.NewReplacer(replace...).Replace(diffFile)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDiff: each difference is told by its key, and no secret is.
func TestDiff(t *testing.T) {
	running := parsedFile(t)
	for _, test := range []struct {
		replace []string
		want    []string
	}{
		{nil, nil},
		{[]string{"threads: 2", "threads: 3"}, []string{"server.threads: running with 2, the file has 3"}},
		{[]string{"cpus: 0-3", "cpus: 1-4"}, []string{"server.cpus: running with 0-3, the file has 1-4"}},
		{[]string{"busy-poll: 0s", "nodes: 2"}, []string{"server.busy-poll: running with 0s, the file has 200µs", "server.nodes: running with auto, the file has 2"}},
		{[]string{"sessions: 5", "sessions: 6"}, []string{"server.limits.sessions: running with 5, the file has 6"}},
		{[]string{"discovery: {auth: h}", ""}, []string{`discovery.auth: running with "h", the file has none`}},
		{[]string{"size: 64MiB", "size: 50%"}, []string{"cache.size: running with 64MiB, the file has 50%"}},
		{[]string{"capacity: 100, pool: soft", "capacity: 200, pool: hard"}, []string{"qos.capacity: running with 100, the file has 200", "qos.pool: running with soft, the file has hard"}},
		{[]string{"capacity: 100", "capacities: {b: 7}, capacity: 100"}, []string{"qos.capacities.b: running with nothing, the file has 7"}},
		{[]string{"limit: 5", "limit: 6"}, []string{"qos.rules.r.limit.iops: running with 5, the file has 6"}},
		{[]string{"127.0.0.1:0", "127.0.0.1:3260"}, []string{"portal-groups.p.listen: running with [127.0.0.1:0], the file has [127.0.0.1:3260]"}},
		{[]string{"secret 1", "secret 2"}, []string{"auth-groups.g.chap: differs"}},
		{[]string{"test:*", "test:x*"}, []string{"auth-groups.g.initiators: running with [iqn.2026-11.test:*], the file has [iqn.2026-11.test:x*]"}},
		{[]string{"type: ram, size: 1MiB", "type: ram, size: 2MiB"}, []string{"volumes.a.size: running with 1MiB, the file has 2MiB"}},
		{[]string{"64KiB", "128KiB"}, []string{"volumes.b.cache.read-ahead: running with 64KiB, the file has 128KiB"}},
		{[]string{", cache: {read-ahead: 64KiB}", ", direct: true"}, []string{"volumes.b.cache: running with it, the file has nothing"}},
		{[]string{"  a: {", "  c: {", "0: a", "0: c"}, []string{"volumes.a: running with it, the file has nothing", "volumes.c: running with nothing, the file has it", "targets.iqn.2026-11.test:t.luns: differs"}},
		{[]string{"auth-group: g}", "auth-group: h}"}, []string{`targets.iqn.2026-11.test:t.auth-group: running with "g", the file has "h"`}},
		{[]string{"{luns: {0: a, 1: b}, auth-group: g}", `{access: [{networks: [192.0.2.1], luns: {0: a, 1: b}, auth-group: h}]}`}, []string{"targets.iqn.2026-11.test:t.access: differs"}},
	} {
		var got []string
		for _, d := range Diff(running, parsedFile(t, test.replace...)) {
			got = append(got, d.String())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%q: found\n%q, expected\n%q", test.replace, got, test.want)
		}
		if strings.Contains(fmt.Sprint(got), "hidden") {
			t.Errorf("a secret is shown: %q", got)
		}
	}
}
