package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// guided is the row of the fuzzers that Go guides by coverage. They know no server: there
// is no canary beside them.
var guided = attack{name: "fuzz-go", item: "fuzzing", fuzzes: true,
	how: "Whatever runs other code than the inputs before: Go's coverage-guided fuzzers (`Fuzz*`) of PDUs, keys, negotiation, sessions, CDBs, parameter lists, configurations, segments and saved files"}

// fuzzTarget is a function of a package's tests.
type fuzzTarget struct{ dir, name string }

var fuzzFunction = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// fuzzTargets are those of the server's module, from the root of the repository.
func fuzzTargets() (all []fuzzTarget, err error) {
	files, err := exec.Command("git", "ls-files", "*_test.go").Output()
	for file := range strings.FieldsSeq(string(files)) {
		if strings.HasPrefix(file, "scripts/") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range fuzzFunction.FindAllSubmatch(text, -1) {
			all = append(all, fuzzTarget{filepath.Dir(file), string(m[1])})
		}
	}
	return all, err
}

// guidedFuzzing runs each of them for so many seconds, and goes on from the inputs that
// the runs before have kept below build.
func (r *runCommand) guidedFuzzing(seconds float64) (outcome, error) {
	found := outcome{Figures: figures{}}
	targets, err := fuzzTargets()
	if err != nil {
		return found, err
	}
	for _, t := range targets {
		if err := r.fuzz(t, seconds, &found); err != nil {
			return found, fmt.Errorf("%s %s: %w", t.dir, t.name, err)
		}
	}
	found.CPUSeconds = math.Round(found.CPUSeconds)
	return found, nil
}

// execs are the inputs that a fuzzer has tried so far, kept those that its corpus gained
// over all runs.
var (
	execs   = regexp.MustCompile(`execs: (\d+)`)
	gathers = regexp.MustCompile(`\(total: (\d+)\)`)
)

func (r *runCommand) fuzz(t fuzzTarget, seconds float64, found *outcome) error {
	out, err := filepath.Abs("build/fuzz")
	if err != nil {
		return err
	}
	binary := filepath.Join(out, strings.ReplaceAll(t.dir, "/", "-")+".test")
	if said, err := exec.CommandContext(r.ctx, "go", "test", "-c", "-fuzz", ".", "-o", binary, "./"+t.dir).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	ctx, cancel := context.WithTimeout(r.ctx, 10*answerTime)
	defer cancel()
	c := exec.CommandContext(ctx, binary, "-test.run", "^$", "-test.fuzz", "^"+t.name+"$", "-test.fuzztime", fmt.Sprint(seconds, "s"),
		"-test.fuzzminimizetime", "10x", "-test.fuzzcachedir", filepath.Join(out, "corpus", t.dir))
	c.Dir = t.dir
	said, err := c.CombinedOutput()
	if c.ProcessState == nil || ctx.Err() != nil {
		return err
	}
	found.CPUSeconds += c.ProcessState.UserTime().Seconds() + c.ProcessState.SystemTime().Seconds()
	found.Figures[inputs] += last(execs, said)
	found.Figures[signatures] += last(gathers, said)
	if err != nil {
		found.Failed = append(found.Failed, fmt.Sprintf("%s %s: %s", t.dir, t.name, tail(string(said))))
	}
	return nil
}

// last is the number of the last match, 0 of none.
func last(of *regexp.Regexp, text []byte) float64 {
	all := of.FindAllSubmatch(text, -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.ParseFloat(string(all[len(all)-1][1]), 64)
	return n
}
