package top

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"lunar/cmd/lunar/clustertable"
	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/bytesize"
	"lunar/internal/cli"
)

// page is one of the screens.
type page struct {
	name string
	// columns are what it can be sorted by; nil: its order has a meaning.
	columns func() []string
	// part is what it shows of an overview; the first sheet has the cursor.
	part func(o *control.Overview, by order) part
}

// part is what a page shows: lines, then tables.
type part struct {
	lines  []line
	sheets []sheet
}

// only is a part without the rows that a filter does not fit, or the lines where there are no
// rows.
func (p part) only(filter string) part {
	if filter == "" {
		return p
	}
	if len(p.sheets) == 0 {
		p.lines = slices.DeleteFunc(p.lines, func(l line) bool { return !fits(l.text, filter) })
	}
	for i := range p.sheets {
		p.sheets[i].only(filter)
	}
	return p
}

func fits(text, filter string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(filter))
}

type line struct {
	text string
	tone tone
	wrap int // indentation of further lines; 0: there are none
}

// pages are those that a key of their number leads to.
var pages = []page{
	{"initiators", initiatorTable.Names, func(o *control.Overview, by order) part {
		return part{more(o.LeftOut.Initiators, "initiator"), []sheet{sheetOf(initiatorTable, o.Initiators, by, func(i *control.SeenInitiator) string { return initiatorKey + i.Initiator }, initiatorTone)}}
	}},
	{"volumes", volumeTable.Names, func(o *control.Overview, by order) part {
		return part{more(o.LeftOut.Volumes, "volume"), []sheet{sheetOf(volumeTable, o.Volumes, by, func(v *control.SeenVolume) string { return volumeKey + v.Volume }, volumeTone)}}
	}},
	{"uses", useTable.Names, func(o *control.Overview, by order) part {
		return part{more(o.LeftOut.Uses, "use"), []sheet{sheetOf(useTable, o.Uses, by, func(u *control.SeenUse) string { return initiatorKey + u.Initiator }, nil)}}
	}},
	{"promises", promiseTable.Names, func(o *control.Overview, by order) part {
		p := part{more(o.LeftOut.Promises, "promise"), []sheet{sheetOf(promiseTable, o.Promises, by, nil, promiseTone)}}
		p.sheets = append(p.sheets, sheetOf(ruleTable, o.Rules, order{}, nil, nil))
		return p
	}},
	{"threads", threadTable.Names, func(o *control.Overview, by order) part {
		return part{nil, []sheet{sheetOf(threadTable, o.Threads, by, nil, threadTone), sheetOf(deviceTable, o.Devices, order{}, nil, deviceTone)}}
	}},
	{"cache", nil, func(o *control.Overview, _ order) part { return cachePart(o.Cache) }},
	{"events", nil, func(o *control.Overview, _ order) part { return eventPart(o.Events) }},
	{"answers", nil, func(o *control.Overview, _ order) part { return part{lines: answerLines(o.Answers, true)} }},
	{"cluster", clustertable.Nodes.Names, clusterPart},
}

// answersKey leads to the page of answers.
const answersKey = 8

// What a row is about, with a name behind.
const (
	initiatorKey = "initiator "
	volumeKey    = "volume "
)

func more(n int, noun string) []line {
	if n == 0 {
		return nil
	}
	return []line{{text: fmt.Sprintf("%d less busy %ss are not listed", n, noun), tone: faint}}
}

// answerLines are answers, with what would help if that is wanted.
func answerLines(answers []control.Answer, help bool) (out []line) {
	for i := range answers {
		a := &answers[i]
		out = append(out, line{signs[a.Severity] + " " + a.What, toneOf(a.Severity), 2})
		if help && a.Help != "" {
			out = append(out, line{"  " + a.Help, plain, 2})
		}
	}
	return out
}

// signs stand before answers, for those who see no colours.
var signs = map[string]string{
	control.AnswerFailed: "✖", control.AnswerDiffers: "≠", control.AnswerMissed: "▼", control.AnswerFull: "◆", control.AnswerWarning: "!", control.AnswerNote: "·", control.AnswerOK: "✔",
}

func cachePart(c *control.SeenCache) part {
	if c == nil {
		return part{lines: []line{{text: "This server has no cache."}}}
	}
	found := "nothing was looked for"
	if c.HitRatio != nil {
		found = fmt.Sprintf("%s of reads found all they wanted (%v hits/s, %v misses/s)", wholePercent(*c.HitRatio), perSecond(c.Hits), perSecond(c.Misses))
	}
	dirty := line{text: fmt.Sprintf("dirty     %s of %s, %s written", bytesize.Text(c.Dirty), bytesize.Text(c.DirtyLimit), bytesPerSecond(c.Flushed))}
	if c.Waiting > 0 || c.Throttled > 0 {
		dirty.text, dirty.tone = dirty.text+fmt.Sprintf("; %d writes wait, %v/s had to", c.Waiting, perSecond(c.Throttled)), caution
	}
	return part{[]line{
		{text: fmt.Sprintf("used      %s of %s %s", bytesize.Text(c.Used), bytesize.Text(c.Size), bar(float64(c.Used)/float64(max(c.Size, 1)), 20))},
		{text: "hits      " + found}, dirty,
		{text: fmt.Sprintf("evictions %v/s", perSecond(c.Evictions))}, {},
	}, []sheet{sheetOf(nodeTable, c.Nodes, order{}, nil, nil)}}
}

func eventPart(events []control.Event) (p part) {
	for _, e := range slices.Backward(events) {
		text := fmt.Sprintf("%s %s: %s", e.Time.Local().Format(time.TimeOnly), e.Kind, e.Text)
		for _, key := range slices.Sorted(maps.Keys(e.Fields)) {
			if value := e.Fields[key]; value != "" {
				text += fmt.Sprintf(" %s=%s", key, value)
			}
		}
		p.lines = append(p.lines, line{text, plain, 9})
	}
	if len(events) == 0 {
		p.lines = []line{{text: "Nothing has happened yet."}}
	}
	return p
}

// detail is the page of an initiator, a node or a volume.
func detail(o *control.Overview, key string, by order) part {
	if name, ok := strings.CutPrefix(key, initiatorKey); ok {
		return initiatorPart(o, name, by)
	}
	if name, ok := strings.CutPrefix(key, nodeKey); ok {
		return nodePart(o, name, by)
	}
	return volumePart(o, strings.TrimPrefix(key, volumeKey), by)
}

func gone(name string) part {
	return part{lines: []line{{text: name + " is not there any more."}}}
}

func initiatorPart(o *control.Overview, name string, by order) part {
	at := slices.IndexFunc(o.Initiators, func(i control.SeenInitiator) bool { return i.Initiator == name })
	if at < 0 {
		return gone(name)
	}
	i := &o.Initiators[at]
	p := part{lines: []line{
		{name, strong, 0},
		{fmt.Sprintf("%s from %s, on %s", sessions(i.Sessions), strings.Join(i.Addresses, ", "), strings.Join(i.Threads, ", ")), plain, 2},
		{text: fmt.Sprintf("%d of %d commands under way, %.1f on average; bound by: %s", i.InFlight, i.Window, i.UnderWay, bounds[i.Bound])},
	}}
	if len(i.Rules) > 0 {
		p.lines = append(p.lines, line{fmt.Sprintf("promised %v tokens/s, asked for %v, received %v; held back %v of the time", tokens(i.Reserved), perSecond(i.Asked), perSecond(i.Received), wholePercent(i.Throttled)), initiatorTone(i), 2})
	}
	for _, r := range o.Rules {
		if slices.Contains(i.Rules, r.Name) {
			p.lines = append(p.lines, line{"rule " + r.Name + ": " + r.Text, plain, 2})
		}
	}
	hit := slices.DeleteFunc(slices.Clone(o.Answers), func(a control.Answer) bool { return !slices.Contains(a.Initiators, name) })
	p.lines = append(append(p.lines, answerLines(hit, true)...), line{})
	uses := slices.DeleteFunc(slices.Clone(o.Uses), func(u control.SeenUse) bool { return u.Initiator != name })
	p.sheets = []sheet{sheetOf(useTable[1:], uses, by, func(u *control.SeenUse) string { return volumeKey + u.Volume }, nil)}
	return p
}

func sessions(n int) string {
	if n == 1 {
		return "1 session"
	}
	return fmt.Sprintf("%d sessions", n)
}

func volumePart(o *control.Overview, name string, by order) part {
	at := slices.IndexFunc(o.Volumes, func(v control.SeenVolume) bool { return v.Volume == name })
	if at < 0 {
		return gone("volume " + name)
	}
	v := &o.Volumes[at]
	p := part{lines: []line{
		{name, strong, 0},
		{text: fmt.Sprintf("%s, %s, on %s", bytesize.Text(v.Size), stateOf(v), listing.Text(v.Device)), tone: volumeTone(v)},
	}}
	for _, w := range v.Wrong {
		p.lines = append(p.lines, line{w, alarm, 2})
	}
	p.lines = append(p.lines, snapshotLines(v.Snapshots)...)
	hit := slices.DeleteFunc(slices.Clone(o.Answers), func(a control.Answer) bool { return a.About != name && a.About != v.Device || a.About == "" })
	p.lines = append(append(p.lines, answerLines(hit, true)...), heatLines(o.HeatBounds, v.Heat)...)
	p.lines = append(p.lines, line{})
	uses := slices.DeleteFunc(slices.Clone(o.Uses), func(u control.SeenUse) bool { return u.Volume != name })
	without := slices.Concat(useTable[:1], useTable[2:])
	p.sheets = []sheet{sheetOf(without, uses, by, func(u *control.SeenUse) string { return initiatorKey + u.Initiator }, nil)}
	return p
}

// snapshotLines are about a volume's snapshots.
func snapshotLines(s *control.VolumeSnapshots) (out []line) {
	if s == nil {
		return nil
	}
	text := "no snapshots"
	if s.Newest != nil {
		text = fmt.Sprintf("%s, the newest of %s; %s of the file shared, %s its own", cli.Counted(s.Count, "snapshot"), s.Newest.Local().Format(time.DateTime), bytesize.Text(s.SharedBytes), bytesize.Text(s.OwnedBytes))
	}
	if s.Due != nil {
		text += "; the schedule's next " + s.Due.Local().Format(time.DateTime)
	}
	out = append(out, line{text, plain, 2})
	if s.Failed != "" {
		out = append(out, line{"the last one that was due was not made: " + s.Failed, alarm, 2})
	}
	return out
}

// heatLines are how long reads and writes took in the last second.
func heatLines(bounds []float64, heat []uint64) (out []line) {
	most := uint64(0)
	for _, n := range heat {
		most = max(most, n)
	}
	if most == 0 {
		return nil
	}
	first, last := -1, 0
	for i, n := range heat {
		if n > 0 {
			last = i
			if first < 0 {
				first = i
			}
		}
	}
	out = append(out, line{text: "reads and writes of the last second, by time:", tone: faint})
	for i := first; i <= last; i++ {
		label := "longer"
		if i < len(bounds) {
			label = "< " + listing.Seconds(bounds[i]).String()
		}
		out = append(out, line{text: fmt.Sprintf("%10s %8s %s", label, grouped(int64(heat[i])), bar(float64(heat[i])/float64(most), 30))})
	}
	return out
}
