package conf

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"lunar/conf/edit"
)

// TestMemory: a text of which parts are known means the same as one that is new, has the
// same mistakes and doubts, and at the same places, whatever was parsed before.
func TestMemory(t *testing.T) {
	var m Memory
	random := rand.New(rand.NewPCG(1, 2))
	inParts, lines := 0, []string{}
	try := func(text string) {
		t.Helper()
		d, err := edit.Parse([]byte(text))
		if err != nil {
			return
		}
		want, wantWarnings, wantErr := Parse("f", []byte(text))
		got, warnings, err := m.Parse("f", []byte(text), d.Begins())
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) || fmt.Sprint(warnings) != fmt.Sprint(wantWarnings) {
			t.Fatalf("found %+v, %v, %v\nexpected %+v, %v, %v\nof\n%s", got, warnings, err, want, wantWarnings, wantErr, text)
		}
		root, ok := m.tree(text, d.Begins())
		if !ok {
			return
		}
		inParts++
		in, whole := newDecoder("f", []byte(text)), newDecoder("f", []byte(text))
		in.config(node{ast: root}, defaults())
		in.validate(defaults())
		if root, ok := whole.tree([]byte(text)); ok && !empty(root) {
			whole.config(node{ast: root}, defaults())
			whole.validate(defaults())
		}
		if a, b := unplaced(in.problems), unplaced(whole.problems); !slices.Equal(a, b) {
			t.Fatalf("found %q\nexpected %q\nof\n%s", a, b, text)
		}
	}
	texts := []string{string(DefaultFile), string(bigFile(20)), someObjects}
	files, _ := filepath.Glob("testdata/errors/*.yaml")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		try(text)
		lines = append(lines, strings.Split(text, "\n")...)
	}
	for range 3000 { // lines come, go and change places
		text := strings.Split(texts[random.IntN(len(texts))], "\n")
		for range random.IntN(4) {
			at := random.IntN(len(text))
			switch random.IntN(3) {
			case 0:
				text[at] = lines[random.IntN(len(lines))]
			case 1:
				text = append(text[:at], text[at+1:]...)
			default:
				text = append(text[:at], append([]string{lines[random.IntN(len(lines))]}, text[at:]...)...)
			}
			if len(text) == 0 {
				break
			}
		}
		try(strings.Join(text, "\n"))
	}
	if inParts < 500 {
		t.Errorf("%d texts were parsed in parts, expected most", inParts)
	}
}

// unplaced are problems without their places: the lexer's of a scalar of several lines
// depend on what is in front of it.
func unplaced(all []Problem) (out []string) {
	for _, p := range all {
		out = append(out, p.Plain())
	}
	slices.Sort(out)
	return out
}

const someObjects = `# head
server: {threads: 1}

portal-groups: # at one address
  a: {listen: ["127.0.0.1:0"]}
auth-groups:
  # hosts
  g:
    chap:
      - {user: host, secret: "never to be seen"} # the host
volumes:
  # the first
  disk:
    type: ram
    size: 1MiB # small
  none: {type: null, size: 1MiB}
  nil:
    type: null
    size: 1MiB
targets:
  iqn.2026-11.test:t:
    luns: {0: disk}
  iqn.2026-11.test:u:
    luns:
    - {lun: 0, volume: none}
`

// TestMemoryForgets: what texts do not have any more is not kept for good.
func TestMemoryForgets(t *testing.T) {
	var m Memory
	for i := range 100 {
		text := strings.ReplaceAll(someObjects, "1MiB", fmt.Sprintf("%dMiB", i+1))
		d, err := edit.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := m.Parse("f", []byte(text), d.Begins()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(m.parts); n > 40 {
		t.Errorf("found %d parts", n)
	}
}

// TestMemoryDepth: what is too deep as a whole is too deep in parts.
func TestMemoryDepth(t *testing.T) {
	for depth := maxDepth - 4; depth < maxDepth+3; depth++ {
		text := "volumes:\n  a: " + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "\nlog: {level: info}\n"
		d, err := edit.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		_, _, want := Parse("f", []byte(text))
		var m Memory
		if _, _, err := m.Parse("f", []byte(text), d.Begins()); fmt.Sprint(err) != fmt.Sprint(want) {
			t.Errorf("%d: found %v, expected %v", depth, err, want)
		}
	}
}
