package conf

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestKeysAreDocumented: docs/configuration.md has an entry for every key of the model.
func TestKeysAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	entry := func(steps []string) bool {
		for i := range steps {
			if key := Key(steps[i:]...); strings.Contains(string(text), "`"+key+"`") || strings.Contains(string(text), "`"+key+".") || strings.Contains(string(text), "## "+key+"\n") {
				return true
			}
		}
		return strings.Contains(string(text), steps[len(steps)-1]+": ") // in an example
	}
	seen, keys := map[reflect.Type]bool{}, 0
	var walk func(path []string, at reflect.Type)
	walk = func(path []string, at reflect.Type) {
		for at.Kind() == reflect.Pointer || at.Kind() == reflect.Slice {
			at = at.Elem()
		}
		if at.Kind() != reflect.Struct || !strings.HasPrefix(at.PkgPath(), "lunar/") || seen[at] || isLeaf(at) {
			return
		}
		seen[at] = true
		for i := range at.NumField() {
			f := at.Field(i)
			if !f.IsExported() {
				continue
			}
			steps := keyOf(path, at, f)
			if steps == nil {
				continue
			}
			if len(steps) > len(path) {
				if keys++; !entry(steps) {
					t.Errorf("docs/configuration.md has no entry for %s", Key(steps...))
				}
			}
			if formOf(at, f) == nil {
				walk(steps, f.Type)
			}
		}
	}
	walk(nil, reflect.TypeFor[Config]())
	if keys < 80 {
		t.Errorf("found %d keys", keys)
	}
}
