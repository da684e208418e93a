package dist

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestPages: whoever reads the packaged documentation finds what its links lead to.
func TestPages(t *testing.T) {
	dir := filepath.Join(unpacked(t), "usr/share/doc/lunar")
	pages, links := 0, 0
	err := filepath.WalkDir(dir, func(page string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(page) != ".md" {
			return err
		}
		pages++
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		for _, m := range markdownLink.FindAllStringSubmatch(string(text), -1) {
			to, _, _ := strings.Cut(m[1], "#")
			if to == "" || strings.Contains(to, "://") {
				continue
			}
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), to)); err != nil {
				t.Errorf("%s: %v", strings.TrimPrefix(page, dir), err)
			}
		}
		return nil
	})
	if err != nil || pages < 20 || links < 100 {
		t.Errorf("found %d pages with %d links, %v", pages, links, err)
	}
	for _, file := range []string{"install.md", "configuration.md", "tgtd.yaml", "copyright", "monitoring/lunar.rules.yml", "reports/performance.md", "openapi.json", "CHANGELOG.md"} {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			t.Error(err)
		}
	}
}
