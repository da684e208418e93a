package conf

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

const impactFile = `
portal-groups: {p: {listen: ["127.0.0.1:3260"]}, q: {tag: 2, listen: ["127.0.0.2:3260"]}}
auth-groups:
  g: {chap: [{user: u, secret: "hidden secret 1"}], initiators: ["iqn.2026-11.test:*"]}
  h: {chap: [{user: v, secret: "hidden secret 2"}]}
volumes:
  a: {type: ram, size: 2MiB}
  b: {type: file, path: /b, size: 2MiB}
  c: {type: file, path: /c, size: 2MiB}
targets:
  iqn.2026-11.test:t: {luns: {0: a, 1: b}, auth-group: g}
`

func impactConfig(t *testing.T, replace ...string) *Config {
	t.Helper()
	c, _, err := Parse("file", []byte(strings.NewReplacer(replace...).Replace(impactFile)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestImpacts: what a change destroys, whom it hits, what permits it, and the key that it
// is told by, which is one of Diff's or one above.
func TestImpacts(t *testing.T) {
	used := Facts{Sizes: map[string]int64{"b": 2 << 20}, Uses: []Use{{
		Name: "S", Initiator: "iqn.2026-11.test:me", Target: "iqn.2026-11.test:t",
		Address: netip.MustParseAddr("192.0.2.1"), Portal: netip.MustParseAddrPort("127.0.0.1:3260"),
		LUNs: []LUN{{LUN: 0, Volume: "a"}, {LUN: 1, Volume: "b"}}, Proven: User{"g", "u"},
	}}}
	const leaves = "target iqn.2026-11.test:t does not admit iqn.2026-11.test:me any more as user \"u\" of auth-group g: "
	stopped := Facts{Stopped: true, Sizes: map[string]int64{"b": 3 << 20}}
	dirty := Facts{Dirty: map[string]int64{"a": 1 << 20, "b": 3 << 19, "c": 5 << 20}}
	stuck := Facts{Stuck: map[string]int64{"c": 7}}
	const nothing = "volumes:\n  a: {type: ram, size: 2MiB}\n  b: {type: file, path: /b, size: 2MiB}\n  c: {type: file, path: /c, size: 2MiB}\ntargets:\n  iqn.2026-11.test:t: {luns: {0: a, 1: b}, auth-group: g}\n"
	for name, test := range map[string]struct {
		facts   Facts
		replace []string
		want    []string // severity, ! for one that needs --yes, what
	}{
		"nothing":            {used, nil, nil},
		"grown":              {used, []string{"/b, size: 2MiB", "/b, size: 3MiB"}, nil},
		"shrunk":             {used, []string{"/b, size: 2MiB", "/b, size: 1MiB"}, []string{"destructive b volumes.b.size: it is cut from 2097152 to 1048576 bytes: 1048576 bytes (1MiB) behind the new end are destroyed"}},
		"shrunk in memory":   {used, []string{"ram, size: 2MiB", "ram, size: 1MiB"}, []string{"destructive a volumes.a.size: it is cut from 2097152 to 1048576 bytes"}},
		"size left out":      {used, []string{"/b, size: 2MiB", "/b"}, nil},
		"unused volume":      {used, []string{"  c: {type: file, path: /c, size: 2MiB}\n", ""}, nil},
		"stuck volume":       {stuck, []string{"  c: {type: file, path: /c, size: 2MiB}\n", ""}, []string{"destructive ! volumes.c: it is removed while its file or device does not take 7 bytes"}},
		"dirty volume":       {dirty, []string{"  c: {type: file, path: /c, size: 2MiB}\n", ""}, []string{"disruptive - volumes.c: it is removed once 5MiB of dirty data that the cache has of volume c are written"}},
		"dirty and shrunk":   {dirty, []string{"/b, size: 2MiB", "/b, size: 1MiB"}, []string{"destructive b volumes.b.size: it is cut from 2097152 to 1048576 bytes: 1048576 bytes (1MiB) behind the new end are destroyed; the cache has 1536KiB of dirty data of volume b"}},
		"dirty in memory":    {dirty, []string{"  a: {type: ram, size: 2MiB}\n", "", "0: a, ", ""}, []string{"destructive ! volumes.a: it is removed, and its 2097152 bytes of data with it: they are in memory only; the cache has 1MiB of dirty data of volume a"}},
		"LUN":                {used, []string{", 1: b", ""}, []string{"destructive ! targets.iqn.2026-11.test:t.luns: LUN 1 of target iqn.2026-11.test:t, volume b, is removed; sessions hit: S"}},
		"LUN of another":     {used, []string{", 1: b", ", 1: c"}, []string{"destructive ! targets.iqn.2026-11.test:t.luns: LUN 1 of target iqn.2026-11.test:t becomes volume c, it was b; sessions hit: S"}},
		"LUN read-only":      {used, []string{"{0: a, 1: b}", "[{lun: 0, volume: a}, {lun: 1, volume: b, read-only: true}]"}, []string{"disruptive - targets.iqn.2026-11.test:t.luns: LUN 1 of target iqn.2026-11.test:t becomes read-only; sessions hit: S"}},
		"volume read-only":   {used, []string{"/b,", "/b, read-only: true,"}, []string{"disruptive - volumes.b.read-only: it becomes read-only"}},
		"target":             {used, []string{"test:t", "test:v"}, []string{"destructive ! targets.iqn.2026-11.test:t: it is removed; sessions hit: S"}},
		"portal":             {used, []string{`p: {listen: ["127.0.0.1:3260"]}, `, ""}, []string{"destructive ! portal-groups.p: portal 127.0.0.1:3260 is removed; sessions hit: S"}},
		"unused portal":      {used, []string{`, q: {tag: 2, listen: ["127.0.0.2:3260"]}`, ""}, nil},
		"target off portal":  {used, []string{"auth-group: g}", "auth-group: g, portal-groups: [q]}"}, []string{"destructive ! targets.iqn.2026-11.test:t.portal-groups: it is not served through portal 127.0.0.1:3260 any more; sessions hit: S"}},
		"access":             {used, []string{"iqn.2026-11.test:*", "iqn.2026-11.other:*"}, []string{"destructive ! auth-groups.g: target iqn.2026-11.test:t does not admit iqn.2026-11.test:me any more; sessions hit: S"}},
		"other portal":       {used, []string{`p: {listen: ["127.0.0.1:3260"]}`, `p: {listen: ["127.0.0.1:3261"]}`}, []string{"destructive ! portal-groups.p.listen: portal 127.0.0.1:3260 is removed; sessions hit: S"}},
		"own access":         {used, []string{"{luns: {0: a, 1: b}, auth-group: g}", `{access: [{initiators: ["iqn.other:*"], luns: {0: a, 1: b}}]}`}, []string{"destructive ! targets.iqn.2026-11.test:t.access: target iqn.2026-11.test:t does not admit"}},
		"redirect":           {used, []string{"auth-group: g}", "auth-group: g, redirect: there}"}, []string{"disruptive - targets.iqn.2026-11.test:t.redirect: it sends its initiators elsewhere; sessions hit: S"}},
		"no targets":         {Facts{}, []string{nothing[strings.Index(nothing, "targets:"):], ""}, []string{"destructive ! targets: it has no targets, and would remove all that there are: iqn.2026-11.test:t"}},
		"default":            {stopped, []string{nothing, ""}, []string{"destructive ! volumes: it has no volumes, and would remove all that there are: a, b, c", "destructive ! targets: it has no targets"}},
		"file is larger":     {stopped, nil, []string{"destructive b volumes.b.size: it is cut from 3145728 to 2097152 bytes"}},
		"secret":             {used, []string{"hidden secret 1", "rotated secret"}, nil},
		"user":               {used, []string{"user: u", "user: w"}, []string{"destructive ! auth-groups.g: " + leaves + "auth-group g asks for one of its users; sessions hit: S"}},
		"auth-group":         {used, []string{"auth-group: g", "auth-group: h"}, []string{"destructive ! targets.iqn.2026-11.test:t.auth-group: " + leaves + "auth-group h asks for one of its users; sessions hit: S"}},
		"no authentication":  {used, []string{", auth-group: g", ""}, nil},
		"name of another":    {used, []string{`"hidden secret 2"`, `"hidden secret 2", initiators: ["iqn.2026-11.test:m?"]`}, []string{"destructive ! auth-groups.h.chap: " + leaves + "initiators of another user has the name; sessions hit: S"}},
		"own name":           {used, []string{`"hidden secret 1"`, `"hidden secret 1", initiators: ["iqn.2026-11.test:m?"]`}, nil},
		"other names":        {used, []string{`"hidden secret 1"`, `"hidden secret 1", initiators: ["iqn.2026-11.test:you"]`}, []string{"destructive ! auth-groups.g.chap: " + leaves + "initiators of the user has not the name; sessions hit: S"}},
		"memory at a start":  {stopped, []string{"/b, size: 2MiB", "/b", "ram, size: 2MiB", "ram, size: 1MiB"}, nil},
		"other type":         {Facts{Stopped: true}, []string{"type: ram", `type: "null"`}, []string{"destructive ! volumes.a.type: its type is null, it was ram"}},
		"volume in memory":   {Facts{}, []string{"  a: {type: ram, size: 2MiB}\n", "", "0: a, ", ""}, []string{"destructive ! volumes.a: it is removed, and its 2097152 bytes of data with it"}},
		"logged out already": {Facts{Uses: []Use{{Target: "gone"}}}, nil, nil},
	} {
		from, to := impactConfig(t), impactConfig(t, test.replace...)
		impacts := Impacts(from, to, test.facts)
		var found []string
		for _, i := range impacts {
			of := func(d Difference) bool { return d.Key == i.Key || strings.HasPrefix(d.Key, i.Key+".") }
			if diff := Diff(from, to); diff != nil && !slices.ContainsFunc(diff, of) {
				t.Errorf("%s: found key %s, expected one of %v", name, i.Key, diff)
			}
			needs := i.Shrink
			switch {
			case (&Allowed{}).Permits(&i):
				needs = "-"
			case (&Allowed{Yes: true}).Permits(&i):
				needs = "!"
			case !(&Allowed{Shrink: []string{i.Shrink}}).Permits(&i):
				t.Errorf("%s: nothing permits %v", name, i)
			}
			found = append(found, i.Severity.String()+" "+needs+" "+i.String())
		}
		for i, want := range test.want {
			if i >= len(found) || !strings.HasPrefix(found[i], want) {
				t.Errorf("%s: found %q, expected %q", name, found, test.want)
				break
			}
		}
		if len(found) > len(test.want) {
			t.Errorf("%s: found %q, expected %q", name, found, test.want)
		}
	}
}

// TestEmpty: a file without any key is a file that was cut off.
func TestEmpty(t *testing.T) {
	for _, text := range []string{"", "\n\n", "# volumes: ...\n", "---\n", "null\n", "~\n", "{}\n", "---\n# nothing\n...\n"} {
		if _, _, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), "found an empty file") {
			t.Errorf("%q: found %v, expected that it is empty", text, err)
		}
	}
}

// TestImpactOfDriver: another driver is another disk.
func TestImpactOfDriver(t *testing.T) {
	from := impactConfig(t, "{type: ram, size: 2MiB}", "{type: gotgt, driver: null, size: 2MiB}")
	to := impactConfig(t, "{type: ram, size: 2MiB}", "{type: gotgt, driver: file, path: /a}")
	const want = "volumes.a.driver: its driver is file, it was null: initiators would find another disk"
	if got := Impacts(from, to, Facts{Stopped: true}); len(got) != 1 || got[0].Severity != Destructive || !strings.Contains(got[0].String(), want) {
		t.Errorf("found %v, expected %s", got, want)
	}
}
