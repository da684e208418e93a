package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lunar/conf"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// TestCheckPaths: check tells of what a start would stumble over, and makes
// nothing.
func TestCheckPaths(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "there"), strings.Repeat("x", 1<<20))
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "tgtd.yaml")
	for _, test := range []struct{ volume, want string }{
		{"{type: file, path: DIR/there}", ""},
		{"{type: file, path: DIR/new, size: 1MiB}", ""},
		{"{type: file, path: below.img, size: 1MiB}", ""},
		{"{type: file, path: DIR/new}", "no such file"},
		{"{type: file, path: DIR/new, size: 1MiB, read-only: true}", "has to be there"},
		{"{type: file, path: DIR/missing/new, size: 1MiB}", "missing/new cannot be made"},
		{"{type: file, path: DIR/there/new, size: 1MiB}", "not a directory"},
		{"{type: file, path: DIR, size: 1MiB}", "expected a regular file"},
		{"{type: file, path: DIR/pipe, size: 1MiB}", "expected a regular file"},
		{"{type: file, path: /dev/null, size: 1MiB}", "expected a regular file"},
		{"{type: gotgt, driver: file, path: DIR/there}", ""},
		{"{type: gotgt, driver: file, path: DIR/new}", "no such file or directory; gotgt's driver makes none"},
		{"{type: gotgt, driver: file, path: DIR}", "expected a regular file"},
		{"{type: gotgt, driver: other, path: DIR/there}", `found "other", expected one of file, null`},
		{"{type: block, path: DIR/there}", "found no block device"},
		{"{type: block, path: /dev/null}", "found no block device"},
		{"{type: block, path: DIR/missing}", "no such file"},
		{"{type: file, path: DIR/there, protection: 1, protection-file: DIR/missing/pi}", "missing/pi cannot be made"},
	} {
		writeFile(t, file, "portal-groups: {a: {listen: [\"192.0.2.77:1\"]}}\nvolumes: {v: "+strings.ReplaceAll(test.volume, "DIR", dir)+
			"}\ntargets: {\"iqn.2026-11.test:t\": {luns: {0: v}}}\n")
		var out eventually.Output
		status := run(t.Context(), []string{"check", file, "--state-dir", filepath.Join(dir, "state")}, cli.Console{Out: &out, Err: &out})
		if (status == cli.ExitOK) != (test.want == "") || !strings.Contains(out.String(), test.want) {
			t.Errorf("%s: found exit status %d, %s, expected %q", test.volume, status, &out, test.want)
		}
		if status == cli.ExitOK && !strings.Contains(out.String(), "192.0.2.77:1, which no network interface") {
			t.Errorf("%s: found no word of the portal in %s", test.volume, &out)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 3 {
		t.Errorf("found %v, expected nothing new", entries)
	}
}

// TestCheckLinks: a rate of a network device that is not there is noted.
func TestCheckLinks(t *testing.T) {
	var cfg conf.Config
	cfg.QoS.Network.Links = map[string]int64{"lo": 1, "lo1": 1, "nothing-like-it": 1}
	notes := checkLinks(&cfg)
	if len(notes) != 2 || !strings.Contains(notes[0], "found lo1") || !strings.HasSuffix(notes[0], "did you mean lo?") || !strings.HasSuffix(notes[1], "of this machine now") {
		t.Errorf("found %q", notes)
	}
}
