package conf

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeExample: the ten lines of README.md are a valid configuration.
func TestReadmeExample(t *testing.T) {
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(data), "## Ten lines of configuration\n\n")
	if !found {
		t.Fatal("README.md has no section of that name")
	}
	example, _, _ := strings.Cut(section, "\n\n")
	var text strings.Builder
	for line := range strings.Lines(example) {
		text.WriteString(strings.TrimPrefix(line, "    "))
	}
	c, warnings, err := Parse("README.md", []byte(text.String()))
	if err != nil || len(warnings) > 0 {
		t.Fatalf("warnings %v, error %v in\n%s", warnings, err, text.String())
	}
	if n := strings.Count(example, "\n") + 1; n > 10 || len(c.Targets) != 1 {
		t.Errorf("found %d lines and %d targets, expected at most 10 and one", n, len(c.Targets))
	}
}
