package conf

import (
	"strings"
	"testing"
)

// TestBetween: what can change while the server runs, and what cannot.
func TestBetween(t *testing.T) {
	running := parsedFile(t)
	for _, test := range []struct {
		replace       []string
		live, restart string
	}{
		{nil, "", ""},
		{[]string{"threads: 2", "threads: 3"}, "", "server.threads"},
		{[]string{"threads: 2", "threads: 2, poll: off, congestion: reno, metrics: \"127.0.0.1:1\""},
			`server.poll: "off", was "adaptive" server.congestion: "reno", was "auto" server.metrics: 127.0.0.1:1, was none`, ""},
		{[]string{"sessions: 5", "sessions: 6"}, "server.limits.sessions: 6, was 5", ""},
		{[]string{"127.0.0.1:0", "127.0.0.1:3260"}, "portal-groups.p.listen: [127.0.0.1:3260], was [127.0.0.1:0]", ""},
		{[]string{"127.0.0.1:0\"]", "127.0.0.1:0\"], listen-iser: [eth2]"}, "portal-groups.p.listen-iser: [eth2:3260], was []", ""},
		{[]string{"secret 1", "secret 2"}, "auth-groups.g.chap: changed", ""},
		{[]string{"type: ram, size: 1MiB", "type: ram, size: 2MiB"}, "volumes.a.size: 2MiB, was 1MiB", ""},
		{[]string{"type: ram, size: 1MiB", "type: \"null\", size: 1MiB"}, "", "volumes.a.type"},
		{[]string{"path: b, size: 1MiB", "path: b, size: 2MiB"}, "volumes.b.size: 2MiB, was 1MiB", ""},
		{[]string{"path: b,", "path: c,"}, "", "volumes.b.path"},
		{[]string{"path: b,", "path: b, direct: false,"}, "volumes.b.direct: false, was true", ""},
		{[]string{"read-ahead: 64KiB", "read-ahead: 128KiB, admission: fussy"}, `volumes.b.cache.admission: "fussy", was "lru" volumes.b.cache.read-ahead: 128KiB, was 64KiB`, ""},
		{[]string{", cache: {read-ahead: 64KiB}", ""}, "volumes.b.direct: false, was true volumes.b.cache: removed", ""},
		{[]string{"path: b,", "path: b, physical-block-size: 4096, block-size: 4096,"}, "volumes.b.physical-block-size: 4096, was none", "volumes.b.block-size"},
		{[]string{"127.0.0.1:0\"]", "127.0.0.1:0\"], alua: {explicit: true}"}, "portal-groups.p.alua.explicit: true, was false", ""},
		{[]string{"  a: {", "  c.d: {", "0: a", "0: c.d"}, "volumes.a: removed volumes.c.d: new targets.iqn.2026-11.test:t.luns: changed", ""},
		{[]string{"limit: 5", "limit: 6"}, "qos.rules.r.limit.iops: 6, was 5", ""},
		{[]string{"capacity: 100", "capacity: 200", "limit: 5", "limit: 6"}, "qos.rules.r.limit.iops: 6, was 5", "qos.capacity"},
		{[]string{"auth-group: g}", "auth-group: g, redirect: there}"}, `targets.iqn.2026-11.test:t.redirect: "there:3260", was ""`, ""},
	} {
		var live, restart []string
		p := Between(running, parsedFile(t, test.replace...))
		for _, d := range p.Live {
			live = append(live, d.Change())
		}
		for _, d := range p.Restart {
			restart = append(restart, d.Key)
		}
		if got := strings.Join(live, " "); got != test.live {
			t.Errorf("%q: found %q while it runs, expected %q", test.replace, got, test.live)
		}
		if got := strings.Join(restart, " "); got != test.restart {
			t.Errorf("%q: found %q after a restart, expected %q", test.replace, got, test.restart)
		}
	}
}

// TestParseRedirect: addresses and names, with the port of iSCSI where none is
// given.
func TestParseRedirect(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1": "192.0.2.1:3260", "192.0.2.1:1": "192.0.2.1:1", "2001:db8::1": "[2001:db8::1]:3260", "[2001:db8::1]:5": "[2001:db8::1]:5",
		"a.example": "a.example:3260", "a-1.example:99": "a-1.example:99",
		"": "", "a b": "", "a:b": "", "a:0": "", "0.0.0.0": "", ":1": "", "fe80::1%eth0": "", "a:1,1": "", "192.0.2.1:99999": "",
	} {
		if got, ok := ParseRedirect(text); ok != (want != "") || ok && got != want {
			t.Errorf("%q: found %q, %t, expected %q", text, got, ok, want)
		}
	}
	_, _, err := Parse("file", []byte(strings.Replace(diffFile, "auth-group: g}", "auth-group: g, redirect: a, moved: b}", 1)))
	if err == nil || !strings.Contains(err.Error(), "moved and redirect") {
		t.Errorf("found %v, expected that one of both is too much", err)
	}
}

// TestPrint: everything is told, by the keys of a file, but no secret.
func TestPrint(t *testing.T) {
	text, err := Print(parsedFile(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"memory-per-session: 16MiB", "read-ahead: 64KiB", `secret: "*** not shown ***"`, "iqn.2026-11.test:t:", "auth: h"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("found no %q in\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "hidden") {
		t.Errorf("found a secret in\n%s", text)
	}
}

// TestFollow: the segment that a server has stays where a file leaves it open.
func TestFollow(t *testing.T) {
	const back = "b: {type: file, path: b, size: 1MiB, write: back, cache: {read-ahead: 64KiB}}"
	running := parsedFile(t, ", segment: none", "", "b: {type: file, path: b, size: 1MiB, cache: {read-ahead: 64KiB}}", back)
	for _, test := range []struct {
		replace []string
		restart string
	}{
		{[]string{", segment: none", ""}, ""},
		{nil, "cache.segment"},
		{[]string{"segment: none", "segment: /dev/shm/other"}, "cache.segment"},
	} {
		file := parsedFile(t, test.replace...)
		file.Follow(running)
		var restart []string
		for _, d := range Between(running, file).Restart {
			restart = append(restart, d.Key)
		}
		if got := strings.Join(restart, " "); got != test.restart {
			t.Errorf("%q: found that %q need a restart, expected %q", test.replace, got, test.restart)
		}
	}
}
