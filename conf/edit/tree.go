package edit

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
)

// Object is a mapping of a tree. The values of a tree are Objects, []any, string, bool,
// json.Number and nil. Trees share their parts and are not changed.
type Object = map[string]any

// tree is what a node says. A key without a value is there, and nil.
func (n *node) tree(key string) any {
	switch n.kind {
	case null:
		if n.text == "null" && (key == "type" || key == "driver") {
			return n.text // which is the word for a type
		}
		return nil
	case mapping:
		out := make(Object, len(n.entries))
		for _, e := range n.entries {
			out[e.key] = e.value.tree(e.key)
		}
		return out
	case sequence:
		out := make([]any, 0, len(n.entries))
		for _, e := range n.entries {
			out = append(out, e.value.tree(""))
		}
		return out
	}
	if n.plain {
		return plainValue(n.text)
	}
	return n.text
}

// plainValue makes a number or a truth value of what is written like one in JSON.
func plainValue(text string) any {
	switch text {
	case "true":
		return true
	case "false":
		return false
	}
	const exact = 1 << 53 // of a double, which JSON's readers make of a number
	if i, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(i, 10) == text && i <= exact && i >= -exact {
		return json.Number(text)
	}
	return text
}

// textOf is how a scalar is written; false for what is none.
func textOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return v.String(), true
	case int:
		return strconv.Itoa(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}

// normal is a tree in the types that the package knows, without what is null in
// Objects.
func normal(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case Object:
		out := make(Object, len(v))
		for key, value := range v {
			one, err := normal(value)
			if err != nil {
				return nil, err
			}
			if one != nil {
				out[key] = one
			}
		}
		return out, nil
	case []any:
		out := make([]any, 0, len(v))
		for _, value := range v {
			one, err := normal(value)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
		return out, nil
	case float64:
		text, _ := textOf(v)
		return plainValue(text), nil
	case string, bool, json.Number:
		return v, nil
	}
	return nil, fmt.Errorf("found a value of type %T, expected JSON", v)
}

// isEmpty reports whether nothing is said: no value, or a collection without elements.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case Object:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// Same reports whether trees mean the same: how scalars are quoted does not matter, nor
// the order in lists whose elements have names.
func Same(a, b any) bool { return same("", a, b) }

func same(key string, a, b any) bool {
	if isEmpty(a) && isEmpty(b) {
		return true
	}
	switch one := a.(type) {
	case Object:
		other, ok := b.(Object)
		if !ok || len(one) != len(other) {
			return false
		}
		if reflect.ValueOf(one).UnsafePointer() == reflect.ValueOf(other).UnsafePointer() {
			return true // trees share their parts
		}
		for k, v := range one {
			if w, there := other[k]; !there || !same(k, v, w) {
				return false
			}
		}
		return true
	case []any:
		other, ok := b.([]any)
		return ok && sameLists(key, one, other)
	}
	text, ok := textOf(a)
	other, ok2 := textOf(b)
	return ok && ok2 && text == other
}

func sameLists(key string, a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	if byName, ok := named(key, b); ok {
		for _, v := range a {
			name, _ := nameOf(key, v)
			if i, there := byName[name]; !there || !same("", v, b[i]) {
				return false
			}
		}
		return true
	}
	return slices.EqualFunc(a, b, func(v, w any) bool { return same("", v, w) })
}

// named are the places of the elements of a list by their names; false if they have
// none, or not different ones.
func named(key string, list []any) (map[string]int, bool) {
	out := make(map[string]int, len(list))
	for i, v := range list {
		name, ok := nameOf(key, v)
		if _, twice := out[name]; !ok || twice {
			return nil, false
		}
		out[name] = i
	}
	return out, identities[key] != ""
}

// nameOf is the name of an element of the list at a key.
func nameOf(key string, element any) (string, bool) {
	o, ok := element.(Object)
	if !ok {
		return "", false
	}
	return textOf(o[identities[key]])
}

func keysOf(o Object) []string { return slices.Collect(maps.Keys(o)) }

// within reports whether the collections of a tree are at most levels deep: a text of
// others takes time and memory with the square of that.
func within(v any, levels int) bool {
	switch v := v.(type) {
	case Object:
		for _, value := range v {
			if levels == 0 || !within(value, levels-1) {
				return false
			}
		}
	case []any:
		for _, value := range v {
			if levels == 0 || !within(value, levels-1) {
				return false
			}
		}
	}
	return true
}
