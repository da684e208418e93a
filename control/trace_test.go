package control

import (
	"strings"
	"testing"
)

// TestReadTrace: empty lines say nothing, and a trace without a last line was broken off,
// wherever that was.
func TestReadTrace(t *testing.T) {
	const whole = `{"start":{"session":1}}` + "\n\n\n" + `{"pdu":{"cid":7}}` + "\n" + `{"end":{"pdus":1}}` + "\n"
	last := strings.Index(whole, `{"end"`)
	for n := range len(whole) + 1 {
		lines := 0
		err := readTrace(strings.NewReader(whole[:n]), func(*TraceLine) error { lines++; return nil })
		if ended := n >= len(whole)-1; (err == nil) != ended || ended != (lines == 3) {
			t.Fatalf("%q: found %d lines, %v", whole[:n], lines, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "found no last line") || n >= last && lines != 2) {
			t.Fatalf("%q: found %d lines, %v", whole[:n], lines, err)
		}
	}
	if err := readTrace(strings.NewReader("trace"), nil); err == nil || strings.Contains(err.Error(), "last line") {
		t.Errorf("found %v", err)
	}
}
