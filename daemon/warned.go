package daemon

import (
	"lunar/conf"
	"lunar/control"
)

// warned are the warnings of the text that is running, by what they say without their places.
type warned map[string]bool

func warnedOf(all []conf.Warning) warned {
	out := warned{}
	for _, w := range all {
		out[w.Plain()] = true
	}
	return out
}

// told are the warnings that whoever changes objects is told: of these objects, and what was
// not warned of before. Who reads a whole text is told all.
func (a *applier) told(r *request) (out []string) {
	for _, w := range r.warnings {
		text := w.String()
		if r.edit != nil {
			text = w.Plain()
		}
		if r.edit == nil || r.edit.objects == nil || !a.warned[text] || concern(r.edit.objects, text) {
			out = append(out, text)
		}
	}
	return out
}

// concern reports whether a text that begins with a key is about an object of changes.
func concern(edits []control.Edit, text string) bool {
	w := waiting{asked: control.Changes{Edits: edits}}
	return w.concerns(text)
}
