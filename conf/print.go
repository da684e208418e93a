package conf

import (
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml"
)

// Print writes a configuration with all its defaults, as YAML whose keys are
// those of Difference. Secrets are shown as ***, and what a key cannot have is
// left out.
func Print(c *Config) ([]byte, error) {
	return yaml.MarshalWithOptions(printed(reflect.ValueOf(c).Elem()), yaml.UseLiteralStyleIfMultiline(true))
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
		switch value := printedValue(v.Field(i)); {
		case value == nil:
		case len(key) == 0:
			out = append(out, value.(yaml.MapSlice)...)
		default:
			out = append(out, yaml.MapItem{Key: key[0], Value: value})
		}
	}
	return out
}

// printedValue is nil for what is not there.
func printedValue(v reflect.Value) any {
	switch {
	case v.IsZero() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Struct || v.CanUint()):
		return nil
	case v.Kind() == reflect.Uint16:
		return v.Interface()
	case v.Kind() == reflect.Uint64:
		return fmt.Sprintf("%016x", v.Uint())
	case v.Kind() == reflect.Pointer:
		return printedValue(v.Elem())
	case v.Kind() == reflect.Slice && isNamed(v.Type().Elem()):
		return printedObjects(v)
	case v.Kind() == reflect.Slice:
		return printedList(v)
	case v.Kind() == reflect.Struct && !isLeaf(v.Type()):
		return printed(v)
	case v.Kind() == reflect.String && v.Len() == 0:
		return nil
	case v.Kind() == reflect.String:
		return v.String()
	case v.CanInt() && v.Type().PkgPath() == "" || v.Kind() == reflect.Bool:
		return v.Interface()
	}
	return shown(v)
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
