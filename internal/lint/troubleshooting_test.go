package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// TestQuotedMessagesExist: the messages that docs/troubleshooting.md quotes, in the first
// column of its tables, are in the code. What stands for a value (…) parts them.
func TestQuotedMessagesExist(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, f := range goFiles(t) {
		if !f.test {
			code.Write(f.text)
		}
	}
	found := 0
	for line := range strings.Lines(string(page)) {
		first, _, row := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		if !row || !strings.HasPrefix(line, "|") {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(first, -1) {
			for part := range strings.SplitSeq(m[1], "…") {
				part = strings.Trim(part, " ;:,")
				if len(part) < 4 || strings.HasPrefix(part, "--") {
					continue
				}
				found++
				if !strings.Contains(code.String(), part) {
					t.Errorf("docs/troubleshooting.md quotes %q, which no code says", part)
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("found %d quoted messages", found)
	}
}
