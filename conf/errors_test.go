package conf

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files of testdata anew")

// TestErrors compares the whole report of each broken file with its golden
// text.
func TestErrors(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = Parse(filepath.Base(file), data)
			if err == nil {
				t.Fatal("no error")
			}
			if strings.Contains(err.Error(), "hunter") {
				t.Errorf("a secret shows:\n%v", err)
			}
			compareGolden(t, strings.TrimSuffix(file, "yaml")+"txt", err.Error()+"\n")
		})
	}
}

// TestProblemsAreBounded: of a text with a problem in each line the first are told, and
// how many more there are.
func TestProblemsAreBounded(t *testing.T) {
	for name, text := range map[string]string{
		"unknown keys":       manyKeys(1001),
		"keys of a mapping":  "server:\n" + strings.Repeat("  threads: 1\n", 1001),
		"values of no sense": "volumes:\n" + strings.ReplaceAll(manyKeys(1001), "key", "  v"),
	} {
		_, _, err := Parse("f.yaml", []byte(text))
		problems, ok := err.(Errors)
		if !ok || len(problems) != maxProblems+1 {
			t.Errorf("%s: %d problems, expected %d", name, len(problems), maxProblems+1)
			continue
		}
		if last := problems[maxProblems].Found; !strings.HasSuffix(last, " more problems") || strings.HasPrefix(last, "0") {
			t.Errorf("%s: the last is %q, expected how many more there are", name, last)
		}
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "key%d: x\n", i)
	}
	return b.String()
}

func compareGolden(t *testing.T, golden, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s(-rewrite writes it)", got, want)
	}
}

func TestEveryErrorHasItsPlace(t *testing.T) {
	data, err := os.ReadFile("testdata/errors/references.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = Parse("f.yaml", data)
	problems, ok := err.(Errors)
	if !ok {
		t.Fatalf("found %T, expected Errors", err)
	}
	for _, p := range problems {
		if p.Line == 0 || p.Column == 0 || p.Key == "" || p.Found == "" || p.Expected == "" {
			t.Errorf("incomplete: %+v", p)
		}
	}
}
