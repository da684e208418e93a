package conf

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
)

// Print writes a configuration with all its defaults, as YAML that Parse reads to the
// same configuration again, but for secrets: each is Withheld, which Draft accepts
// alone.
func Print(c *Config) ([]byte, error) {
	text, err := marshal(settled(printed(reflect.ValueOf(c).Elem()), func(Secret) string { return Withheld }))
	if err == nil && slices.ContainsFunc(c.AuthGroups, func(g AuthGroup) bool { return len(g.CHAP) > 0 || g.Mutual != nil }) {
		text = append(fmt.Appendf(nil, "# Secrets are not shown: %q stands for each, and has to be replaced before this file can be served.\n", Withheld), text...)
	}
	return text, err
}

// PrintFile writes a configuration as a file to be served: with its secrets, and
// without what is as in an empty file.
func PrintFile(c *Config) ([]byte, error) {
	usual := printed(reflect.ValueOf(defaults()).Elem())
	return marshal(settled(unusual(printed(reflect.ValueOf(c).Elem()), usual), Secret.Reveal))
}

func marshal(tree any) ([]byte, error) {
	return yaml.MarshalWithOptions(tree, yaml.UseLiteralStyleIfMultiline(true))
}

// settled has the secrets of what printed has made written somehow, and texts in quotes
// that the YAML library writes without them and does not read so.
func settled(tree any, how func(Secret) string) any {
	switch v := tree.(type) {
	case Secret:
		return settled(how(v), how)
	case string:
		if strings.HasPrefix(v, "?") || strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }) {
			return quoted(v)
		}
	case []any:
		for i := range v {
			v[i] = settled(v[i], how)
		}
	case yaml.MapSlice:
		for i := range v {
			v[i].Value = settled(v[i].Value, how)
		}
	}
	return tree
}

// quoted is a text in double quotes, with escapes for what cannot be seen.
type quoted string

// MarshalYAML implements yaml.BytesMarshaler.
func (q quoted) MarshalYAML() ([]byte, error) {
	b := []byte{'"'}
	for _, r := range strings.ToValidUTF8(string(q), "?") {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r == 0:
			b = append(b, `\0`...)
		case r < ' ' || r == 0x7f:
			b = fmt.Appendf(b, `\x%02x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"'), nil
}

// unusual leaves out what is as in another tree.
func unusual(tree, usual yaml.MapSlice) (out yaml.MapSlice) {
	for _, item := range tree {
		i := slices.IndexFunc(usual, func(u yaml.MapItem) bool { return u.Key == item.Key })
		if i < 0 {
			out = append(out, item)
			continue
		}
		inner, mapping := item.Value.(yaml.MapSlice)
		was, both := usual[i].Value.(yaml.MapSlice)
		switch {
		case reflect.DeepEqual(item.Value, usual[i].Value):
		case mapping && both:
			out = append(out, yaml.MapItem{Key: item.Key, Value: unusual(inner, was)})
		default:
			out = append(out, item)
		}
	}
	return out
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
		return v.Interface()
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
