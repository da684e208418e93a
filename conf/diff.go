package conf

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"
)

// Difference is one key in which two configurations differ.
type Difference struct {
	Key     string   // such as volumes.disk.size
	Path    []string // its steps: names of objects may have dots
	Running string   // its value in the first; empty: not told, for it is long or might be a secret
	File    string   // its value in the second, as Running
}

// String is key and values.
func (d Difference) String() string {
	if d.Running == "" && d.File == "" {
		return d.Key + ": differs"
	}
	return fmt.Sprintf("%s: running with %s, the file has %s", d.Key, d.Running, d.File)
}

// Key is how whatever tells of a change names the key that it is about.
func Key(steps ...string) string { return strings.Join(steps, ".") }

// nothing is the value of an object that one of the configurations has not.
const nothing = "nothing"

// Diff returns the keys in which a file's configuration differs from the one
// that is running, in the order of the model. Both are in their normal form.
// Secrets are compared, but not shown.
func Diff(running, file *Config) []Difference {
	var c comparison
	c.structs(nil, reflect.ValueOf(running).Elem(), reflect.ValueOf(file).Elem())
	return c.found
}

// comparison collects differences.
type comparison struct{ found []Difference }

// noKey is what a field has that no key of a file sets.
const noKey = "-"

// keysOf are the keys that are not the names of their fields; an empty one is
// that of the object around it.
var keysOf = map[string]string{
	"QoS": "qos", "Match": "", "MayBuffer": noKey, "SegmentGiven": noKey, "Discovery.AuthGroup": "auth",
	"Control.Certificate": "certificate-file", "Control.Key": "key-file", "Control.Tokens": "token-file", "Control.ClientCA": "client-ca-file", "Control.Audit": "audit-file",
	"ISER": "iser", "MetricsToken": "metrics-token-file", "MetricsCertificate": "metrics-certificate-file", "MetricsKey": "metrics-key-file", "ListenISER": "listen-iser", "PerNode": noKey, "Rate.Bytes": "bandwidth",
	"Network.Groups": "group-numbers",
	"Cluster.Named":  "name", "Etcd.CA": "ca-file", "Etcd.Certificate": "certificate-file", "Etcd.Key": "key-file",
	"Link.CA": "ca-file", "Link.Certificate": "certificate-file", "Link.Key": "key-file",
}

// keyOf is the path of a field.
func keyOf(path []string, in reflect.Type, f reflect.StructField) []string {
	key, special := keysOf[in.Name()+"."+f.Name]
	if !special {
		key, special = keysOf[f.Name]
	}
	if !special {
		key = kebab(f.Name)
	}
	if key == "" {
		return path
	}
	return slices.Concat(path, []string{key})
}

// kebab writes a field's name as a key: BlockSize is block-size, CPUs is cpus.
func kebab(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		if unicode.IsUpper(r) && lower {
			b.WriteByte('-')
		}
		lower = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func (c *comparison) structs(path []string, a, b reflect.Value) {
	for i := range a.NumField() {
		f := a.Type().Field(i)
		path := keyOf(path, a.Type(), f)
		switch write := formOf(a.Type(), f); {
		case keysOf[f.Name] == noKey:
		case a.Type() == reflect.TypeFor[Target]() && f.Name == "Access" && isOpen(a.Field(i)) && isOpen(b.Field(i)):
			c.structs(path[:len(path)-1], a.Field(i).Index(0), b.Field(i).Index(0))
		case write == nil:
			c.values(path, a.Field(i), b.Field(i))
		case !reflect.DeepEqual(write(a, a.Field(i)), write(b, b.Field(i))):
			c.differs(path, shownForm(a.Field(i), write(a, a.Field(i))), shownForm(b.Field(i), write(b, b.Field(i))))
		}
	}
}

func (c *comparison) values(path []string, a, b reflect.Value) {
	switch {
	case reflect.DeepEqual(a.Interface(), b.Interface()):
	case a.Kind() == reflect.Map:
		c.entries(path, a, b)
	case a.Kind() == reflect.Slice && isNamed(a.Type().Elem()):
		c.objects(path, a, b)
	case a.Kind() == reflect.Struct && !isLeaf(a.Type()):
		c.structs(path, a, b)
	case a.Kind() == reflect.Pointer && !a.IsNil() && !b.IsNil() && isNested(a.Type().Elem()):
		c.structs(path, a.Elem(), b.Elem())
	case a.Kind() == reflect.Pointer && isNested(a.Type().Elem()):
		c.differs(path, presence(a), presence(b))
	default:
		c.differs(path, shown(a), shown(b))
	}
}

// isOpen reports whether rules are those of a target without access: one for everybody,
// which has the target's own keys.
func isOpen(rules reflect.Value) bool {
	access := rules.Interface().([]Access)
	return len(access) == 1 && !access[0].Match.some()
}

// presence says whether there is what a pointer leads to.
func presence(p reflect.Value) string {
	if p.IsNil() {
		return nothing
	}
	return "it"
}

// isNamed reports whether a type is that of an object with a name.
func isNamed(t reflect.Type) bool {
	if t.Kind() != reflect.Struct {
		return false
	}
	_, named := t.FieldByName("Name")
	return named
}

// isLeaf reports whether a struct is one value.
func isLeaf(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[fmt.Stringer]())
}

// isNested reports whether what a pointer points to is told key by key.
func isNested(t reflect.Type) bool {
	return t == reflect.TypeFor[VolumeCache]() || t == reflect.TypeFor[VolumeEncryption]() || t == reflect.TypeFor[SnapshotSchedule]() || t == reflect.TypeFor[Cluster]()
}

// objects compares objects by name.
func (c *comparison) objects(path []string, a, b reflect.Value) {
	before, after := byName(a), byName(b)
	for i := range a.Len() {
		name := nameOf(a.Index(i))
		if other, ok := after[name]; ok {
			if reflect.DeepEqual(a.Index(i).Addr().Interface(), other.Addr().Interface()) {
				continue // most are, and their keys need not be looked at
			}
			c.structs(slices.Concat(path, []string{name}), a.Index(i), other)
		} else {
			c.differs(slices.Concat(path, []string{name}), "it", nothing)
		}
	}
	for i := range b.Len() {
		name := nameOf(b.Index(i))
		if _, ok := before[name]; !ok {
			c.differs(slices.Concat(path, []string{name}), nothing, "it")
		}
	}
}

// entries compares maps with names as keys, in the order of these.
func (c *comparison) entries(path []string, a, b reflect.Value) {
	names := map[string]bool{}
	for _, k := range append(a.MapKeys(), b.MapKeys()...) {
		names[k.String()] = true
	}
	told := func(m reflect.Value, name string) string {
		if v := m.MapIndex(reflect.ValueOf(name)); v.IsValid() {
			return shown(v)
		}
		return nothing
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if one, other := told(a, name), told(b, name); one != other {
			c.differs(slices.Concat(path, []string{name}), one, other)
		}
	}
}

func (c *comparison) differs(path []string, running, file string) {
	if running == "" || file == "" {
		running, file = "", "" // the value of one may not be shown
	}
	c.found = append(c.found, Difference{Key(path...), path, running, file})
}

func nameOf(object reflect.Value) string { return object.FieldByName("Name").String() }

func byName(objects reflect.Value) map[string]reflect.Value {
	all := make(map[string]reflect.Value, objects.Len())
	for i := range objects.Len() {
		all[nameOf(objects.Index(i))] = objects.Index(i)
	}
	return all
}

// shownForm writes a value that has a form, as shown does others.
func shownForm(v reflect.Value, form any) string {
	switch form := form.(type) {
	case nil:
		return "none"
	case string:
		if v.Kind() == reflect.String && v.Len() > 0 {
			return shown(v)
		}
		return form
	}
	text, err := yaml.MarshalWithOptions(form, yaml.Flow(true))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// shown writes a plain value; lists of objects, and what may have secrets or be
// one (a quote too few makes a text go on over the lines below), are not shown.
func shown(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		return ""
	case reflect.Slice:
		if e := v.Type().Elem(); e.Kind() == reflect.Struct && !isLeaf(e) {
			return ""
		}
	case reflect.String:
		if !quotable(v.String()) {
			return ""
		}
		return fmt.Sprintf("%q", v.String())
	case reflect.Struct:
		if s, ok := v.Interface().(fmt.Stringer); ok {
			return s.String()
		}
		return fmt.Sprintf("%+v", v.Interface())
	}
	return fmt.Sprint(v.Interface())
}
