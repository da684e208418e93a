package conf

import (
	"slices"
	"strings"
	"testing"
)

// TestFreeNames: who goes by initiator names that several may claim is told.
func TestFreeNames(t *testing.T) {
	const file = `
portal-groups: {p: {}}
volumes: {v: {type: ram, size: 1MiB}}
auth-groups:
  one: {chap: [{user: a, secret: "hidden secret 1"}]}
  free: {chap: [{user: a, secret: "hidden secret 2", initiators: ["iqn.2026-11.test:a"]}, {user: b, secret: "hidden secret 3"}]}
  bound: {chap: [{user: a, secret: "hidden secret 4", initiators: ["iqn.2026-11.test:a"]}, {user: b, secret: "hidden secret 5", initiators: ["iqn.2026-11.test:b*"]}]}
  named: {initiators: ["iqn.2026-11.test:*"]}
`
	const rule = "qos: {rules: [{name: all, initiators: [\"*\"], limit: 100}]}\n"
	target := func(text string) string { return "targets: {\"iqn.2026-11.test:t\": {" + text + ", luns: {0: v}}}\n" }
	masked := func(auth string) string {
		return target("access: [{initiators: [\"iqn.2026-11.test:c\"], auth-group: " + auth + "}]")
	}
	const access = "targets.iqn.2026-11.test:t.access[0]"
	for name, test := range map[string]struct{ text, want string }{
		"nobody goes by names":      {target("auth-group: free"), ""},
		"an open target":            {target("auth-group: none"), ""},
		"a list of names":           {masked("free"), "auth-groups.free.chap"},
		"a list without a proof":    {masked("none"), access},
		"a list of a group":         {target("auth-group: named"), access},
		"a rule":                    {rule + target("auth-group: free"), "auth-groups.free.chap"},
		"a rule and no proof":       {rule + target("auth-group: none"), access},
		"one user":                  {masked("one"), ""},
		"users whose the names are": {rule + masked("bound"), ""},
		"a name that needs a proof": {strings.Replace(masked("none"), "test:c", "test:a", 1), access + ".initiators"},
	} {
		_, warnings, err := Parse("file", []byte(file+test.text))
		if err != nil {
			t.Fatal(name, err)
		}
		var keys []string
		for _, w := range warnings {
			if !strings.Contains(w.Found, "nothing uses") {
				keys = append(keys, w.Key)
			}
		}
		if test.want == "" && len(keys) > 0 || test.want != "" && !slices.Contains(keys, test.want) {
			t.Errorf("%s: found warnings of %q, expected %q", name, keys, test.want)
		}
	}
}
