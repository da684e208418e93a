package top

import (
	"lunar/control"
	"lunar/internal/iscsiname"
)

// tone is how a text stands out.
type tone int

const (
	plain tone = iota
	faint
	good
	caution
	alarm
	chosen // the cursor's row, the page that is shown
	strong
)

// graphics are the tones as parameters of SGR (ECMA-48), with and without colours
// (no-color.org). What has a tone says the same in words.
var graphics = map[tone][2]string{
	faint: {"2", "2"}, good: {"32", ""}, caution: {"33", ""}, alarm: {"1;31", "1"}, chosen: {"7", "7"}, strong: {"1", "1"},
}

// painter writes texts in their tones. All that the screen shows of what a server says goes
// through it: what a terminal would obey is replaced.
type painter struct{ colours bool }

func (p painter) paint(text string, t tone) string {
	text = iscsiname.Printable(text)
	way := 1
	if p.colours {
		way = 0
	}
	code := graphics[t][way]
	if code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// toneOf is that of an answer.
func toneOf(severity string) tone {
	switch severity {
	case control.AnswerFailed, control.AnswerDiffers, control.AnswerMissed:
		return alarm
	case control.AnswerFull, control.AnswerWarning:
		return caution
	case control.AnswerOK:
		return good
	}
	return plain
}

func initiatorTone(i *control.SeenInitiator) tone {
	switch {
	case i.Promise == "missed":
		return alarm
	case i.Bound == "idle":
		return faint
	case i.Bound != "depth":
		return caution
	}
	return plain
}

func volumeTone(v *control.SeenVolume) tone {
	switch {
	case v.Failing || v.State == control.HealthFailed:
		return alarm
	case v.State != control.HealthOK || v.Frozen:
		return caution
	}
	return plain
}

func promiseTone(p *control.SeenPromise) tone {
	switch p.State {
	case "missed":
		return alarm
	case "unused":
		return faint
	}
	return plain
}

// fullBusy is how busy an event thread is that is full.
const fullBusy = 0.9

func threadTone(t *control.SeenThread) tone {
	if t.Busy >= fullBusy {
		return caution
	}
	return plain
}

func deviceTone(d *control.SeenDevice) tone {
	if d.Full {
		return caution
	}
	return plain
}
