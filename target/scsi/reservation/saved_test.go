package reservation

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// TestSavedState: what is saved is what is loaded, but for PRGENERATION, which whole ones have.
func TestSavedState(t *testing.T) {
	nexuses := []Nexus{{"a", "t", 1}, {"b", "t", 1}, {"a", "t", 2}}
	rng, s := rand.New(rand.NewPCG(1, 1)), new(State)
	for step := range 2000 {
		r := drawn(rng, s, nexuses)
		r.Persist = true
		if change, refusal := s.Apply(r); refusal == nil {
			s = change.Next
		}
		text, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		got, err := Unmarshal(text)
		if err != nil {
			t.Fatalf("step %d: %v in\n%s", step, err, text)
		}
		if text, err = s.MarshalWhole(); err != nil {
			t.Fatal(err)
		}
		if whole, err := UnmarshalWhole(text); err != nil || fmt.Sprint(*whole) != fmt.Sprint(*s) {
			t.Fatalf("step %d: %+v, %v, expected %+v", step, whole, err, *s)
		}
		want := *s
		want.generation, want.persist = 0, len(s.registrations) > 0
		if fmt.Sprint(*got) != fmt.Sprint(want) {
			t.Fatalf("step %d: %+v, expected %+v", step, *got, want)
		}
	}
}

// TestUnmarshalRefuses what was not saved by Marshal.
func TestUnmarshalRefuses(t *testing.T) {
	const one = `{"initiator":"a","target":"t","port":1,"key":"5"}`
	for text, want := range map[string]string{
		``:                                 "unexpected end",
		`{"version":2,"registrations":[]}`: "version: found 2",
		`{"version":1}`:                    "found damage",
		`{"version":1,"registrations":[{"initiator":"","target":"","port":0,"key":"0"}]}`:                       "a key of zero",
		`{"version":1,"registrations":[` + one + `,` + one + `]}`:                                               "a nexus twice",
		`{"version":1,"type":2,"registrations":[` + one + `]}`:                                                  "type: found 2",
		`{"version":1,"type":99,"registrations":[` + one + `]}`:                                                 "type: found 99",
		`{"version":1,"type":1,"registrations":[` + one + `]}`:                                                  "expected a registered nexus",
		`{"version":1,"type":7,"registrations":[]}`:                                                             "expected a registered nexus",
		`{"version":1,"type":1,"holder":{"initiator":"b","target":"t","port":1},"registrations":[` + one + `]}`: "expected a registered nexus",
	} {
		if s, err := Unmarshal([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v; expected %q", text, s, err, want)
		}
	}
}

// FuzzUnmarshal: whatever is taken can be saved again as it is.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"version":1,"type":7,"registrations":[{"initiator":"a","target":"t","port":1,"key":"5"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Unmarshal(text)
		if err != nil {
			return
		}
		again, err := s.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if other, err := Unmarshal(again); err != nil || !reflect.DeepEqual(s, other) && len(s.registrations) > 0 {
			t.Errorf("%+v, then %+v, %v", s, other, err)
		}
	})
}
