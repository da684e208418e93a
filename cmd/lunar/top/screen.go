package top

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"lunar/control"
)

// View implements tea.Model.
func (m model) View() tea.View {
	v := tea.NewView(strings.Join(m.screen(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "lunar top"
	return v
}

// screen is the lines of the terminal, as many as it has at most.
func (m *model) screen() []string {
	above, below := m.above(), m.below()
	room := max(1, m.height-len(above)-len(below))
	body, cursor := m.body()
	from := m.scroll
	if cursor >= 0 { // the cursor is always seen
		from = min(max(0, cursor-room+1), max(0, len(body)-room))
		if cursor < room {
			from = 0
		}
	}
	from = min(from, max(0, len(body)-room))
	body = body[from:min(len(body), from+room)]
	for len(body) < room {
		body = append(body, "")
	}
	all := append(append(above, body...), below...)
	return all[:min(len(all), max(m.height, 1))]
}

// above is the head: how the server is, its traffic, what is wrong, and the pages.
func (m *model) above() (out []string) {
	add := func(t tone, text string) { out = append(out, m.painter.paint(head(text, m.width), t)) }
	o := m.overview
	switch {
	case o == nil && m.err != nil:
		add(alarm, "no answer: "+m.err.Error())
		return out
	case o == nil:
		add(faint, "asking the server …")
		return out
	}
	t := map[string]tone{control.HealthOK: good, control.HealthDegraded: caution, control.HealthFailed: alarm}[o.State]
	add(t, fmt.Sprintf("%s  %s", o.At.Local().Format(time.TimeOnly), o.Line))
	add(strong, m.totals())
	switch {
	case m.err != nil:
		add(alarm, "no answer any more, the figures are old: "+m.err.Error())
	case m.paused:
		add(caution, "paused; p goes on")
	}
	out = append(out, m.verdicts()...)
	if m.height >= 14 {
		out = append(out, "", m.tabs())
	}
	return out
}

// totals is the traffic in a line.
func (m *model) totals() string {
	o := m.overview
	text := fmt.Sprintf("%v IOPS  read %v  written %v", perSecond(o.Total.IOPS), bytesPerSecond(o.Total.ReadBytes), bytesPerSecond(o.Total.WrittenBytes))
	if o.Cache != nil && o.Cache.HitRatio != nil {
		text += fmt.Sprintf("  %v from the cache", wholePercent(*o.Cache.HitRatio))
	}
	most := 0.
	for i := range o.Threads {
		most = max(most, o.Threads[i].Busy)
	}
	return text + fmt.Sprintf("  busiest thread %v", wholePercent(most))
}

// mostVerdicts is how many answers the head has, and mostVerdictLines of how many lines: the
// page of answers has all.
const (
	mostVerdicts     = 3
	mostVerdictLines = 2
)

// verdicts are the worst answers. Those in red are on every page.
func (m *model) verdicts() (out []string) {
	answers := m.overview.Answers
	most := mostVerdicts
	if m.height < 20 {
		most = 1
	}
	for _, l := range answerLines(answers[:min(len(answers), most)], false) {
		lines := wrapped(l.text, m.width, l.wrap)
		if len(lines) > mostVerdictLines {
			lines = lines[:mostVerdictLines]
			lines[mostVerdictLines-1] = head(lines[mostVerdictLines-1]+" …", m.width)
		}
		for _, text := range lines {
			out = append(out, m.painter.paint(text, l.tone))
		}
	}
	if more := len(answers) - most; more > 0 {
		out = append(out, m.painter.paint(head(fmt.Sprintf("  and %d more: key %d", more, answersKey), m.width), faint))
	}
	return out
}

func (m *model) tabs() string {
	width, out := 0, ""
	for i, p := range shown(m.overview) {
		text := fmt.Sprintf(" %d %s ", i+1, p.name)
		if width += len(text); width > m.width {
			break
		}
		t := faint
		if i == m.page {
			t = chosen
		}
		out += m.painter.paint(text, t)
	}
	return out
}

// below is the foot.
func (m *model) below() []string {
	if m.height < 8 {
		return nil
	}
	text := "↑↓ choose  enter open  / filter  s sort  r reverse  p pause  ? help  q quit"
	switch {
	case m.typing:
		text = "filter: " + m.filter + "▏  enter keep it  esc show all"
	case len(m.opened) > 0:
		text = "esc back  " + text
	case m.filter != "":
		text = "only what has " + m.filter + ", esc shows all  " + text
	}
	return []string{m.painter.paint(head(text, m.width), faint)}
}

var helpLines = []string{
	"1 to 8, tab, ← →   another page; 9 is the cluster, if the server is a node of one",
	"↑ ↓, j k           move the cursor, or the page; page up and down, home, end",
	"enter              open the initiator, volume or node that the cursor is on",
	"esc, backspace     back",
	"/                  show only rows that have what you type then; enter keeps it, esc shows all",
	"s, S               sort by the next column, or the one before; behind the last: the busiest first",
	"r                  the other way round",
	"p, space           pause, and go on",
	"q                  quit",
	"",
	"BOUND-BY is what an initiator's rate ends at. its own depth: it asks for no more.",
	"PROMISED and RECEIVED are tokens a second, in which rules count (docs/qos.md).",
	"HELD is the share of the time in which a limit held its commands back.",
	"P50 and P99 are of the last 10 seconds, all else of the last second.",
}

// body is the page, and the line of it that the cursor is on; -1: there is none.
func (m *model) body() (out []string, cursor int) {
	if m.help {
		for _, text := range helpLines {
			out = append(out, head(text, m.width))
		}
		return out, -1
	}
	p, cursor := m.shown(), -1
	for _, l := range p.lines {
		texts := []string{head(l.text, m.width)}
		if l.wrap > 0 {
			texts = wrapped(l.text, m.width, l.wrap)
		}
		for _, text := range texts {
			out = append(out, m.painter.paint(text, l.tone))
		}
	}
	for n := range p.sheets {
		s := &p.sheets[n]
		if n > 0 {
			out = append(out, "")
		}
		first, rows := s.lines(m.width)
		out = append(out, m.painter.paint(first, faint))
		for i, text := range rows {
			t := s.tones[i]
			if n == 0 && i == m.cursor {
				t, cursor = chosen, len(out)
			}
			out = append(out, m.painter.paint(text, t))
		}
		if len(rows) == 0 {
			out = append(out, m.painter.paint(head("none", m.width), faint))
		}
	}
	return out, cursor
}
