// Command pages copies the documentation that packages have. A link to what they do not
// have becomes text, with the place that it has in the sources.
package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

type commandLine struct {
	Root string `required:"" type:"existingdir" help:"The sources."`
	Out  string `required:"" type:"path" help:"Directory of what is written."`
}

func main() {
	var k commandLine
	kong.Parse(&k, kong.Description("Copy the documentation of a package."))
	if err := k.write(); err != nil {
		fmt.Fprintf(os.Stderr, "pages: %v\n", err)
		os.Exit(1)
	}
}

// packaged are the files of the documentation: patterns of the sources, and the directories
// that the files lie in.
var packaged = []struct{ pattern, dir string }{
	{"docs/*.md", "."},
	{"docs/monitoring/*", "monitoring"},
	{"docs/reports/*.md", "reports"},
	{"docs/internals/stores.md", "internals"},
	{"docs/internals/recovery.md", "internals"},
	{"docs/internals/conformance*.md", "internals"},
	{"CHANGELOG.md", "."},
	{"SECURITY.md", "."},
	{"conf/tgtd.yaml", "."},
	{"control/openapi.json", "."},
}

// places are where files of the sources lie.
func places(root string) (map[string]string, error) {
	at := map[string]string{}
	for _, p := range packaged {
		files, err := fs.Glob(os.DirFS(root), p.pattern)
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("%s: found no files (%v)", p.pattern, err)
		}
		for _, file := range files {
			at[file] = path.Join(p.dir, path.Base(file))
		}
	}
	return at, nil
}

func (k commandLine) write() error {
	at, err := places(k.Root)
	if err != nil {
		return err
	}
	for file, place := range at {
		text, err := os.ReadFile(filepath.Join(k.Root, file))
		if err != nil {
			return err
		}
		if path.Ext(file) == ".md" {
			text = []byte(relinked(string(text), file, at))
		}
		to := filepath.Join(k.Out, place)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

var link = regexp.MustCompile(`(!?)\[([^\]]*)\]\(([^)\s]+)\)`)

// relinked is the text of a file of the sources with links as they lead from its place.
func relinked(text, file string, at map[string]string) string {
	return link.ReplaceAllStringFunc(text, func(whole string) string {
		m := link.FindStringSubmatch(whole)
		to, anchor, anchored := strings.Cut(m[3], "#")
		if to == "" || strings.Contains(m[3], "://") {
			return whole
		}
		source := path.Join(path.Dir(file), to)
		place, ok := at[source]
		switch {
		case !ok && strings.HasSuffix(source, m[2]):
			return source + " of the sources"
		case !ok:
			return fmt.Sprintf("%s (%s of the sources)", m[2], source)
		}
		if anchored {
			anchor = "#" + anchor
		}
		there, err := filepath.Rel(path.Dir(at[file]), place)
		if err != nil {
			return whole
		}
		return fmt.Sprintf("%s[%s](%s%s)", m[1], m[2], there, anchor)
	})
}
