package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"lunar/conf/edit"
	"lunar/control"
	"lunar/control/server"
	"lunar/daemon/state"
)

// keepGeneration keeps what the file has from now on; number is 0 if that fails, which
// is told.
func (a *applier) keepGeneration(by, what string, text []byte) (number int, warnings []string) {
	number, err := state.Generations{Dir: a.dir}.Keep(state.Generation{At: time.Now().UTC(), By: by, What: what, Text: text})
	if err != nil {
		const lost = "the state of the configuration file could not be kept: lunar rollback will not find it"
		a.log.Error(lost, "err", err)
		return number, []string{fmt.Sprintf("%s: %v", lost, err)}
	}
	return number, nil
}

// keepRead keeps what the file has that was read, unless it is known.
func (a *applier) keepRead(by, what string, text []byte) []string {
	if a.serve.Config == "" {
		return nil
	}
	last, err := state.Generations{Dir: a.dir}.Last()
	if err == nil && last != nil && string(last.Text) == string(text) {
		return nil
	}
	_, warnings := a.keepGeneration(by, what, text)
	return warnings
}

// Generations implements server.Source.
func (s *source) Generations() ([]control.Generation, error) {
	kept := state.Generations{Dir: s.changes.dir}
	numbers, err := kept.Numbers()
	out := []control.Generation{}
	for _, n := range numbers {
		g, err := kept.Load(n)
		if err != nil {
			out = append(out, control.Generation{Number: n, What: err.Error()})
			continue
		}
		out = append(out, s.generationOf(g))
	}
	return out, err
}

func (s *source) generationOf(g *state.Generation) control.Generation {
	return control.Generation{Number: g.Number, At: g.At, By: g.By, What: g.What, Now: s.changes.isFile(g.Text)}
}

// isFile reports whether the file had a text when it was read or written last.
func (a *applier) isFile(text []byte) bool {
	file := a.texts.Load().file
	return file != nil && string(file.text) == string(text)
}

// Generation implements server.Source.
func (s *source) Generation(number int) (control.Generation, error) {
	g, err := s.changes.generation(number)
	if err != nil {
		return control.Generation{}, err
	}
	out := s.generationOf(g)
	out.Text, err = shownText(newDocument(g.Text))
	return out, err
}

// shownText is a text without secrets, also those of users that are commented out.
func shownText(d *document) (string, error) {
	parsed, err := d.parse()
	if err != nil {
		return "", conflict("the text of the configuration: " + err.Error())
	}
	shown, err := parsed.Become(control.WithoutSecrets(parsed.Tree()).(edit.Object))
	if err != nil {
		return "", conflict("the text of the configuration: " + err.Error())
	}
	return string(shown.Comments(withoutSecret)), nil
}

// generation is one of a number; 0 is the one before the last.
func (a *applier) generation(number int) (*state.Generation, error) {
	kept := state.Generations{Dir: a.dir}
	if number == 0 {
		all, err := kept.Numbers()
		if err != nil || len(all) < 2 {
			return nil, conflict("found no state of the configuration file before the present one")
		}
		number = all[len(all)-2]
		if last, err := kept.Load(all[len(all)-1]); err == nil && !a.isFile(last.Text) {
			number = last.Number // the present one could not be kept
		}
	}
	g, err := kept.Load(number)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("found no generation %d, expected one that is kept (lunar generations)", number)
	}
	if err != nil {
		return nil, &control.Refusal{What: editRefused, Missing: true, Reasons: []control.Reason{{Place: "generation", Text: err.Error()}}}
	}
	return g, nil
}

// Rollback implements server.Source.
func (s *source) Rollback(by server.Asker, r control.Rollback) (control.Changed, error) {
	out, err := s.changes.rollback(by, r)
	s.daemon.noteChange(r.DryRun, err)
	return out, err
}

func (a *applier) rollback(by server.Asker, r control.Rollback) (control.Changed, error) {
	if err := a.lock(by); err != nil {
		return control.Changed{}, err
	}
	defer a.changing.Unlock()
	g, err := a.generation(r.Generation)
	if err != nil {
		return control.Changed{}, err
	}
	d, err := edit.Parse(g.Text)
	if err != nil {
		return control.Changed{}, conflict(err.Error())
	}
	return a.whole(by, fmt.Sprintf("rollback to generation %d", g.Number), d, r.Permissions)
}

// told says what edits do.
func told(edits []control.Edit) string {
	var words []string
	for _, e := range edits {
		verb := "set "
		switch {
		case e.Remove:
			verb = "remove "
		case e.Merge != nil:
			verb = "change "
		}
		words = append(words, verb+strings.Join(e.Path, "."))
	}
	const most = 10
	if n := len(words) - most; n > 0 {
		words = append(words[:most], fmt.Sprintf("%d more", n))
	}
	return strings.Join(words, ", ")
}
