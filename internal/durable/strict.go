package durable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// parse returns JSON as nested map[string]any, []any, json.Number, string, bool and nil.
// A key that is there twice is an error.
func parse(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return parseValue(d)
}

func parseValue(d *json.Decoder) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		return parseObject(d)
	case json.Delim('['):
		return parseArray(d)
	}
	return t, nil
}

func parseObject(d *json.Decoder) (any, error) {
	object := map[string]any{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		name := key.(string) // or Token had failed
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("found key %q twice: %w", name, ErrDamaged)
		}
		if object[name], err = parseValue(d); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return object, err
}

func parseArray(d *json.Decoder) (any, error) {
	array := []any{}
	for d.More() {
		v, err := parseValue(d)
		if err != nil {
			return nil, err
		}
		array = append(array, v)
	}
	_, err := d.Token()
	return array, err
}

// contained reports whether all that is in a value is in another one too: objects may have
// further keys there, on every level.
func contained(a, in any) bool {
	switch a := a.(type) {
	case map[string]any:
		in, ok := in.(map[string]any)
		for key, v := range a {
			other, there := in[key]
			ok = ok && there && contained(v, other)
		}
		return ok
	case []any:
		in, ok := in.([]any)
		return ok && slices.EqualFunc(a, in, contained)
	}
	return a == in
}
