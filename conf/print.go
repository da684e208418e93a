package conf

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/goccy/go-yaml"
)

// Print writes a configuration with all its defaults, as YAML that Parse reads to the
// same configuration again, but for secrets: each is Withheld, which Draft accepts
// alone.
func Print(c *Config) ([]byte, error) {
	text, err := yaml.MarshalWithOptions(printed(reflect.ValueOf(c).Elem()), yaml.UseLiteralStyleIfMultiline(true))
	if err == nil && slices.ContainsFunc(c.AuthGroups, func(g AuthGroup) bool { return len(g.CHAP) > 0 || g.Mutual != nil }) {
		text = append(fmt.Appendf(nil, "# Secrets are not shown: %q stands for each, and has to be replaced before this file can be served.\n", Withheld), text...)
	}
	return text, err
}

// printed makes a struct a mapping.
func printed(v reflect.Value) yaml.MapSlice {
	out := yaml.MapSlice{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if keysOf[f.Name] == noKey || f.Name == "Name" && isNamed(v.Type()) {
			continue
		}
		key := keyOf(nil, v.Type(), f)
		switch value := printedField(v, f); {
		case value == nil:
		case len(key) == 0:
			out = append(out, value.(yaml.MapSlice)...)
		default:
			out = append(out, yaml.MapItem{Key: key[0], Value: value})
		}
	}
	if fit, some := fitting[v.Type()]; some {
		out = fit(v, out)
	}
	return out
}

func printedField(in reflect.Value, f reflect.StructField) any {
	v := in.FieldByIndex(f.Index)
	if write := formOf(in.Type(), f); write != nil {
		return write(in, v)
	}
	if in.Type() == reflect.TypeFor[QoS]() && f.Name == "Rules" {
		return printedRules(v)
	}
	return printedValue(v)
}

// printedValue is nil for what is not there.
func printedValue(v reflect.Value) any {
	switch {
	case v.Type() == reflect.TypeFor[Secret]():
		return Withheld
	case v.Kind() == reflect.Pointer && v.IsNil() || v.Kind() == reflect.String && v.Len() == 0:
		return nil
	case v.Kind() == reflect.Pointer:
		return printedValue(v.Elem())
	case v.Kind() == reflect.Slice && isNamed(v.Type().Elem()):
		return printedObjects(v)
	case v.Kind() == reflect.Slice:
		return printedList(v)
	case v.Kind() == reflect.Map:
		return printedMap(v)
	case v.Kind() == reflect.Struct && !isLeaf(v.Type()):
		if fields := printed(v); len(fields) > 0 {
			return fields
		}
		return nil
	case v.Kind() == reflect.String:
		return v.String()
	}
	return plain(v)
}

func printedObjects(v reflect.Value) any {
	if v.Len() == 0 {
		return nil
	}
	objects := yaml.MapSlice{}
	for i := range v.Len() {
		objects = append(objects, yaml.MapItem{Key: nameOf(v.Index(i)), Value: printed(v.Index(i))})
	}
	return objects
}

// printedRules is a list whose elements say their names themselves.
func printedRules(v reflect.Value) any {
	var rules []any
	for i := range v.Len() {
		rules = append(rules, append(yaml.MapSlice{{Key: "name", Value: nameOf(v.Index(i))}}, printed(v.Index(i))...))
	}
	if rules == nil {
		return nil
	}
	return rules
}

func printedMap(v reflect.Value) any {
	values, out := map[string]any{}, yaml.MapSlice{}
	for _, k := range v.MapKeys() {
		values[k.String()] = printedValue(v.MapIndex(k))
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out = append(out, yaml.MapItem{Key: name, Value: values[name]})
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func printedList(v reflect.Value) any {
	if v.Len() == 0 {
		return nil
	}
	list := []any{}
	for i := range v.Len() {
		list = append(list, printedValue(v.Index(i)))
	}
	return list
}
