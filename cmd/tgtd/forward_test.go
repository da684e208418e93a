package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/cli"
)

// asTgtd makes the test binary be tgtd.
const asTgtd = "TGTD_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asTgtd) != "" {
		main()
	}
	os.Exit(m.Run())
}

// tgtd runs a copy of the program in a directory, with a PATH.
func tgtd(t *testing.T, dir, path string, args ...string) (out, messages string, status int) {
	t.Helper()
	text, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "tgtd")
	if err := os.WriteFile(binary, text, 0o755); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	run := exec.Command(binary, args...)
	run.Env, run.Stdout, run.Stderr = []string{asTgtd + "=1", "PATH=" + path}, &stdout, &stderr
	var ended *exec.ExitError
	if err := run.Run(); err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), run.ProcessState.ExitCode()
}

// lunar makes a program of that name that prints its arguments and ends with a status.
func lunar(t *testing.T, dir, says string) {
	t.Helper()
	text := "#!/bin/sh\nprintf '" + says + "'\nprintf ' %s' \"$@\"\nexit 3\n"
	if err := os.WriteFile(filepath.Join(dir, "lunar"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestForward: a command that tgtd had is that of lunar, beside tgtd or else in PATH,
// with its output and exit status and a warning.
func TestForward(t *testing.T) {
	home, path := t.TempDir(), t.TempDir()
	if _, messages, status := tgtd(t, home, path, "status"); status != cli.ExitFailure || !strings.Contains(messages, "lunar") {
		t.Errorf("without lunar: found status %d and %q, expected a failure that names lunar", status, messages)
	}
	for _, from := range []string{path, home} { // then beside takes precedence
		lunar(t, from, "from "+from)
		for _, command := range movedCommands {
			out, messages, status := tgtd(t, home, path, command, "--socket", "a b")
			if want := "from " + from + " " + command + " --socket a b"; out != want || status != 3 {
				t.Errorf("%s: found status %d and %q, expected 3 and %q", command, status, out, want)
			}
			if want := "\"lunar " + command + "\""; !strings.Contains(messages, want) || strings.Count(messages, "\n") != 1 {
				t.Errorf("%s: found %q, expected one line with %q", command, messages, want)
			}
		}
	}
}

// TestOwnCommands: what tgtd keeps is its own.
func TestOwnCommands(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		args []string
		want string
		ends int
	}{
		{[]string{"version"}, "tgtd development linux/", cli.ExitOK},
		{[]string{"--version"}, "tgtd development linux/", cli.ExitOK},
		{[]string{"--help"}, "lunar", cli.ExitOK},
		{[]string{"check", "/nonexistent"}, "no such file", cli.ExitFailure},
		{[]string{"sreve"}, `did you mean "serve"`, cli.ExitUsage},
		{[]string{"qtcp"}, "load", cli.ExitUsage},
		{[]string{"qtcp", "load", "again"}, "unexpected argument again", cli.ExitUsage},
		{[]string{"qtcp", "load", "--user"}, "--user", cli.ExitUsage},
		{[]string{"qtcp", "load", "--user", "nobody of this name"}, "unknown user nobody of this name", cli.ExitFailure},
		{[]string{"qtcp", "load", "--user", ""}, "unknown user", cli.ExitFailure},
		{[]string{"qtcp", "unload", "--user", "root"}, "unknown flag --user", cli.ExitUsage},
	} {
		out, messages, status := tgtd(t, dir, "", test.args...)
		if status != test.ends || !strings.Contains(out+messages, test.want) {
			t.Errorf("%q: found status %d and %q, expected %d and %q", test.args, status, out+messages, test.ends, test.want)
		}
	}
}
