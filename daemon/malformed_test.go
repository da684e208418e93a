package daemon

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lunar/conf"
	"lunar/internal/cli"
)

// malformedEnv sets how many configurations TestMalformed tries.
const malformedEnv = "LUNAR_MALFORMED"

// commandsEach is for how many configurations commands are asked once: they take
// most of the time, and say what the parser does.
const commandsEach = 4

// TestMalformed: whatever is wrong with a configuration, neither the parser's
// errors, check, the log nor the refusal of a running server has six bytes in a
// row of a secret in it.
func TestMalformed(t *testing.T) {
	count, err := strconv.Atoi(os.Getenv(malformedEnv))
	if err != nil {
		count = 500
	}
	dir := t.TempDir()
	file, secretFile := filepath.Join(dir, "tgtd.yaml"), filepath.Join(dir, "s")
	m := newMalformed(12, secretFile)
	if err := os.WriteFile(secretFile, []byte(m.secrets[len(m.secrets)-1]), 0o600); err != nil {
		t.Fatal(err)
	}
	writeFile(t, file, m.text)
	serve(t, "-c", file, "--state-dir", dir)
	broken := filepath.Join(dir, "broken.yaml")
	names, refused := slices.Sorted(maps.Keys(mutations)), 0
	for i := range count {
		text, how := m.next(names)
		writeFile(t, broken, text)
		output, ok := outputsFor(dir, broken, text, i%commandsEach == 0)
		if !ok {
			refused++
		}
		if leaked := m.leaked(output); leaked != "" {
			t.Errorf("configuration %d (%s): %q is of a secret in\n%s\nof\n%s", i, strings.Join(how, ", "), leaked, output, text)
		}
	}
	t.Logf("%d configurations, %d of them refused", count, refused)
	if refused < count/2 {
		t.Errorf("%d of %d configurations were refused, expected most", refused, count)
	}
}

// outputsFor is everything that is said of a configuration, by commands too if they
// are asked, and whether it can be read.
func outputsFor(dir, file, text string, commands bool) (string, bool) {
	var all bytes.Buffer
	_, warnings, err := conf.Parse("broken", []byte(text))
	if err != nil {
		all.WriteString(err.Error())
		a := applier{log: slog.New(slog.NewTextHandler(&all, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		a.refused(asRefusal("broken", err))
	}
	for _, w := range warnings {
		all.WriteString(w.String())
	}
	if !commands {
		return all.String(), err == nil
	}
	c := cli.Console{Out: &all, Err: &all}
	run(context.Background(), []string{"check", file, "--state-dir", dir}, c)
	run(context.Background(), []string{"apply", "--dry-run", file, "--state-dir", dir}, c)
	return all.String(), err == nil
}

// leaked returns six bytes of a secret that a text has, or nothing.
func (m *malformed) leaked(text string) string {
	for _, secret := range m.secrets {
		for i := range len(secret) - 5 {
			if part := secret[i : i+6]; strings.Contains(text, part) {
				return part
			}
		}
	}
	return ""
}
