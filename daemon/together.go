package daemon

import (
	"errors"
	"slices"
	"time"

	"lunar/control"
	"lunar/control/server"
)

// A change of objects costs what the whole configuration costs: a text is made, parsed and
// compared, and files are synced. Changes that come while another one is being made are
// therefore made together, by whoever of them is next: one text, put into force and
// written once. Each has its own conditions, answer and error. Where one of them would be
// refused, all are made one after the other, as if each had come alone.

// edit makes changes of objects: of the text that is running, which is then put into
// force as any other is, and of the text of the file.
func (a *applier) edit(by server.Asker, c control.Changes) (control.Changed, error) {
	w := &waiting{by: by, asked: c}
	a.line.join(w)
	a.changing.Lock()
	defer a.changing.Unlock()
	if !w.ended {
		all, began := a.line.gather(), time.Now()
		a.makeAll(all)
		a.line.made(len(all), time.Since(began))
	}
	return w.changed, w.err
}

// errFault is for who waited for a change that hit a fault.
var errFault = errors.New("the change was broken off by a fault of the server")

// makeAll makes changes in their order. The caller holds the changes.
func (a *applier) makeAll(all []*waiting) {
	for _, w := range all {
		w.ended, w.err = true, errFault // unless it gets an answer
	}
	var group []*waiting
	for _, w := range all {
		if !w.joins(group) {
			a.makeGroup(group)
			group = nil
		}
		group = append(group, w)
	}
	a.makeGroup(group)
}

func (a *applier) makeGroup(group []*waiting) {
	begun := group[:0:0]
	for _, w := range group {
		if err := a.begins(w.by); err != nil {
			w.err = err
			continue
		}
		begun = append(begun, w)
	}
	if len(begun) > 1 {
		begun = a.possible(begun)
	}
	if len(begun) > 1 && a.makeTogether(begun) {
		return
	}
	for _, w := range begun {
		w.changed, w.err = a.makeOne(w.by, w.asked)
	}
}

// possible leaves out the changes that are refused as the objects are.
func (a *applier) possible(group []*waiting) []*waiting {
	tree, err := a.tree()
	if err != nil {
		return group // each is told
	}
	return slices.DeleteFunc(group, func(w *waiting) bool {
		next, err := a.editedTree(tree, w.asked.Edits, true)
		if err != nil {
			w.err = err
			return true
		}
		tree = next
		return false
	})
}

// makeTogether is false if nothing was changed.
func (a *applier) makeTogether(group []*waiting) bool {
	all := control.Changes{Permissions: control.Permissions{Keep: group[0].asked.Keep}}
	var askers []server.Asker
	for _, w := range group {
		all.Edits = append(all.Edits, w.asked.Edits...)
		askers = append(askers, w.by)
	}
	changed, err := a.makeOne(server.Together(askers), all)
	if err != nil {
		return false
	}
	tree, err := a.tree()
	for _, w := range group {
		w.changed, w.err = shareOf(w, group, changed), nil
		if err == nil {
			w.changed.ETag = a.etagOf(tree, w.asked.Edits)
		}
	}
	return true
}

// shareOf is what a change hears of what has come of all: what is about its own objects,
// and what is about nobody's.
func shareOf(w *waiting, group []*waiting, all control.Changed) control.Changed {
	is := func(text string) bool {
		return w.concerns(text) || !slices.ContainsFunc(group, func(o *waiting) bool { return o.concerns(text) })
	}
	only := func(lines []string) []string {
		return slices.DeleteFunc(slices.Clone(lines), func(text string) bool { return !is(text) })
	}
	all.Changes, all.Warnings = only(all.Changes), only(all.Warnings)
	all.Impacts = slices.DeleteFunc(slices.Clone(all.Impacts), func(i control.Impact) bool { return !is(i.Key) })
	return all
}
