package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// TestStoredTwice: one file by a link, of either kind, is refused by check, by a start
// and by apply, whatever it is for; several that only read may share one.
func TestStoredTwice(t *testing.T) {
	s := newStoreSite(t, "{type: file, path: a, size: 1MiB}")
	for _, name := range []string{"a", "b"} {
		writeFile(t, filepath.Join(s.dir, name), strings.Repeat("0", 1<<20))
	}
	for link, make := range map[string]func(string, string) error{"soft": os.Symlink, "hard": os.Link} {
		if err := make(filepath.Join(s.dir, "a"), filepath.Join(s.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	running := serve(t, s.args()...)
	for other, want := range map[string]string{
		"{type: file, path: DIR/soft}":                                        "a of volume v",
		"{type: file, path: DIR/hard}":                                        "a of volume v",
		"{type: file, path: DIR/b, protection: 1, protection-file: DIR/soft}": "a of volume v",
		"{type: file, path: DIR/soft, read-only: true}":                       "a of volume v",
	} {
		s.configure(t, "{type: file, path: "+s.dir+"/a, size: 1MiB}, w: "+strings.ReplaceAll(other, "DIR", s.dir))
		for _, args := range [][]string{{"check", s.config}, {"apply", s.config}, {"serve", "-c", s.config}} {
			var out, log eventually.Output
			state := s.dir
			if args[0] == "serve" {
				state = t.TempDir()
			}
			if status := run(t.Context(), append(args, "--state-dir", state), cli.Console{Out: &out, Err: &log}); status != cli.ExitFailure || !strings.Contains(log.String(), want) {
				t.Errorf("%s with %s: found exit status %d, expected %q\n%s", args[0], other, status, want, &log)
			}
		}
	}
	running.stop()
	s.configure(t, "{type: file, path: a, read-only: true}, w: {type: file, path: hard, read-only: true}")
	s.visit(t)
}

// TestRenamedLooksOnce: each file of volumes that come and go is looked at once, and
// none if none goes.
func TestRenamedLooksOnce(t *testing.T) {
	looked := map[string]int{}
	key := func(path string) (medium.Key, bool) {
		looked[path]++
		return medium.Key{Path: strings.TrimPrefix(path, "/link")}, path != ""
	}
	var fresh, gone []*conf.Volume
	for i := range 100 {
		fresh = append(fresh, &conf.Volume{Name: fmt.Sprint("new", i), Path: fmt.Sprint("/link/", i+50)})
		gone = append(gone, &conf.Volume{Name: fmt.Sprint("old", i), Path: fmt.Sprint("/", i)})
	}
	fresh = append(fresh, &conf.Volume{Name: "ram"})
	if found := renamed(fresh, nil, key); len(found) > 0 || len(looked) > 0 {
		t.Errorf("found %v, and %d files were looked at", found, len(looked))
	}
	found := renamed(fresh, append(gone, &conf.Volume{Name: "null"}), key)
	if len(found) != 50 || found["new0"] != "old50" || found["new49"] != "old99" {
		t.Errorf("found %v", found)
	}
	for path, times := range looked {
		if times > 1 && path != "" {
			t.Errorf("%s was looked at %d times", path, times)
		}
	}
}
