package volumes

import (
	"errors"
	"fmt"

	"lunar/backstore/evidence"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/internal/intent"
	"lunar/internal/shell"
)

// saying is the command line by which an administrator says what the volume's store is.
func (a *Set) saying(do evidence.Intention, v *conf.Volume) string {
	words := append([]string{"lunar", string(do), v.Name},
		shell.Flags([2]string{"-c", a.From.Config}, [2]string{"--state-dir", a.StateDir}, [2]string{"--socket", a.From.Socket})...)
	return shell.CommandLine(words...)
}

// choices says what can be done about a store that was refused, each with its command.
func (a *Set) choices(v *conf.Volume, p *sighting) string {
	back, begin := "Put the store of before back in its place", "what is there now is to be served as it is"
	if p.Pending.Dirty > 0 {
		back += ", with the volume's name, serial, cache and segment of before"
	}
	if p.Pending.LostLog != "" && !p.Found.Missing {
		return "Put a copy of the log back; otherwise," + a.adopting(v, "what is there now is the volume, and such parts do not matter or there was no crash") + a.forgetting(v, begin)
	}
	if p.Found.Missing {
		return back + "; otherwise," + a.forgetting(v, "the volume is to begin with a new file")
	}
	return back + "; otherwise," + a.adopting(v, "what is there now is the volume and gets what is kept of it") + a.forgetting(v, begin)
}

func (a *Set) adopting(v *conf.Volume, when string) string {
	return fmt.Sprintf("\n  if %s: %s", when, a.saying(evidence.Adopt, v))
}

func (a *Set) forgetting(v *conf.Volume, when string) string {
	return fmt.Sprintf("\n  if %s, and what is kept of it is given up: %s", when, a.saying(evidence.Forget, v))
}

// advise adds to the refusal of a store what can be done about it.
func (a *Set) advise(v *conf.Volume, err error) error {
	switch {
	case errors.Is(err, intent.ErrOverwritten):
		return fmt.Errorf("%w. Put the store of before back in its place; otherwise,%s", err, a.forgetting(v, "it is to be served as it is"))
	case errors.Is(err, tier.ErrChanged):
		return fmt.Errorf("%w. Nothing was written there;%s%s", err,
			a.adopting(v, "it is the volume as it was, such as a file that was renamed and is back, and gets the unwritten data"),
			a.forgetting(v, "it is to be served as it is, such as a backup that was restored"))
	case errors.Is(err, intent.ErrForeign) || errors.Is(err, intent.ErrPending):
		return fmt.Errorf("%w. %s", err, a.choices(v, &sighting{}))
	}
	return err
}
