package durable

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// FuzzStrict: what is read is what is written again, and what is refused is told in a
// line that fits a log.
func FuzzStrict(f *testing.F) {
	type inner struct {
		Names []string          `json:"names"`
		By    map[string]*inner `json:"by,omitempty"`
	}
	type value struct {
		inner
		Type int     `json:"type,omitempty"`
		Key  uint64  `json:"key,string"`
		Of   *inner  `json:"of"`
		Rate float64 `json:"rate"`
	}
	for _, text := range []string{
		`{"type":1,"names":["a"],"key":"2","of":{"names":[],"by":{"x":null}},"rate":1.5}`,
		`{"rate":1e400}`, `{"rate":1.0}`, `{"key":"18446744073709551616"}`, `{"type":-0}`, `{"names":["\ud800","\u2028<"]}`,
		`{"type":1,"Type":2}`, `{"of":{"of":{}}}`, `null`, `{}`, strings.Repeat("[", 20000), strings.Repeat(`{"of":`, 20000),
		`{"type":` + strings.Repeat("9", 5000) + `}`, `{"x":"` + strings.Repeat("y", 5000) + `"}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var v, again value
		if err := Strict(text, &v); err != nil {
			if n := len(err.Error()); n > maxMessage {
				t.Fatalf("an error of %d bytes", n)
			}
			return
		}
		written, err := json.Marshal(&v)
		if err != nil {
			t.Fatal(err)
		}
		if err := Strict(written, &again); err != nil || !reflect.DeepEqual(v, again) {
			t.Fatalf("found %+v, %v, expected %+v", again, err, v)
		}
	})
}

// TestStrictStopsEarly: what follows the first thing that is wrong is not taken into memory.
func TestStrictStopsEarly(t *testing.T) {
	const n = 100000
	for _, form := range []string{`{"x":[%s0],"names":[1]}`, `{"names":[1,[%s0]]}`, `{"names":{"a":[%s0]}}`} {
		text := []byte(fmt.Sprintf(form, strings.Repeat("0,", n)))
		allocations := testing.AllocsPerRun(1, func() {
			if Strict(text, &struct {
				Names []int `json:"names"`
			}{}) == nil {
				t.Fatal("found no error")
			}
		})
		if allocations > n/100 {
			t.Errorf("%s: %v allocations", form, allocations)
		}
	}
}
