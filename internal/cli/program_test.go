package cli

import (
	"bytes"
	"strings"
	"testing"
)

// TestMistakesNameTheHelp: a mistake is answered with the help of its command.
func TestMistakesNameTheHelp(t *testing.T) {
	for line, want := range map[string]string{
		"show":             "(prog --help tells more)",
		"state set":        "(prog state set --help tells more)",
		"state set a b":    "(prog state set --help tells more)",
		"state set a --no": "(prog state set --help tells more)",
	} {
		var grammar struct {
			State struct {
				Set struct {
					Name string `arg:""`
				} `cmd:""`
			} `cmd:""`
		}
		var errors bytes.Buffer
		status := Program{Name: "prog", Grammar: &grammar}.Run(t.Context(), strings.Fields(line), Console{Out: &errors, Err: &errors})
		if status != ExitUsage || !strings.Contains(errors.String(), want) {
			t.Errorf("%s: status %d, %q, expected %q", line, status, errors.String(), want)
		}
	}
}
