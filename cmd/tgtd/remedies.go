package main

import (
	"fmt"

	"lunar/backstore/evidence"
	"lunar/conf"
)

// whence is where a configuration comes from, for the commands that messages name.
type whence struct{ config, socket string }

// saying is the command line by which an administrator says what the volume's store is.
func (a *assembly) saying(do evidence.Intention, v *conf.Volume) string {
	words := []string{string(do), v.Name}
	for _, flag := range [][2]string{{"-c", a.from.config}, {"--state-dir", a.stateDir}, {"--socket", a.from.socket}} {
		if flag[1] != "" {
			words = append(words, flag[0], flag[1])
		}
	}
	return allowances{}.command(words...)
}

// choices says what can be done about a store that was refused, each with its command.
func (a *assembly) choices(v *conf.Volume, p *sighting) string {
	back, begin := "Put the store of before back in its place", "what is there now is to be served as it is"
	if p.Kept.Dirty > 0 {
		back += ", with the volume's name, serial, cache and segment of before"
	}
	if p.Found.Missing {
		return back + "; otherwise," + a.forgetting(v, "the volume is to begin with a new file")
	}
	return back + "; otherwise," + a.adopting(v, "what is there now is the volume and gets what is kept of it") + a.forgetting(v, begin)
}

func (a *assembly) adopting(v *conf.Volume, when string) string {
	return fmt.Sprintf("\n  if %s: %s", when, a.saying(evidence.Adopt, v))
}

func (a *assembly) forgetting(v *conf.Volume, when string) string {
	return fmt.Sprintf("\n  if %s, and what is kept of it is given up: %s", when, a.saying(evidence.Forget, v))
}
