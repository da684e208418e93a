package conf

import (
	"runtime"
	"strings"
	"testing"
)

const strangersStart = `volumes: {v: {type: "null", size: 1MiB}}
`

// TestWarningsOfStrangers: what lets strangers in is told, until a key says that it is
// meant.
func TestWarningsOfStrangers(t *testing.T) {
	const name = "iqn.2026-11.lunar:a"
	local := "portal-groups: {p: {listen: [127.0.0.1]}}\n"
	two := "portal-groups: {p: {listen: [127.0.0.1]}, q: {tag: 2, listen: [127.0.0.2]}}\n"
	open := "targets: {\"" + name + "\": {luns: {0: v}}}\n"
	chap := "auth-groups:\n  a: {chap: [{user: x, secret: 'the same for both'}]}\n  b: {chap: [{user: y, secret: 'another one of it'}], mutual: {user: z, secret: 'the same for both'}}\n"
	for _, c := range []struct{ name, text, warning string }{
		{"open everywhere", open, "targets." + name + ": found a target on all addresses without authentication"},
		{"open everywhere by a rule", "targets: {\"" + name + "\": {luns: {0: v}, access: [{networks: [192.0.2.0/24]}, {}]}}\n", "auth-group: none"},
		{"said outright", "targets: {\"" + name + "\": {luns: {0: v}, auth-group: none}}\n", ""},
		{"said outright in the rule", "targets: {\"" + name + "\": {luns: {0: v}, access: [{auth-group: none}]}}\n", ""},
		{"for a network", "targets: {\"" + name + "\": {luns: {0: v}, access: [{networks: [192.0.2.0/24]}]}}\n", ""},
		{"at an address", local + open, ""},
		{"on several paths", two + open, "discovery.portals"},
		{"on several paths as meant", two + open + "discovery: {portals: own}\n", ""},
		{"one secret both ways", chap + "targets: {\"" + name + "\": {luns: {0: v}, access: [{auth-group: a, networks: [192.0.2.0/24]}, {auth-group: b}]}}\n", "auth-groups.a.chap[0]: found the secret of mutual of an auth-group"},
	} {
		_, warnings, err := Parse(c.name, []byte(strangersStart+c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var told []string
		for _, w := range warnings {
			told = append(told, w.String())
		}
		if all := strings.Join(told, "\n"); (c.warning == "") != (all == "") || !strings.Contains(all, c.warning) {
			t.Errorf("%s: warned of %q, expected %q", c.name, all, c.warning)
		}
	}
}

// TestNestingIsBounded: 80 KB of brackets took 9.6 GB of memory.
func TestNestingIsBounded(t *testing.T) {
	deep := func(indent, entry string) string {
		var b strings.Builder
		for i := range 100 {
			b.WriteString(strings.Repeat(indent, i) + entry)
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"lists in brackets":    strings.Repeat("[", 80<<10),
		"mappings in brackets": strings.Repeat("{a: ", 20<<10),
		"lists":                strings.Repeat("- ", 40<<10),
		"complex keys":         strings.Repeat("? ", 40<<10),
		"mappings":             deep(" ", "a:\n"),
		"both":                 deep("  ", "- a:\n"),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := Parse(name, []byte(text))
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "more than 32 levels") {
			t.Errorf("%s: %v", name, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 256<<20 {
			t.Errorf("%s: %d MiB were allocated", name, used>>20)
		}
	}
	flat := "server: {cpus: [" + strings.Repeat("0, ", 10) + "1]}\n# " + strings.Repeat("[", 100) + "\n"
	if _, _, err := Parse("flat", []byte(flat)); err != nil && strings.Contains(err.Error(), "levels") {
		t.Errorf("flat text: %v", err)
	}
}
