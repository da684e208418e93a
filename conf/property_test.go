package conf

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// choices are values that keys may have, as they are written. A value that begins with a
// dollar sign is an object of that name in objects.
type choices map[string][]string

// objects are mappings of which any keys may be there.
var objects = map[string]choices{
	"server": {
		"threads": {"auto", "1", "64"}, "cpus": {"0", `"0-3,7"`, "1-2"}, "buffers-per-thread": {"4MiB", "5000KiB"},
		"poll": {`"off"`, "adaptive", "always"}, "busy-poll": {"0s", "50us", "1ms"}, "poll-budget": {"1%", "100%"},
		"congestion": {"system", "cubic"},
		"nodes":      {"auto", "1", "4", `["0-1", "2,4"]`}, "metrics": {"127.0.0.1:9260", `"[::1]:1"`}, "metrics-token-file": {"/t", `"/a b#c"`},
		"sandbox": {"enforce", "log", `"off"`}, "core-dumps": {"true", "false"}, "memory-limit": {"auto", `"off"`, "1GiB"},
		"iser": {"$iser"}, "control": {"$control"}, "limits": {"$limits"}, "nop": {"$nop"},
	},
	"control": {
		"read-group": {"r"}, "operate-group": {`"null"`, "o"}, "admin-group": {`"7"`}, "listen": {"127.0.0.1:9261"}, "certificate-file": {"/c"}, "key-file": {"/k"},
		"token-file": {"/t"}, "client-ca-file": {"/a"}, "read-clients": {"[]", "[r]"}, "operate-clients": {`["- o #", p]`}, "admin-clients": {"[]", `["urn:a"]`}, "audit-file": {"/l"}, "page": {"true", "false"},
	},
	"iser": {"immediate-data": {"0B", "1KiB", "8KiB"}, "remote-invalidation": {"true", "false"}},
	"limits": {
		"connections-in-login": {"4", "65536"}, "login-timeout": {"1s", "10m"}, "sessions": {"8", "65535"}, "logins-per-address": {"auto", "2"},
		"logins-per-network": {"auto", "3"}, "sessions-per-address": {"auto", "2"}, "sessions-per-network": {"auto", "3"},
		"known-networks": {"[]", `[192.0.2.77/24, "2001:db8::/32"]`}, "queue-depth": {"1", "4096"}, "error-recovery-level": {"0", "2"},
		"max-connections": {"1", "64"}, "memory-per-session": {"1MiB", "1TiB"},
	},
	"nop":   {"interval": {"0s", "1m30s"}, "timeout": {"1s", "1h"}},
	"log":   {"level": {"debug", "error"}, "format": {"text", "json"}},
	"disco": {"auth": {"none", "g", "h"}, "portals": {"own", "all"}},
	"cache": {
		"size": {"64MiB", "10%", "{per-node: 32MiB}"}, "block-size": {"4KiB", "256KiB"}, "huge": {"auto", `"off"`, "require"}, "segment": {"none", "/dev/shm/x"},
		"checksum": {"true", "false"}, "dirty-limit": {"7%", "20MiB"}, "forward-threshold": {"auto", "never", "64KiB"},
	},
	"qos": {
		"capacity": {"auto", "100"}, "capacities": {"{}", "{f: 7}", `{f: 7, "null": 8}`}, "profile": {"0s", "2s"}, "overcommit": {"true", "false"}, "window": {"5"}, "turn": {"50us"},
		"pool": {"soft", "hard"}, "arbitration": {"equal"}, "cost": {"$cost"}, "network": {"$network"}, "groups": {"{}", `{k: {initiators: ["iqn.2026-11.test:*"]}}`},
		"rules": {"[]", `[{name: "true", group: k, limit: 100}]`, `[{name: b, initiators: ["*"], target: "iqn.2026-11.test:t", lun: 0, group-number: true, reservation: {iops: 5}, class: low}]`,
			`[{name: b, initiators: ["*"], limit: {bandwidth: 2GiB}, weight: 9}, {name: "010", initiators: ["iqn.2026-11.test:x"], limit: 7, burst: 7}]`},
	},
	"network": {
		"dscp": {"{}", "{high: AF31, urgent: 46}"}, "group-numbers": {"{}", `{0: low, "31": urgent}`}, "governor": {"true", "false", "kernel"},
		"delay": {"1ms", "300us"}, "links": {"{}", "{eth0: 25MiB, lo: 1GiB/s}"}, "targets": {"{low: 8ms}"},
	},
	"cost":   {"unit": {"4KiB", "8KiB"}, "write-percent": {"100", "250"}},
	"portal": {"tag": {"7"}, "alua": {"$alua"}, "listen": {`["127.0.0.1:0"]`, `["[::1]", 127.0.0.1]`}, "listen-iser": {`[eth2, "192.0.2.1:99"]`}, "redirect": {"other:99"}},
	"other":  {"tag": {"8"}, "listen": {`["127.0.0.2:1"]`}, "alua": {"$alua"}},
	"alua":   {"state": {"optimized", "standby"}, "preferred": {"true", "false"}, "explicit": {"true", "false"}},
	"auth": {
		"chap":   {`[{user: u, secret: "hidden secret 1"}]`, `[{user: "null", secret: "hidden secret 2", initiators: ["iqn.2026-11.test:a*"]}, {user: u, secret: "hidden secret 3"}]`},
		"mutual": {`{user: "- #", secret: "hidden secret 4"}`}, "algorithms": {"[]", "[sha256, md5]"},
		"initiators": {`["iqn.2026-11.test:b*"]`}, "networks": {"[192.0.2.0/24]"},
	},
	"match": {"initiators": {`["iqn.2026-11.test:b*"]`}, "networks": {"[192.0.2.0/24]"}},
	"file": {
		"path": {"f", "/d/f", `"a b"`}, "size": {"1MiB", "3MiB"}, "block-size": {"512", "4096"}, "direct": {"true", "false"}, "write": {"through", "back", "sync"},
		"read-only": {"true", "false"}, "threads": {"auto", "3"}, "serial": {`"0123"`, `"~"`}, "naa": {`"5e00000000000001"`, `"6024c550000000000000000000000001"`}, "cache": {"true", "false", "$behind"},
		"vendor": {`"null"`}, "product": {`"- x"`}, "revision": {`"1.0"`}, "physical-block-size": {"4096"}, "removable": {"true"}, "sanitize-rate": {"5MiB"}, "soft-threshold": {"1MiB"},
		"protection": {"1", "3"}, "protection-file": {"/p"}, "encryption": {"{key-file: /k}", "{key-file: /k, old-key-file: /o, header-file: /h}"},
	},
	"kept":    {"snapshots": {"{every: 1h, keep: 24}"}},
	"excess":  {"excess-size": {"16MiB", "1GiB"}, "excess-writes": {"auto", "500"}},
	"mirror":  {"members": {"[/a, /b]", "[/a, c]"}, "map": {"/m"}, "held": {"8MiB"}, "window": {"100ms"}, "size": {"1MiB"}, "read-only": {"true"}},
	"ceph":    {"config": {"/c", `"/a b"`}, "user": {"u", `"null"`, "a.b-c"}, "keyring-file": {"/k"}},
	"cluster": {"etcd": {"{mode: embedded}", `{mode: external, endpoints: ["http://192.0.2.1:2379"]}`}, "link": {`{listen: "192.0.2.1:7", ca-file: /a, certificate-file: /c, key-file: /k}`, "{}"}, "lease": {"2s", "1m"}, "suspect": {"200ms"}, "hold": {"9s"}, "lease-cache": {"true", "false"}},
	"owned":   {"failback": {"manual", "auto"}, "write": {"sync"}, "cache": {"true"}},
	"rbd":     {"write": {"through", "back", "sync"}, "cache": {"true", "$behind"}, "read-only": {"true"}, "block-size": {"4096"}, "threads": {"2"}},
	"behind":  {"admission": {"lru", "fussy"}, "min": {"1MiB"}, "max": {"2MiB", "3MiB"}, "read-ahead": {"0B", "64KiB"}, "flush-age": {"1s"}, "dirty-limit": {"2%"}},
	"ram":     {"designators": {`["01020008 0102030405060708", "01060004 00000000"]`}, "serial": {`"a b\0\0"`, `"   x"`}, "size": {"1MiB", "2MiB"}, "block-size": {"4096"}, "threads": {"2"}, "read-only": {"true"}},
	"target": {
		"alias": {`"a: b #c"`, `"~"`}, "portal-groups": {"[p]", "[q, p]"}, "redirect": {`"[2001:db8::1]:3260"`},
		"auth-group": {"g", "m"}, "luns": {"{0: f}", "{0: r, 16383: f}", "[{lun: 1, volume: r, read-only: true}]"},
	},
	"rules": {
		"alias": {"a"}, "portal-groups": {"[q]"}, "moved": {"1.2.3.4"},
		"access": {`[{initiators: ["iqn.2026-11.test:a?*"], networks: [192.0.2.1], luns: {0: r}}, {auth-group: g, luns: {5: r}}]`, "[{luns: {5: f}}]"},
	},
}

const chapOnly = `chap: [{user: u, secret: "hidden secret 5"}]`

// composer writes configurations of objects.
type composer struct{ *rand.Rand }

// object is a mapping of some of the keys, and of those that always are in it.
func (c composer) object(name string, always ...string) string {
	values, often := map[string]string{}, 1+c.IntN(4)
	for _, item := range always {
		key, value, _ := strings.Cut(item, ": ")
		values[key] = value
	}
	for _, key := range slices.Sorted(maps.Keys(objects[name])) {
		if c.IntN(5) >= often {
			continue
		}
		drawn := objects[name][key]
		values[key] = drawn[c.IntN(len(drawn))]
		if inner, ok := strings.CutPrefix(values[key], "$"); ok {
			values[key] = c.object(inner)
		}
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, key+": "+values[key])
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// file is a whole configuration, which may be refused for what does not fit together.
func (c composer) file() string {
	var b strings.Builder
	section := func(often int, format string, args ...any) {
		if c.IntN(5) < often {
			fmt.Fprintf(&b, format+"\n", args...)
		}
	}
	section(3, "server: %s", c.object("server"))
	section(3, "log: %s", c.object("log"))
	section(2, "discovery: %s", c.object("disco"))
	section(4, "cache: %s", c.object("cache", "size: 64MiB"))
	section(3, "qos: %s", c.object("qos"))
	section(5, "portal-groups: {p: %s, q: %s}", c.object("portal", `listen: ["127.0.0.1:0"]`), c.object("other", "tag: 9"))
	section(5, "auth-groups: {g: %s, h: %s, m: %s}", c.object("auth", chapOnly), c.object("auth", chapOnly), c.object("match"))
	section(5, "ceph: {k: %s, \"null\": {}}", c.object("ceph"))
	owned := ""
	if c.IntN(3) == 0 { // not often: in a cluster no portal group has explicit
		fmt.Fprintf(&b, "cluster: %s\n", c.object("cluster", "name: prod", "node: a"))
		owned = "o: " + c.object("owned", "type: rbd", "ceph: k", "image: rbd/o", []string{"owners: [a]", "owners: [b, a]"}[c.IntN(2)]) + ", "
	}
	section(5, "volumes: {"+owned+"i: %s, f: %s, r: %s, m: %s, x: %s, k: %s, \"null\": {type: null, size: 1MiB}}", c.object("rbd", "type: rbd", "ceph: k", "image: rbd/a"), c.object("file", "type: file", "path: f"), c.object("ram", "type: ram", "size: 1MiB"),
		c.object("mirror", "type: mirror", "members: [/a, /b]"), c.object("excess", "type: file", "path: x", "excess: /e"), c.object("kept", "type: file", "path: k"))
	section(4, "targets: {\"iqn.2026-11.test:t\": %s, \"iqn.2026-11.test:u\": %s}", c.object("target", "luns: {0: f}"), c.object("rules", "access: [{luns: {5: r}}]"))
	return b.String()
}

// config is one that is accepted.
func (c composer) config(t *testing.T) (string, *Config) {
	t.Helper()
	var err error
	for range 2000 {
		text := c.file()
		var config *Config
		if config, _, err = Parse("drawn", []byte(text)); err == nil {
			return text, config
		}
	}
	t.Fatalf("nothing of what was drawn is accepted, at last for %v", err)
	return "", nil
}

// TestDrawnConfigurations: whatever is accepted is printed so that it is read to the
// same; Diff tells of all in which two configurations differ and of nothing else, the
// same from either side; and what it tells of, put into one of them, makes the other.
func TestDrawnConfigurations(t *testing.T) {
	c := composer{rand.New(rand.NewPCG(7, 7))}
	fromText, from := c.config(t)
	withoutMayBuffer(unshown(from))
	for range 30 {
		toText, to := c.config(t)
		printed, again := roundTrip(t, to)
		if !reflect.DeepEqual(unshown(to), unshown(again)) {
			t.Fatalf("%s\ndiffers in %q, printed as\n%s", toText, Diff(to, again), printed)
		}
		if found := Diff(to, again); found != nil {
			t.Fatalf("%s\nis told to differ from itself: %q", toText, found)
		}
		withoutMayBuffer(to)
		differ := Diff(from, to)
		if (len(differ) == 0) != reflect.DeepEqual(from, to) {
			t.Fatalf("%s\nand\n%s\ndiffer in %q", fromText, toText, differ)
		}
		expectMirrored(t, differ, Diff(to, from))
		if merged := merge(t, from, to, differ); !reflect.DeepEqual(merged, to) {
			t.Fatalf("they still differ in %q after %q in\n%s\nand\n%s", Diff(merged, to), differ, fromText, toText)
		}
		fromText, from = toText, to
	}
}

// expectMirrored expects the same keys, each once, with values the other way round.
func expectMirrored(t *testing.T, there, back []Difference) {
	t.Helper()
	turned := map[string]Difference{}
	for _, d := range back {
		d.Running, d.File = d.File, d.Running
		turned[d.Key] = d
	}
	if len(turned) != len(there) {
		t.Errorf("found %q there and %q back", there, back)
	}
	for _, d := range there {
		if !reflect.DeepEqual(turned[d.Key], d) {
			t.Errorf("found %q there and %q back", d, turned[d.Key])
		}
	}
}

// merge puts into one configuration, as it is printed, what differs in another, and
// reads the result.
func merge(t *testing.T, from, to *Config, differ []Difference) *Config {
	t.Helper()
	merged, source := tree(t, from), tree(t, to)
	for _, d := range differ {
		if last := len(d.Path) - 1; d.Path[0] == "targets" && (d.Path[last] == "luns" || d.Path[last] == "auth-group") {
			graft(onlyRule(merged, d.Path[1]), onlyRule(source, d.Path[1]), d.Path[last:])
			continue
		}
		graft(merged, source, d.Path)
	}
	unfit(merged, source)
	text, err := yaml.Marshal(untree(merged))
	if err != nil {
		t.Fatal(err)
	}
	_, c, err := parse("merged", text, nil, true)
	if err != nil {
		t.Fatalf("%v\nin\n%s\nwith %q", err, text, differ)
	}
	withoutMayBuffer(c)
	return unshown(c)
}

// onlyRule is the rule as which a target without access is printed.
func onlyRule(tree map[string]any, target string) map[string]any {
	return tree["targets"].(map[string]any)[target].(map[string]any)["access"].([]any)[0].(map[string]any)
}

// withoutMayBuffer forgets whether direct was given: Diff does not tell of that, as it
// changes nothing of a file that is open.
func withoutMayBuffer(c *Config) {
	for i := range c.Volumes {
		c.Volumes[i].MayBuffer = false
	}
}

// tree is what Print writes, with the rules by their names.
func tree(t *testing.T, c *Config) map[string]any {
	t.Helper()
	text, err := Print(c)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	if qos, ok := out["qos"].(map[string]any); ok {
		byName := map[string]any{}
		rules, _ := qos["rules"].([]any)
		for _, r := range rules {
			byName[r.(map[string]any)["name"].(string)] = r
		}
		qos["rules"] = byName
	}
	return out
}

// untree makes the rules a list again.
func untree(tree map[string]any) map[string]any {
	if qos, ok := tree["qos"].(map[string]any); ok {
		byName, _ := qos["rules"].(map[string]any)
		rules := []any{}
		for _, name := range slices.Sorted(maps.Keys(byName)) {
			rules = append(rules, byName[name])
		}
		qos["rules"] = rules
	}
	return tree
}

// unfit takes out keys that Print leaves out where they do not fit (see fitting), though
// their values are the same.
func unfit(merged, source map[string]any) {
	for key, value := range merged {
		inner, ok := value.(map[string]any)
		from, there := source[key]
		switch {
		case ok && there:
			if below, ok := from.(map[string]any); ok {
				unfit(inner, below)
			}
		case !there && (key == "algorithms" || slices.Contains(writeBackKeys, key)):
			delete(merged, key)
		}
	}
}

// graft copies what is at a path, or that nothing is.
func graft(to, from map[string]any, path []string) {
	key := path[0]
	value, there := from[key]
	if len(path) == 1 || !there {
		if delete(to, key); there {
			to[key] = value
		}
		return
	}
	inner, ok := value.(map[string]any)
	if !ok {
		to[key] = value
		return
	}
	below, ok := to[key].(map[string]any)
	if !ok {
		below = map[string]any{}
		to[key] = below
	}
	graft(below, inner, path[1:])
}
