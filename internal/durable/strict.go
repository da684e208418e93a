package durable

import (
	"bytes"
	"encoding/json"
)

func decoder(text []byte) *json.Decoder {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d
}

// contained reports whether all that is in the next value of d is in another one too:
// objects may have further keys there, on every level. It stops at the first thing that
// is not, so that no more of a text than that is in memory, and empties in.
func contained(d *json.Decoder, in any) bool {
	t, err := d.Token()
	if err != nil {
		return false
	}
	switch t {
	case json.Delim('{'):
		in, ok := in.(map[string]any)
		return ok && keysContained(d, in)
	case json.Delim('['):
		in, ok := in.([]any)
		return ok && elementsContained(d, in)
	}
	return t == in
}

// keysContained takes each key out of the object, so that it is not found twice. An object
// that has none of its keys is no version's.
func keysContained(d *json.Decoder, in map[string]any) bool {
	known := len(in)
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return false
		}
		name := key.(string) // or Token had failed
		v, there := in[name]
		delete(in, name)
		if !there || !contained(d, v) {
			return false
		}
	}
	_, err := d.Token()
	return err == nil && (known == 0 || len(in) < known)
}

func elementsContained(d *json.Decoder, in []any) bool {
	for ; d.More(); in = in[1:] {
		if len(in) == 0 || !contained(d, in[0]) {
			return false
		}
	}
	_, err := d.Token()
	return err == nil && len(in) == 0
}
