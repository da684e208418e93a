package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFirstBuild: what setup installs in the first line of a recipe is found by the
// next, in each target that asks for the RDMA headers.
func TestFirstBuild(t *testing.T) {
	for _, target := range []string{"build", "vet", "lint", "unit", "race", "stress"} {
		for _, installs := range []bool{true, false} {
			tags := tagsOf(t, target, installs)
			if len(tags) == 0 {
				t.Errorf("make %s: found no command with -tags", target)
			}
			for _, tag := range tags {
				if strings.Contains(tag, "rdma") != installs || strings.Contains(tag, "infiniband") {
					t.Errorf("make %s: found tags %q, headers installed: %v", target, tag, installs)
				}
			}
		}
	}
}

// TestPurposes: the setup knows each purpose that a target asks it for.
func TestPurposes(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile("../../scripts/setup/packages.list")
	if err != nil {
		t.Fatal(err)
	}
	asked := regexp.MustCompile(`(?m)^\t@?\$\(SETUP\) (\w+)`).FindAllSubmatch(makefile, -1)
	if len(asked) == 0 {
		t.Fatal("found no target that asks for a purpose")
	}
	for _, a := range asked {
		purpose := string(a[1])
		if purpose != "run" && !regexp.MustCompile(`(?m)^`+purpose+`\s`).Match(list) {
			t.Errorf("the Makefile asks for packages of the purpose %q, found none in packages.list", purpose)
		}
	}
}

// tagsOf runs setup and then a target, with a setup that installs a header or does
// not, a preprocessor that looks for it, and a Go command that does nothing; it
// returns the -tags that this one was given. The build target runs setup itself.
func tagsOf(t *testing.T, target string, installs bool) (tags []string) {
	dir := t.TempDir()
	header, log := filepath.Join(dir, "verbs.h"), filepath.Join(dir, "log")
	install := "true"
	if installs {
		install = "touch " + header
	}
	tool := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return name + "=" + path
	}
	args := []string{"-C", "../..", "setup", target, "BUILD=" + dir,
		tool("SETUP", install), tool("CC", "test -e "+header), tool("GO", `printf '%s\n' "$@" >> `+log)}
	if target == "build" {
		args = slices.Delete(args, 2, 3)
	}
	cmd := exec.CommandContext(t.Context(), "make", args...)
	cmd.Env = append(os.Environ(), "MAKEFLAGS=") // else those of the make that runs this test
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make %s: %v\n%s", target, err, out)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Split(string(text), "\n")
	for i := range len(words) - 1 {
		if words[i] == "-tags" {
			tags = append(tags, words[i+1])
		}
	}
	return tags
}
