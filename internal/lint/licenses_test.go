package lint

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/licensecheck"
)

var update = flag.Bool("update", false, "write docs/internals/licenses.md anew")

// usable are the licenses that code under Apache-2.0 may be linked with, by their names
// in SPDX.
var usable = []string{"Apache-2.0", "MIT", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MPL-2.0"}

// judged are modules whose files had to be read by somebody. Neither is in the server:
// tgtsim draws its figures with them.
var judged = map[string]string{
	"github.com/golang/freetype": "FTL (or GPL-2.0-or-later, as one chooses)",
	"github.com/ajstarks/svgo":   "CC-BY-4.0",
}

// module is one that something of the project is built with.
type module struct {
	path, version, dir string
	in                 string // the most that it is part of: a binary, lunar-etcd, tests, or the tools
}

const binaries = "binaries"

// modulesOf are those of packages and all that they import.
func modulesOf(t *testing.T, dir, in string, arguments ...string) (all []module) {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}} {{.Dir}}{{end}}"}, arguments...)...)
	list.Dir, list.Stderr = dir, os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] != "lunar" {
			all = append(all, module{f[0], f[1], f[2], in})
		}
	}
	return all
}

// licensesIn are the licenses of a module's files that hold some, by the names that such
// files have.
func licensesIn(t *testing.T, dir string) (found []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !licenseFile.MatchString(e.Name()) || e.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range licensecheck.Scan(text).Match {
			if !slices.Contains(found, match.ID) {
				found = append(found, match.ID)
			}
		}
	}
	slices.Sort(found)
	return found
}

var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([.-].*)?$`)

// TestLicenses: every module that is built in has licenses that it may have, and
// docs/internals/licenses.md names them.
func TestLicenses(t *testing.T) {
	all := modulesOf(t, root, binaries, "./cmd/...")
	all = append(all, modulesOf(t, root+"/cluster/lunar-etcd", "lunar-etcd", "./...")...)
	all = append(all, modulesOf(t, root, "tests", "-test", "./...")...)
	all = append(all, modulesOf(t, root+"/scripts", "tools", "-test", "./...")...)
	all = append(all, module{"lit-html (npm)", "3.3.3", root + "/control/webpage", binaries}) // control/webpage has its file
	slices.SortStableFunc(all, func(a, b module) int { return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.version, b.version)) })
	all = slices.CompactFunc(all, func(a, b module) bool { return a.path == b.path && a.version == b.version })
	var table strings.Builder
	table.WriteString("# Licenses\n\nThe modules that the binaries, lunar-etcd and the tools (`cluster/lunar-etcd` and `scripts`, Go modules of their own), and the tests are built with, and the licenses in them. `go test ./internal/lint -run TestLicenses -update` writes this page; [dependencies.md](dependencies.md) says what they are for.\n\n| module | version | license | in |\n|---|---|---|---|\n")
	for _, m := range all {
		found := licensesIn(t, m.dir)
		if license, read := judged[m.path]; read && m.in == "tools" {
			found = []string{license}
		} else if !slices.ContainsFunc(found, func(l string) bool { return slices.Contains(usable, l) }) {
			t.Errorf("%s %s: found %v, expected one of %v", m.path, m.version, found, usable)
		}
		fmt.Fprintf(&table, "| %s | %s | %s | %s |\n", m.path, m.version, strings.Join(found, ", "), m.in)
	}
	path := filepath.Join(root, "docs/internals/licenses.md")
	if *update {
		if err := os.WriteFile(path, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != table.String() {
		t.Errorf("%s is not up to date (%v): go test ./internal/lint -run TestLicenses -update", path, err)
	}
}

// TestDependencyTable: docs/internals/dependencies.md has a row for every module that a go.mod
// requires for the project's own code, with its version, and for no other.
func TestDependencyTable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs/internals/dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, module := range modules {
		requires, err := os.ReadFile(filepath.Join(module, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(requires)) {
			f := strings.Fields(strings.TrimPrefix(line, "require "))
			if len(f) != 2 || !strings.Contains(f[0], ".") {
				continue // it is no module of others
			}
			if other := want[f[0]]; other != "" && other != f[1] {
				t.Errorf("%s: the modules require %s and %s", f[0], other, f[1])
			}
			want[f[0]] = f[1]
		}
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.Contains(cells[1], ".") {
			continue
		}
		path, version := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
		if want[path] != version {
			t.Errorf("%s %s: go.mod has %q", path, version, want[path])
		}
		delete(want, path)
	}
	for path, version := range want {
		t.Errorf("%s %s has no row", path, version)
	}
}
