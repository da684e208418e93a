package server

import (
	"reflect"
	"strings"

	"lunar/control"
)

// rowsOf makes a metric of each field of T that has the tag metric, which is the name
// behind the prefix; doc is its help. So one row, the field, is what the status, the
// metrics, the description of the API and docs/metrics.md tell of a statistic. each calls
// back with every T there is and its labels.
func rowsOf[T any](prefix string, labels []string, each func(s *control.Status, yield func(of *T, labels ...string))) (rows []metric) {
	for i := range reflect.TypeFor[T]().NumField() {
		field := reflect.TypeFor[T]().Field(i)
		name, ok := field.Tag.Lookup("metric")
		if !ok {
			continue
		}
		m := metric{name: prefix + name, unit: unitOf(name), help: field.Tag.Get("doc"), kind: gauge, labels: labels}
		if strings.HasSuffix(name, "_total") {
			m.kind = counter
		}
		m.each = func(s *control.Status, emit emitter) {
			each(s, func(of *T, labels ...string) {
				if v := reflect.Indirect(reflect.ValueOf(of).Elem().Field(i)); v.IsValid() {
					emit(number(v), labels...)
				}
			})
		}
		rows = append(rows, m)
	}
	return rows
}

// unitOf is what Prometheus' conventions have a name end in.
func unitOf(name string) string {
	name = strings.TrimSuffix(name, "_total")
	for _, u := range [][2]string{{"bytes", "bytes"}, {"seconds", "s"}, {"blocks", "blocks"}, {"tokens", "tokens"}, {"tokens_per_second", "tokens/s"}} {
		if name == u[0] || strings.HasSuffix(name, "_"+u[0]) {
			return u[1]
		}
	}
	return ""
}

// number is the value of a statistic; true is 1.
func number(v reflect.Value) float64 {
	switch {
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	case v.CanFloat():
		return v.Float()
	}
	return truth(v.Bool())
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
