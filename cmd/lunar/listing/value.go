package listing

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"lunar/internal/bytesize"
)

// Bytes is a number of bytes.
type Bytes int64

// Share is a part of a whole, from 0 to 1.
type Share float64

// Seconds is a time.
type Seconds float64

// String writes it with three digits.
func (s Seconds) String() string {
	d := time.Duration(s * 1e9)
	for unit := time.Duration(1); unit < 1<<40; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
	return d.Round(time.Second).String()
}

// none is shown for a value that a row does not have.
const none = "-"

// Text writes a value as tables show it.
func Text(v any) string {
	switch v := v.(type) {
	case nil:
		return none
	case string:
		if v == "" {
			return none
		}
		return v
	case []string:
		return Text(strings.Join(v, ", "))
	case Bytes:
		return bytesize.Text(int64(v))
	case Share:
		return strconv.FormatFloat(100*float64(v), 'f', 1, 64) + "%"
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case time.Time:
		return v.Format(time.DateTime)
	}
	return fmt.Sprint(v)
}

// number returns what a value is by; ok is false for words.
func number(v any) (n float64, ok bool) {
	if t, ok := v.(time.Time); ok {
		return float64(t.UnixMilli()), true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Int, reflect.Int64:
		return float64(r.Int()), true
	case reflect.Uint, reflect.Uint16, reflect.Uint64:
		return float64(r.Uint()), true
	case reflect.Float64:
		return r.Float(), true
	}
	return 0, false
}

// compare orders values: what is missing, then numbers by size, then words.
func compare(a, b any) int {
	x, okX := number(a)
	y, okY := number(b)
	switch {
	case okX && okY:
		return cmp.Compare(x, y)
	case okX != okY:
		return cmp.Compare(class(a, okX), class(b, okY))
	}
	return cmp.Compare(strings.ToLower(Text(a)), strings.ToLower(Text(b)))
}

func class(v any, isNumber bool) int {
	switch {
	case Text(v) == none:
		return 0
	case isNumber:
		return 1
	}
	return 2
}

// units are what may follow the number of a condition.
var units = []struct {
	suffix string
	factor float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"B", 1}, {"us", 1e-6}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"%", 0.01}, {"", 1}}

// quantity reads the number of a condition.
func quantity(text string) (float64, bool) {
	for _, u := range units {
		if digits, ok := strings.CutSuffix(text, u.suffix); ok {
			n, err := strconv.ParseFloat(digits, 64)
			return n * u.factor, err == nil
		}
	}
	return 0, false
}

// IsNumber reports whether a value is one, which tables have at the right.
func IsNumber(v any) bool {
	_, ok := number(v)
	return ok
}
