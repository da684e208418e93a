package daemon

import (
	"slices"
	"strings"

	"lunar/conf"
	"lunar/conf/edit"
	"lunar/control"
	"lunar/control/server"
)

// Change implements server.Source.
func (s *source) Change(by server.Asker, c control.Changes) (control.Changed, error) {
	out, err := s.changes.edit(by, c)
	s.daemon.noteChange(c.DryRun, err)
	return out, err
}

// Object implements server.Source.
func (s *source) Object(path []string) (control.ObjectResource, error) {
	if err := checkPath(path); err != nil {
		return control.ObjectResource{}, err
	}
	tree, err := s.changes.tree()
	if err != nil {
		return control.ObjectResource{}, err
	}
	value, ok := edit.Get(tree, path...)
	if !ok && len(path) > 1 {
		return control.ObjectResource{}, noSuchObject(path)
	}
	return s.objectOf(path[len(path)-1], value), nil
}

func noSuchObject(path []string) error {
	return &control.Refusal{What: "there is no such object", Missing: true, Reasons: []control.Reason{{Place: conf.Key(path...), Text: "found none of that name in the configuration"}}}
}

func (s *source) objectOf(name string, value any) control.ObjectResource {
	o, _ := control.WithoutSecrets(value).(edit.Object)
	if o == nil {
		o = edit.Object{}
	}
	return control.ObjectResource{Name: name, ETag: s.changes.etag(value), Config: control.Object(o)}
}

// Objects implements server.Source.
func (s *source) Objects(path []string) ([]control.ObjectResource, error) {
	tree, err := s.changes.tree()
	if err != nil {
		return nil, err
	}
	if len(path) > 2 { // those of an object that has to be there
		if _, ok := edit.Get(tree, path[:2]...); !ok {
			return nil, noSuchObject(path[:2])
		}
	}
	value, _ := edit.Get(tree, path...)
	out := []control.ObjectResource{}
	for name, one := range edit.Elements(path[len(path)-1], value) {
		out = append(out, s.objectOf(name, one))
	}
	slices.SortFunc(out, func(a, b control.ObjectResource) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}
