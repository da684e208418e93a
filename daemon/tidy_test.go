package daemon

import (
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/cli"
)

// TestTidy: a start removes what changes have left half-written, and nothing that somebody
// may have written.
func TestTidy(t *testing.T) {
	const edited = "# edited by hand\n" + objectsConfig
	for _, c := range []struct {
		name, beside string
		file         string // empty: as at the last start
		stays        bool
	}{
		{"killed before the file was written", "half of", "", false},
		{"killed behind that", objectsConfig, edited, false},
		{"edited meanwhile", "by hand", edited, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := serveObjects(t, objectsConfig)
			if status := o.stop(); status != cli.ExitOK {
				t.Fatalf("status %d", status)
			}
			beside, draft, ours := filepath.Join(o.dir, ".tgtd.yaml.new"), o.file+".new", filepath.Join(o.dir, "generations", "00000002.json.new")
			for path, text := range map[string]string{beside: c.beside, draft: "a draft", filepath.Join(o.dir, "identity.img.new"): "a volume", ours: "half of", filepath.Join(o.dir, "applied.json.new"): "half of"} {
				writeFile(t, path, text)
			}
			if c.file != "" {
				writeFile(t, o.file, c.file)
			}
			o.start()
			var left []string
			all, err := filepath.Glob(filepath.Join(o.dir, "*", "*.new"))
			if err != nil {
				t.Fatal(err)
			}
			more, _ := filepath.Glob(filepath.Join(o.dir, "*.new"))
			all = append(all, more...)
			for _, path := range all {
				left = append(left, filepath.Base(path))
			}
			want := "identity.img.new tgtd.yaml.new"
			if c.stays {
				want = ".tgtd.yaml.new " + want
			}
			if got := strings.Join(left, " "); got != want {
				t.Errorf("found %q, expected %q", got, want)
			}
			if c.stays != strings.Contains(o.log.String(), "edited while the server changed it") {
				t.Errorf("found log %s", o.log)
			}
		})
	}
}
