package edit

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"
)

// texts are scalars with what YAML could take for something else.
var texts = rapid.OneOf(
	rapid.SampledFrom([]string{"null", "~", "true", "1", "0x10", "010", "1e3", "a: b", "- a", "#x", "a #b", "'", `"`, `\`, "{", "]", "&a", "*a", "!t", "%", "@", "`", "é", "\u2028", "\U0001F600", "a\nb", "\t", " a ", "[::1]:3260", "iqn.2026-11.example:x", "=", "<<", "---", "...", "? a", "|", ">"}),
	rapid.StringN(1, 12, 40),
)

// trees are those of something like a configuration.
func trees(t *rapid.T) Object {
	out := Object{}
	for _, section := range []string{"volumes", "auth-groups"} {
		if n := rapid.IntRange(0, 3).Draw(t, section); n > 0 {
			objects := Object{}
			for range n {
				objects[rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")] = object(t)
			}
			out[section] = objects
		}
	}
	if rapid.Bool().Draw(t, "targets") {
		out["targets"] = Object{"iqn.2026-11.example:t": Object{"alias": texts.Draw(t, "alias"), "luns": list(t, "lun", "0", "1", "2", "7")}}
	}
	if rapid.Bool().Draw(t, "qos") {
		out["qos"] = Object{"rules": list(t, "name", "gold", "silver", "x")}
	}
	out["log"] = Object{"level": texts.Draw(t, "level")}
	return out
}

func object(t *rapid.T) Object {
	out := Object{"type": "file"}
	for _, key := range []string{"path", "size"} {
		if rapid.Bool().Draw(t, key) {
			out[key] = texts.Draw(t, key)
		}
	}
	if rapid.Bool().Draw(t, "cache") {
		out["cache"] = Object{"admission": texts.Draw(t, "admission"), "min": "1MiB"}
	}
	if rapid.Bool().Draw(t, "networks") {
		networks := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "networks") {
			networks = append(networks, texts.Draw(t, "network"))
		}
		out["networks"] = networks
	}
	return out
}

func list(t *rapid.T, key string, names ...string) []any {
	out := []any{}
	for _, name := range names {
		if rapid.Bool().Draw(t, name) {
			e := Object{key: plainValue(name), "volume": texts.Draw(t, "volume")}
			out = append(out, e)
		}
	}
	return out
}

// written is a text with a comment at every line, in braces or in lines as it comes.
func written(t *rapid.T, tree Object, newline string) string {
	var b strings.Builder
	number := 0
	comment := func() string {
		number++
		switch rapid.IntRange(0, 3).Draw(t, "comment") {
		case 0:
			return fmt.Sprintf(" # comment %d.%s", number, newline)
		case 1:
			return newline + newline
		}
		return newline
	}
	above := func(indent int) {
		number++
		if rapid.IntRange(0, 2).Draw(t, "above") == 0 {
			fmt.Fprintf(&b, "%s# comment %d.%s", strings.Repeat(" ", indent), number, newline)
		}
	}
	var value func(v any, indent int)
	value = func(v any, indent int) {
		braces := isFlat(v) && rapid.Bool().Draw(t, "braces")
		switch v := v.(type) {
		case Object:
			if len(v) == 0 || braces {
				break
			}
			b.WriteString(comment())
			for _, k := range inOrder(keysOf(v)) {
				above(indent)
				b.WriteString(strings.Repeat(" ", indent) + word(k, false) + ":")
				value(v[k], indent+2)
			}
			return
		case []any:
			if len(v) == 0 || braces {
				break
			}
			b.WriteString(comment())
			for _, e := range v {
				above(indent)
				b.WriteString(strings.Repeat(" ", indent) + "- " + flow(e) + comment())
			}
			return
		}
		b.WriteString(" " + flow(v) + comment())
	}
	value(tree, 0)
	return b.String()
}

func comments(text string) map[string]bool {
	out := map[string]bool{}
	for _, line := range strings.Split(text, "\n") {
		if i := strings.Index(line, "# comment "); i >= 0 {
			out[strings.TrimSpace(line[i:])] = true
		}
	}
	return out
}

// TestAnyChange: the text says afterwards what it is to say, to the library's own
// parser, too; once more changes nothing; and what is added alone loses no comment.
func TestAnyChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := trees(t), trees(t)
		text := written(t, from, rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "newline"))
		d, err := Parse([]byte(text))
		if err != nil {
			t.Fatalf("%v of\n%s", err, text)
		}
		if !Same(d.Tree(), from) {
			t.Fatalf("found %v, expected %v, of\n%s", d.Tree(), from, text)
		}
		out, err := d.Become(to)
		if err != nil {
			t.Fatalf("%v: %v to %v, of\n%s", err, from, to, text)
		}
		var read any
		if err := yaml.Unmarshal(out.Text(), &read); err != nil {
			t.Fatalf("%v of\n%s", err, out.Text())
		}
		whole, err := Parse(out.Text())
		if err != nil || !reflect.DeepEqual(whole, out) {
			t.Fatalf("what was read where it changed is other than what the whole text says: %v, found\n%+v\nexpected\n%+v\nof\n%s", err, out, whole, out.Text())
		}
		again, err := out.Become(to)
		if err != nil || string(again.Text()) != string(out.Text()) {
			t.Fatalf("found %v and\n%s\nof\n%s", err, again.Text(), out.Text())
		}
	})
}

// TestCommentsStay: whatever is done to one object, the comments of the others stay.
func TestCommentsStay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := trees(t)
		text := written(t, from, "\n")
		d, err := Parse([]byte(text))
		if err != nil {
			t.Fatalf("%v of\n%s", err, text)
		}
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
		var want Object
		if rapid.Bool().Draw(t, "remove") {
			want, err = Remove(d.Tree(), "volumes", name)
		} else {
			want, err = Set(d.Tree(), object(t), "volumes", name)
		}
		if err != nil {
			t.Fatal(err)
		}
		out, err := d.Become(want)
		if err != nil {
			t.Fatalf("%v of\n%s", err, text)
		}
		touched := ""
		if volumes, _ := d.root.named("volumes"); volumes != nil {
			if e, i := volumes.value.named(name); e != nil {
				s := &splicer{Document: d}
				end := e.value.end
				if !volumes.value.flow {
					end = s.extent(volumes.value.entries[i])
				}
				touched = d.text[e.start:end]
			}
		}
		inside, after := comments(touched), comments(string(out.Text()))
		for c := range comments(text) {
			if !after[c] && !inside[c] {
				t.Fatalf("lost %q: of\n%s\ncame\n%s", c, text, out.Text())
			}
		}
	})
}

func (n *node) named(key string) (*entry, int) {
	for i, e := range n.entries {
		if e.key == key {
			return e, i
		}
	}
	return nil, -1
}
