package edit

import (
	"os"
	"strings"
	"testing"
)

const before = `# head
volumes:
  # the first
  disk:
    type: file   # a file
    path: "disk.img"
    # size: 2GiB
    size: 1GiB # big

  scratch: {type: ram, size: 16MiB} # memory
  # fast:
  #   type: block
auth-groups:
  hosts:
    chap:
      - user: host1 # one
        secret: "secret of host 1"
      - {user: host2, secret: "secret of host 2"} # two
targets:
  iqn.2026-11.example:t:
    luns: {0: disk, 1: scratch} # short
  iqn.2026-11.example:u:
    luns: # block
      # first
      0: disk # zero
      1: scratch
qos:
  rules:
    - limit: 100
      # named
      name: gold
      initiators:
        - iqn.a:* # a
        - iqn.b:*
`

// TestBecome: what is touched is written anew, and everything else stays.
func TestBecome(t *testing.T) {
	set := func(value any, path ...string) func(Object) (Object, error) {
		return func(tree Object) (Object, error) { return Set(tree, value, path...) }
	}
	merge := func(value any, path ...string) func(Object) (Object, error) {
		return func(tree Object) (Object, error) { return Merge(tree, value, path...) }
	}
	remove := func(path ...string) func(Object) (Object, error) {
		return func(tree Object) (Object, error) { return Remove(tree, path...) }
	}
	for _, c := range []struct {
		name     string
		edit     func(Object) (Object, error)
		old, new string
	}{
		{"a value", merge(Object{"size": "2GiB"}, "volumes", "disk"), "size: 1GiB # big", "size: 2GiB # big"},
		{"a new key", merge(Object{"write": "sync"}, "volumes", "disk"), "    size: 1GiB # big\n", "    size: 1GiB # big\n    write: sync\n"},
		{"a key less", merge(Object{"type": nil}, "volumes", "disk"), "    type: file   # a file\n", ""},
		{"in braces", merge(Object{"size": nil, "threads": 2.0}, "volumes", "scratch"), "{type: ram, size: 16MiB}", "{type: ram, threads: 2}"},
		{"a mapping", merge(Object{"cache": Object{"admission": "fussy"}}, "volumes", "disk"), "# big\n", "# big\n    cache: {admission: fussy}\n"},
		{"a new volume", set(Object{"size": "1MiB", "type": "null"}, "volumes", "new"), "# memory\n", "# memory\n  new:\n    type: \"null\"\n    size: 1MiB\n"},
		{"a volume less", remove("volumes", "disk"), "  disk:\n    type: file   # a file\n    path: \"disk.img\"\n    # size: 2GiB\n    size: 1GiB # big\n", ""},
		{"a new section", set(Object{"level": "debug"}, "log"), "        - iqn.b:*\n", "        - iqn.b:*\nlog:\n  level: debug\n"},
		{"a user", set(Object{"secret": "secret of host 3"}, "auth-groups", "hosts", "chap", "host3"), "# two\n", "# two\n      - {user: host3, secret: \"secret of host 3\"}\n"},
		{"a user less", remove("auth-groups", "hosts", "chap", "host1"), "      - user: host1 # one\n        secret: \"secret of host 1\"\n", ""},
		{"a LUN", set(Object{"volume": "disk", "read-only": true}, "targets", "iqn.2026-11.example:t", "luns", "2"),
			"{0: disk, 1: scratch}", "[{lun: 0, volume: disk}, {lun: 1, volume: scratch}, {lun: 2, volume: disk, read-only: true}]"},
		{"a LUN in lines", set(Object{"volume": "disk"}, "targets", "iqn.2026-11.example:u", "luns", "2"),
			"      0: disk # zero\n      1: scratch\n", "      - {lun: 0, volume: disk} # zero\n      - {lun: 1, volume: scratch}\n      - {lun: 2, volume: disk}\n"},
		{"a LUN less", remove("targets", "iqn.2026-11.example:t", "luns", "1"), "{0: disk, 1: scratch}", "[{lun: 0, volume: disk}]"},
		{"the first key of a rule", merge(Object{"limit": nil}, "qos", "rules", "gold"), "- limit: 100\n", "- \n"},
		{"an initiator", merge(Object{"initiators": []any{"iqn.a:*", "iqn.c"}}, "qos", "rules", "gold"), "        - iqn.b:*\n", "        - iqn.c\n"},
		{"all rules", remove("qos", "rules"), before[strings.Index(before, "  rules:"):], ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if n := strings.Count(before, c.old); n != 1 {
				t.Fatalf("found %q %d times", c.old, n)
			}
			d, err := Parse([]byte(before))
			if err != nil {
				t.Fatal(err)
			}
			want, err := c.edit(d.Tree())
			if err != nil {
				t.Fatal(err)
			}
			out, err := d.Become(want)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(out.Text()), strings.Replace(before, c.old, c.new, 1); got != want {
				t.Errorf("found\n%s\nexpected\n%s", got, want)
			}
		})
	}
}

// TestUnfit: what concerns more than one place is for people.
func TestUnfit(t *testing.T) {
	for text, what := range map[string]string{
		"a: &x {b: 1}\nc: *x\n": "anchor", "a: !!str 1\n": "tag", "? a\n: 1\n": "question mark",
		"a: 1\n---\nb: 2\n": "second YAML document", "- a\n": "no mapping", "a: [1, 2\n": "YAML",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%q: found %v, expected %q", text, err, what)
		}
	}
}

// TestDefaultFile: the commented default can be changed.
func TestDefaultFile(t *testing.T) {
	text, err := os.ReadFile("../tgtd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Set(d.Tree(), Object{"type": "ram", "size": "1MiB"}, "volumes", "ram")
	if err != nil {
		t.Fatal(err)
	}
	out, err := d.Become(want)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Remove(out.Tree(), "volumes", "ram")
	if err != nil {
		t.Fatal(err)
	}
	again, err := out.Become(back)
	if err != nil || string(again.Text()) != string(text) {
		t.Errorf("found %v and\n%s", err, again.Text())
	}
}

// TestComments: comments are replaced, and nothing that looks like one.
func TestComments(t *testing.T) {
	const text = "\xef\xbb\xbf# één\r\na: 'x # y' # b\r\nc: # d\r\n  - \"é # z\" # ö\r\n  - |\r\n    # no comment\r\n  - e#f\r\n#g"
	d, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := string(d.Comments(func(c string) string { return "#" + strings.TrimPrefix(c, "#") + "!" }))
	if want := strings.NewReplacer("één", "één!", "# b", "# b!", "# d", "# d!", "# ö", "# ö!", "#g", "#g!").Replace(text); out != want {
		t.Errorf("found %q, expected %q", out, want)
	}
}

// TestDeep: what no configuration has is refused before a text is made of it, which would
// take gigabytes.
func TestDeep(t *testing.T) {
	d, err := Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, wrap := range []func(any) any{
		func(v any) any { return Object{"a": v} },
		func(v any) any { return []any{v} },
	} {
		var v any = "x"
		for range maxDepth + 1 {
			v = wrap(v)
		}
		if _, err := d.Become(Object{"a": v}); err == nil || !strings.Contains(err.Error(), "deep") {
			t.Errorf("found %v", err)
		}
	}
}
