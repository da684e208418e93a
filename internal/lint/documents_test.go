package lint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// maxParagraphWords is how long a paragraph, list item or table row of
// ARCHITECTURE.md may be.
const maxParagraphWords = 120

var (
	fileName     = regexp.MustCompile("`([\\w./-]+\\.go)`")
	testName     = regexp.MustCompile("`(Test[A-Z]\\w*)[`/]")
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	docFileName  = regexp.MustCompile(`[\w./-]*\w\.go\b`)
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	documentName = regexp.MustCompile(`\bdocs/[\w./-]+\.md\b`)
	heading      = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fence        = regexp.MustCompile("(?ms)^```.*?^```$")
)

// documents returns the text of all Markdown files by their paths.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, path := range allFiles(t) {
		if filepath.Ext(path) != ".md" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Clean(path)] = string(text)
	}
	return texts
}

// anchor is the name that a heading gets on the web.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// TestLinks: every relative link of a document leads to a file of the tree, and its
// anchor to a heading there.
func TestLinks(t *testing.T) {
	texts := documents(t)
	for path, text := range texts {
		for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, name, anchored := strings.Cut(m[1], "#")
			to := path
			if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: link to %s: %v", path, m[1], err)
			} else if anchored && !hasAnchor(texts[to], name) {
				t.Errorf("%s: link to %s: no such heading", path, m[1])
			}
		}
	}
}

func hasAnchor(text, name string) bool {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		if anchor(m[1]) == name {
			return true
		}
	}
	return false
}

// unwritten are documents that a command of the Makefile writes and that nobody has
// checked in.
var unwritten = map[string]bool{"docs/reports/tests.md": true}

// TestDocumentNames: a document that any text of the tree names exists.
func TestDocumentNames(t *testing.T) {
	for _, path := range allFiles(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !isText(text) {
			continue
		}
		for _, name := range documentName.FindAllString(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, name)); errors.Is(err, fs.ErrNotExist) && !unwritten[name] {
				t.Errorf("%s names %s, which does not exist", path, name)
			}
		}
	}
}

// TestTables: a table begins after an empty line with a head and a rule, all rows have
// as many cells, and an empty line ends it.
func TestTables(t *testing.T) {
	for path, text := range documents(t) {
		row, cells, before := 0, 0, ""
		for line := range strings.Lines(fence.ReplaceAllString(text, "")) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, "<!--") {
				line = ""
			}
			n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") - 1
			switch {
			case !strings.HasPrefix(line, "|"):
				if row > 0 && line != "" {
					t.Errorf("%s: text directly below a table: %.80s", path, line)
				}
				row = 0
			case row == 0 && before != "":
				t.Errorf("%s: a table directly below text: %.80s", path, line)
			case row == 1 && !strings.HasPrefix(line, "|--") && !strings.HasPrefix(line, "|:-"):
				t.Errorf("%s: found %.80s, expected the rule below a head", path, line)
			case row > 0 && n != cells:
				t.Errorf("%s: found %d cells, expected %d: %.80s", path, n, cells, line)
			}
			if strings.HasPrefix(line, "|") {
				row, cells = row+1, n
			}
			before = line
		}
	}
}

// TestParagraphs: nobody has to read much at once to find a way in ARCHITECTURE.md.
func TestParagraphs(t *testing.T) {
	text := documents(t)[filepath.Join(root, "ARCHITECTURE.md")]
	if text == "" {
		t.Fatal("no ARCHITECTURE.md")
	}
	for line := range strings.Lines(fence.ReplaceAllString(text, "")) {
		if n := len(strings.Fields(line)); n > maxParagraphWords {
			t.Errorf("found %d words, expected at most %d: %.80s", n, maxParagraphWords, line)
		}
	}
}

// TestFileNames: each Go file that a page for contributors names exists.
func TestFileNames(t *testing.T) {
	for path, text := range documents(t) {
		if filepath.Base(path) == "CHANGELOG.md" {
			continue
		}
		for _, m := range fileName.FindAllStringSubmatch(text, -1) {
			if !slices.ContainsFunc(allFiles(t), func(f string) bool { return strings.HasSuffix(f, "/"+m[1]) }) {
				t.Errorf("%s names %s, which does not exist", path, m[1])
			}
		}
	}
}

// TestNamedTests: each test that a page gives as evidence exists.
func TestNamedTests(t *testing.T) {
	there := map[string]bool{}
	for _, f := range goFiles(t) {
		for _, m := range testFunction.FindAllSubmatch(f.text, -1) {
			there[string(m[1])] = true
		}
	}
	for path, text := range documents(t) {
		if filepath.Base(path) == "CHANGELOG.md" {
			continue
		}
		for _, m := range testName.FindAllStringSubmatch(text, -1) {
			if !there[m[1]] {
				t.Errorf("%s names %s, which does not exist", path, m[1])
			}
		}
	}
}

// TestDocFileNames: each Go file that a doc.go names exists in its package, or where
// the path leads from there or from the root.
func TestDocFileNames(t *testing.T) {
	for _, f := range goFiles(t) {
		if filepath.Base(f.path) != "doc.go" {
			continue
		}
		for _, name := range docFileName.FindAllString(string(f.text), -1) {
			_, here := os.Stat(filepath.Join(root, f.dir, name))
			_, there := os.Stat(filepath.Join(root, name))
			if here != nil && there != nil {
				t.Errorf("%s names %s, which does not exist", f.path, name)
			}
		}
	}
}
