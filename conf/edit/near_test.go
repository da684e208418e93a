package edit

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestNear: of a change of some objects nothing else is read again, and what comes of it
// is the same.
func TestNear(t *testing.T) {
	set := func(name string, value any) func(Object) (Object, error) {
		return func(tree Object) (Object, error) { return Set(tree, value, "volumes", name) }
	}
	remove := func(name string) func(Object) (Object, error) {
		return func(tree Object) (Object, error) { return Remove(tree, "volumes", name) }
	}
	lun := func(tree Object) (Object, error) {
		return Set(tree, Object{"volume": "disk"}, "targets", "iqn.2026-11.example:u", "luns", "2")
	}
	for _, c := range []struct {
		name  string
		edits []func(Object) (Object, error)
		near  bool
	}{
		{"a value", []func(Object) (Object, error){set("disk", Object{"type": "file", "size": "2GiB"})}, true},
		{"several objects", []func(Object) (Object, error){set("disk", Object{"type": "ram"}), set("scratch", Object{"type": "ram", "size": "16GiB"}), lun}, true},
		{"a new one", []func(Object) (Object, error){set("new", Object{"type": "ram"})}, true},
		{"one less", []func(Object) (Object, error){remove("scratch")}, true},
		{"one for another", []func(Object) (Object, error){remove("scratch"), set("new", Object{"type": "ram"}), lun}, true},
		{"all", []func(Object) (Object, error){remove("scratch"), remove("disk")}, false},
		{"a section", []func(Object) (Object, error){func(tree Object) (Object, error) { return Set(tree, Object{"level": "debug"}, "log") }}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := Parse([]byte(before))
			if err != nil {
				t.Fatal(err)
			}
			want := d.Tree()
			for _, e := range c.edits {
				if want, err = e(want); err != nil {
					t.Fatal(err)
				}
			}
			s := &splicer{Document: d}
			s.mapping(d.root, d.tree, want, -1)
			out, near := s.near()
			if near != c.near {
				t.Fatalf("found %v, expected %v", near, c.near)
			}
			if !near {
				return
			}
			whole, err := Parse(out.Text())
			if err != nil || !reflect.DeepEqual(out, whole) || !Same(out.tree, want) {
				t.Errorf("%v: found\n%+v\nexpected\n%+v", err, out, whole)
			}
		})
	}
}

// BenchmarkBecome is a change of one of so many volumes.
func BenchmarkBecome(b *testing.B) {
	var text strings.Builder
	text.WriteString("volumes:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "  vol%04d: {type: file, path: vol%04d.img, size: 1MiB}\n", i, i)
	}
	text.WriteString("targets:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "  iqn.2026-11.example:vol%04d: {luns: {0: vol%04d}}\n", i, i)
	}
	d, err := Parse([]byte(text.String()))
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		want, err := Merge(d.Tree(), Object{"size": fmt.Sprintf("%dMiB", i+2)}, "volumes", "vol0500")
		if err == nil {
			d, err = d.Become(want)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
