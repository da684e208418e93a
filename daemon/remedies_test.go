package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lunar/daemon/state"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// command does the command that a refusal names, as it is written there.
func (s *storeSite) command(t *testing.T, refusal, what string) {
	t.Helper()
	line := regexp.MustCompile(`(?m)lunar ` + what + ` .*$`).FindString(refusal)
	var out, log eventually.Output
	if status := run(t.Context(), strings.Fields(line)[1:], cli.Console{Out: &out, Err: &log}); status != cli.ExitOK {
		t.Fatalf("%s: found exit status %d\n%s", line, status, &log)
	}
}

// refusal is what a start that is refused says.
func (s *storeSite) refusal(t *testing.T) string {
	t.Helper()
	var out, log eventually.Output
	if status := run(t.Context(), append([]string{"serve"}, s.args()...), cli.Console{Out: &out, Err: &log}); status != cli.ExitFailure {
		t.Fatalf("found exit status %d, expected a refusal\n%s", status, &log)
	}
	return log.String()
}

// TestRefusalNamesCommands: the commands in a refusal do what it says as they stand there,
// and none is named that could not.
func TestRefusalNamesCommands(t *testing.T) {
	for _, what := range []string{"adopt", "forget"} {
		t.Run(what, func(t *testing.T) {
			s := newStoreSite(t, "{type: file, path: mount/v, size: 1MiB}")
			s.visit(t)
			if err := os.Truncate(filepath.Join(s.mount, "v"), 4096); err != nil {
				t.Fatal(err)
			}
			s.command(t, s.refusal(t), what)
			s.visit(t)
		})
	}
	s := newStoreSite(t, "{type: file, path: mount/v, size: 1MiB}")
	s.visit(t)
	if err := os.Remove(filepath.Join(s.mount, "v")); err != nil {
		t.Fatal(err)
	}
	refusal := s.refusal(t)
	if strings.Contains(refusal, "adopt") {
		t.Errorf("there is nothing to adopt\n%s", refusal)
	}
	s.command(t, refusal, "forget")
	s.visit(t)
}

// TestExchangedStores: volumes whose files or paths were exchanged are not served to each
// other's initiators, until an administrator says so.
func TestExchangedStores(t *testing.T) {
	s := newStoreSite(t, "{type: file, path: mount/v, size: 1MiB}, w: {type: file, path: mount/w, size: 1MiB}")
	s.visit(t)
	s.configure(t, "{type: file, path: mount/w, size: 1MiB}, w: {type: file, path: mount/v, size: 1MiB}")
	refusal := s.refusal(t)
	for _, want := range []string{"volume v: " + filepath.Join(s.mount, "w") + " is the store of volume w", "volume w: " + filepath.Join(s.mount, "v") + " is the store of volume v"} {
		if !strings.Contains(refusal, want) {
			t.Errorf("expected %q\n%s", want, refusal)
		}
	}
	s.command(t, refusal, "adopt v")
	s.command(t, refusal, "adopt w")
	s.visit(t)
	s.configure(t, "{type: file, path: mount/w, size: 1MiB}") // w is gone: its file may become another's
	s.visit(t)
}

// TestIntentionOfNobody: what is said of a volume needs the server's state directory and
// configuration.
func TestIntentionOfNobody(t *testing.T) {
	s := newStoreSite(t, "{type: file, path: mount/v, size: 1MiB}")
	s.visit(t)
	elsewhere := filepath.Join(t.TempDir(), "state")
	for want, args := range map[string][]string{
		"--state-dir names": {"-c", s.config, "--state-dir", elsewhere},
		"-c names":          {"--state-dir", s.dir},
	} {
		var out, log eventually.Output
		if status := run(t.Context(), append([]string{"adopt", "v"}, args...), cli.Console{Out: &out, Err: &log}); status != cli.ExitFailure || !strings.Contains(log.String(), want) {
			t.Errorf("found exit status %d, expected %q\n%s", status, want, &log)
		}
	}
	if _, err := os.Stat(elsewhere); err == nil {
		t.Error("a state directory was made")
	}
}

// TestIntentionBesideServer: a server with a control socket of its own is asked there.
func TestIntentionBesideServer(t *testing.T) {
	s := newStoreSite(t, "{type: file, path: mount/v, size: 1MiB}")
	socket := filepath.Join(t.TempDir(), "s")
	running := serve(t, append(s.args(), "--socket", socket)...)
	defer running.stop()
	var out, log eventually.Output
	if status := run(t.Context(), append([]string{"forget", "v", "--socket", socket}, s.args()...), cli.Console{Out: &out, Err: &log}); status != cli.ExitFailure || !strings.Contains(log.String(), "is being served") {
		t.Errorf("found exit status %d\n%s", status, &log)
	}
}

// TestLostStateDirectory: with nothing but the identity of before, a server gets the segment
// and what is unwritten in it.
func TestLostStateDirectory(t *testing.T) {
	w := newWriteBack(t)
	w.crashed(t)
	id, _, err := state.ReadIdentity(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if own := e.Name() == "back.img" || e.Name() == filepath.Base(w.config); own {
			continue
		}
		if err := os.RemoveAll(filepath.Join(w.dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(w.dir, "identity"), id+"\n")
	s := serve(t, w.args()...)
	defer s.stop()
	if got := transfer(t, w.dial(t, s.portal), cdb10(0x28, 0), 0, nil, 64<<10); !bytes.Equal(got, pattern(0, 0)) {
		t.Errorf("found %q", got[:32])
	}
}
