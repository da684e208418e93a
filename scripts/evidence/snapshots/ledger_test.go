package main

import (
	"strings"
	"testing"
)

// TestLedger: it finds what is lost, what comes too early, what is torn, and an image that is
// of no one moment.
func TestLedger(t *testing.T) {
	l := newLedger(2)
	first := l.begins(0)
	l.acknowledged(0)
	asked := l.tick()
	second := l.begins(1)
	l.acknowledged(1)
	third := l.begins(0) // under way
	there := l.tick()
	late := l.begins(1)
	image := func(a, b uint64) []byte {
		part := func(block int, n uint64) []byte {
			if n == 0 {
				return make([]byte, blockSize)
			}
			return content(block, n)
		}
		return append(part(0, a), part(1, b)...)
	}
	torn := image(first, second)
	copy(torn[blockSize-16:], content(0, third))
	for name, test := range map[string]struct {
		image []byte
		want  string
	}{
		"before the second":      {image(first, 0), ""},
		"after the second":       {image(first, second), ""},
		"with what is under way": {image(third, second), ""},
		"lost":                   {image(0, 0), "acknowledged before"},
		"later without earlier":  {image(third, 0), "acknowledged before"},
		"too early":              {image(first, late), "began after"},
		"of nobody":              {image(second, second), "nobody made"},
		"torn":                   {torn, "not of one write"},
		"short":                  {torn[:0], "found 0 blocks"},
		"of another block":       {append(content(1, first), content(1, second)...), "not of one write"},
	} {
		fresh := &ledger{now: l.now, blocks: append([]history(nil), l.blocks...)}
		err := fresh.judge(test.image, asked, there)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: found %v, expected %q", name, err, test.want)
		}
	}
	if err := l.judge(image(third, second), asked, there); err != nil {
		t.Fatal(err)
	}
	if err := l.judge(image(first, second), asked, l.tick()); err == nil || !strings.Contains(err.Error(), "an earlier image had") {
		t.Errorf("found %v, expected that it goes back in time", err)
	}
	if err := l.again(image(first, 0)); err != nil {
		t.Fatal(err)
	}
	if err := l.judge(image(first, 0), l.tick(), l.tick()); err != nil {
		t.Errorf("after a rollback: %v", err)
	}
}
