package edit

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Get finds what is at a path: keys of Objects, and names of elements of lists whose
// elements have names. What is there without a value is nil.
func Get(tree any, path ...string) (value any, ok bool) {
	value = tree
	key := ""
	for _, step := range path {
		if luns, short := value.(Object); short && key == "luns" {
			value = long(luns)
		}
		switch v := value.(type) {
		case Object:
			if value, ok = v[step]; !ok {
				return nil, false
			}
		case []any:
			i := indexOf(key, v, step)
			if i < 0 {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
		key = step
	}
	return value, true
}

// indexOf is the place of the element of a name in the list at a key; -1: there is none.
func indexOf(key string, list []any, name string) int {
	return slices.IndexFunc(list, func(e any) bool { n, ok := nameOf(key, e); return ok && n == name })
}

// long is the long form of a list of LUNs, of which {0: disk} is the short one.
func long(luns Object) []any {
	out := make([]any, 0, len(luns))
	for _, lun := range slices.SortedFunc(maps.Keys(luns), byNumber) {
		out = append(out, Object{"lun": plainValue(lun), "volume": luns[lun]})
	}
	return out
}

func byNumber(a, b string) int {
	x, err1 := strconv.Atoi(a)
	y, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil {
		return strings.Compare(a, b)
	}
	return x - y
}

// Set is a tree with value at path, whatever was there.
func Set(tree Object, value any, path ...string) (Object, error) {
	value, err := normal(value)
	if err != nil {
		return nil, err
	}
	return changed(tree, path, func(any) any { return value })
}

// Merge is a tree with a merge patch (RFC 7396) applied to what is at path.
func Merge(tree Object, patch any, path ...string) (Object, error) {
	return changed(tree, path, func(old any) any { return merged(old, patch) })
}

func merged(old, patch any) any {
	p, ok := patch.(Object)
	if !ok {
		value, err := normal(patch)
		if err != nil {
			return fmt.Sprint(patch) // which no key takes
		}
		return value
	}
	was, _ := old.(Object)
	out := make(Object, len(was)+len(p))
	maps.Copy(out, was)
	for key, value := range p {
		if value == nil {
			delete(out, key)
			continue
		}
		out[key] = merged(out[key], value)
	}
	return out
}

// Remove is a tree without what is at path.
func Remove(tree Object, path ...string) (Object, error) {
	return changed(tree, path, func(any) any { return removed{} })
}

// removed is what is no more.
type removed struct{}

// changed is a tree in which change has made another value of that at path.
func changed(tree Object, path []string, change func(old any) any) (Object, error) {
	out, err := changedAt("", tree, path, change)
	if err != nil {
		return nil, err
	}
	o, ok := out.(Object)
	if !ok {
		return nil, fmt.Errorf("found no mapping, expected a configuration")
	}
	return o, nil
}

func changedAt(key string, value any, path []string, change func(any) any) (any, error) {
	if len(path) == 0 {
		return change(value), nil
	}
	if luns, ok := value.(Object); ok && key == "luns" {
		value = long(luns)
	}
	if identities[key] != "" {
		list, ok := value.([]any)
		if ok || isEmpty(value) {
			return changedIn(key, list, path, change)
		}
	}
	o, ok := value.(Object)
	if !ok && value != nil {
		return nil, fmt.Errorf("%s: found no mapping, expected one with %s", key, path[0])
	}
	one, err := changedAt(path[0], o[path[0]], path[1:], change)
	if err != nil {
		return nil, err
	}
	out := make(Object, len(o)+1)
	maps.Copy(out, o)
	if _, gone := one.(removed); gone {
		delete(out, path[0])
	} else {
		out[path[0]] = one
	}
	return out, nil
}

// changedIn changes the element of a name.
func changedIn(key string, list []any, path []string, change func(any) any) (any, error) {
	i := indexOf(key, list, path[0])
	var old any
	if i >= 0 {
		old = list[i]
	}
	one, err := changedAt("", old, path[1:], change)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(list)
	if _, gone := one.(removed); gone {
		if i >= 0 {
			out = slices.Delete(out, i, i+1)
		}
		return out, nil
	}
	o, ok := one.(Object)
	if !ok {
		return nil, fmt.Errorf("%s.%s: found no mapping, expected one", key, path[0])
	}
	o = maps.Clone(o)
	name := identities[key]
	if given, there := textOf(o[name]); there && given != path[0] {
		return nil, fmt.Errorf("%s.%s.%s: found another name, expected that of the path", key, path[0], name)
	}
	o[name] = path[0]
	if name == "lun" {
		o[name] = plainValue(path[0])
	}
	if i >= 0 {
		out[i] = o
		return out, nil
	}
	return append(out, o), nil
}

// Digest is a text that is the same for trees that mean the same, and for no others.
func Digest(tree any) []byte {
	text, _ := json.Marshal(canonical("", tree)) // of JSON
	return text
}

func canonical(key string, v any) any {
	switch v := v.(type) {
	case Object:
		if key == "luns" {
			return canonical(key, long(v))
		}
		out := make(Object, len(v))
		for k, value := range v {
			out[k] = canonical(k, value)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, value := range v {
			out = append(out, canonical("", value))
		}
		if _, ok := named(key, v); ok {
			slices.SortFunc(out, func(a, b any) int {
				x, _ := nameOf(key, a)
				y, _ := nameOf(key, b)
				return strings.Compare(x, y)
			})
		}
		return out
	}
	if isEmpty(v) {
		return nil
	}
	text, _ := textOf(v)
	return text
}

// Elements are the values in what is at a key, by the names that Get takes.
func Elements(key string, value any) Object {
	out := Object{}
	switch v := value.(type) {
	case Object:
		if identities[key] == "" {
			return v
		}
		return Elements(key, long(v))
	case []any:
		for _, e := range v {
			if name, ok := nameOf(key, e); ok {
				out[name] = e
			}
		}
	}
	return out
}
