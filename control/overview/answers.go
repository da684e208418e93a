package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"lunar/control"
	"lunar/internal/bytesize"
)

// severities are in the order in which people read them.
var severities = []string{control.AnswerFailed, control.AnswerDiffers, control.AnswerMissed, control.AnswerFull, control.AnswerWarning, control.AnswerNote, control.AnswerOK}

// findings are what is looked for. Each may find nothing.
var findings = []func(*span) []control.Answer{
	(*span).unwritten, (*span).sick, (*span).unowned, (*span).alone, (*span).differs, (*span).missed, (*span).limited, (*span).fullThreads, (*span).fullMemory, (*span).fullCache,
	(*span).fullDevices, (*span).crowded, (*span).fullNetworks, (*span).fullWindows, (*span).others, (*span).warned, (*span).asksNoMore, (*span).well,
}

func (s *span) answers() []control.Answer {
	out := []control.Answer{}
	for _, find := range findings {
		for _, a := range find(s) {
			a.Initiators = filled(a.Initiators)
			out = append(out, a)
		}
		s.out.Answers = out // the later ones see what there is
	}
	slices.SortStableFunc(out, func(a, b control.Answer) int {
		return cmp.Compare(slices.Index(severities, a.Severity), slices.Index(severities, b.Severity))
	})
	return out
}

// unwritten is data that were acknowledged and that no file or device has or gets.
func (s *span) unwritten() []control.Answer {
	t := told{more: "more volumes have data that are not written"}
	for i := range s.now.Status.Volumes {
		v := &s.now.Status.Volumes[i]
		if v.Cache == nil || !v.Cache.FlushFailing || !t.room() {
			continue
		}
		since := ""
		if at := v.Cache.FailingSince; at != nil {
			since = " since " + at.Format("15:04:05")
		}
		t.add(control.Answer{Severity: control.AnswerFailed, Kind: "dirty", About: v.Name, Initiators: s.usersOf(v.Name),
			What: fmt.Sprintf("%s of volume %s are in the cache alone%s: its file or device does not take them.", bytesize.Text(v.Cache.DirtyBytes), v.Name, since),
			Help: "Mend the file or device, or make space there: the data are then written by themselves. Until then use it nowhere else. The log has the error."})
	}
	for _, o := range s.orphans() {
		if !t.room() {
			continue
		}
		t.add(control.Answer{Severity: control.AnswerFailed, Kind: "dirty", About: o.Name,
			What: fmt.Sprintf("%s of volume %s, which is not served, are in the cache alone.", bytesize.Text(o.DirtyBytes), o.Name),
			Help: "Configure the volume again, with the same name and path, and they are written. Its file or device is incomplete until then."})
	}
	for _, name := range s.now.Status.Closing {
		if !t.room() {
			continue
		}
		t.add(control.Answer{Severity: control.AnswerFailed, Kind: "dirty", About: name,
			What: fmt.Sprintf("Volume %s was removed and cannot be closed: its file or device does not take what it is to.", name),
			Help: "Mend the file or device. lunar detach " + name + " gives the volume up; its data stay in the cache."})
	}
	return t.all()
}

func (s *span) orphans() []control.Orphan {
	if c := s.now.Status.Cache; c != nil && c.Attach != nil {
		return c.Attach.Orphans
	}
	return nil
}

// sick is what else is wrong with volumes and the server's parts.
func (s *span) sick() []control.Answer {
	t := told{more: "more troubles of volumes"}
	for i := range s.now.Status.Volumes {
		v := &s.now.Status.Volumes[i]
		for _, trouble := range v.Health.Troubles {
			if strings.HasPrefix(trouble.What, control.DirtyTrouble) || !t.room() {
				continue // unwritten tells more
			}
			t.add(control.Answer{Severity: control.AnswerFailed, Kind: "health", About: v.Name, Initiators: s.usersOf(v.Name),
				What: fmt.Sprintf("Volume %s is %s: %s.", v.Name, trouble.State, strings.TrimSuffix(trouble.What, ".")),
				Help: "docs/troubleshooting.md has the message and its remedy."})
		}
	}
	if r := s.now.Status.RDMA; r != nil && r.Off != "" {
		t.add(control.Answer{Severity: control.AnswerFailed, Kind: "health", About: "iSER", What: "iSER is off: " + strings.TrimSuffix(r.Off, ".") + "."})
	}
	return t.all()
}

// undo is how differences of each kind end.
var undo = map[string]string{
	"configuration": "lunar save writes what was changed to the file, and lunar apply FILE goes back to it.",
	"qos":           "lunar save writes the rules to the file, and lunar apply FILE goes back to it.",
	"access":        "lunar save writes the access states to the file, and lunar alua changes them.",
	"drain":         "lunar drain PORTAL --off ends a drain.",
	"freeze":        "lunar volume thaw NAME ends a freeze.",
}

// differs is drift.
func (s *span) differs() []control.Answer {
	drift := s.now.Status.Drift
	if len(drift) == 0 {
		return nil
	}
	var what, help []string
	for _, d := range drift {
		what = append(what, d.What)
		if text := undo[d.Kind]; !slices.Contains(help, text) {
			help = append(help, text)
		}
	}
	shown, more := what, ""
	if n := len(what) - mostNamed; n > 0 {
		shown, more = what[:mostNamed], fmt.Sprintf("; and %d more", n)
	}
	return []control.Answer{{Severity: control.AnswerDiffers, Kind: "drift",
		What: fmt.Sprintf("The server differs from its configuration file in %s: %s%s.", times(len(drift), "thing"), strings.Join(shown, "; "), more),
		Help: "The next start undoes that. " + strings.Join(help, " ")}}
}

// warned is what the server warns of.
func (s *span) warned() (out []control.Answer) {
	for _, w := range s.out.Warnings {
		out = append(out, control.Answer{Severity: control.AnswerWarning, Kind: "warning", What: sentence(w)})
	}
	return out
}

// warnings are those that no other answer has.
func (s *span) warnings() []string {
	told := []string{}
	for _, o := range s.orphans() {
		told = append(told, o.Warning())
	}
	out := []string{}
	for _, w := range s.now.Status.Warnings {
		if !slices.Contains(told, w) {
			out = append(out, w)
		}
	}
	return out
}

// sentence makes one of a message.
func sentence(text string) string {
	if text == "" {
		return text
	}
	_, first := utf8.DecodeRuneInString(text)
	return strings.ToUpper(text[:first]) + strings.TrimSuffix(text[first:], ".") + "."
}

// usersOf are the initiators that may use a volume.
func (s *span) usersOf(volume string) []string {
	names := []string{}
	for i := range s.out.Initiators {
		if who := &s.out.Initiators[i]; slices.Contains(who.Volumes, volume) {
			names = noted(names, who.Initiator)
		}
	}
	return names
}

// well is what there is to say when there is nothing.
func (s *span) well() []control.Answer {
	if slices.ContainsFunc(s.out.Answers, func(a control.Answer) bool { return a.Severity != control.AnswerNote }) {
		return nil
	}
	text := "All is well: "
	switch {
	case len(s.out.Initiators) == 0:
		text += "no initiator is connected."
	case s.out.Total.IOPS < fewest:
		text += "nobody asks for anything now."
	case len(s.out.Promises) > 0:
		text += fmt.Sprintf("%s kept, and no device, event thread or cache is full.", kept(len(s.out.Promises)))
	default:
		text += "no event thread and no cache is full."
	}
	return []control.Answer{{Severity: control.AnswerOK, Kind: "ok", What: text}}
}

func kept(promises int) string {
	if promises == 1 {
		return "the promise is"
	}
	return fmt.Sprintf("all %d promises are", promises)
}
