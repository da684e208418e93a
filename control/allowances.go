package control

import (
	"slices"
	"strings"

	"lunar/internal/shell"
)

// Allowances are the flags that allow what is destructive.
type Allowances struct {
	Yes         bool     `help:"Allow changes that end sessions or leave data behind."`
	AllowShrink []string `sep:"none" placeholder:"VOLUME" help:"Allow this volume to shrink, which loses the data behind its new end; repeatable."`
}

// More are the allowances with what was refused for the lack of.
func (w Allowances) More(needs, volume string) Allowances {
	switch {
	case needs == NeedsYes:
		w.Yes = true
	case needs == NeedsShrink && !slices.Contains(w.AllowShrink, volume):
		w.AllowShrink = append(slices.Clone(w.AllowShrink), volume)
	}
	return w
}

// MoreFor is More for the place of a reason; ok is false if it does not ask for any.
func (w Allowances) MoreFor(r Reason) (with Allowances, ok bool) {
	needs, volume, _ := strings.Cut(r.Place, ".")
	ok = needs == NeedsYes || needs == NeedsShrink && volume != ""
	return w.More(needs, volume), ok
}

// Flags are the words of a command line that give these Allowances.
func (w Allowances) Flags() (words []string) {
	if w.Yes {
		words = append(words, "--yes")
	}
	for _, v := range w.AllowShrink {
		words = append(words, "--allow-shrink", v)
	}
	return words
}

// ApplyCommand is the command line by which an administrator applies a file with these
// Allowances.
func (w Allowances) ApplyCommand(stateDir, socket, file string) string {
	return w.Command(stateDir, socket, "apply", file)
}

// Command is a command line of lunar with these Allowances.
func (w Allowances) Command(stateDir, socket, command string, args ...string) string {
	words := append([]string{"lunar", command}, shell.Flags([2]string{"--state-dir", stateDir}, [2]string{"--socket", socket})...)
	return shell.CommandLine(append(append(words, args...), w.Flags()...)...)
}
