package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/scripts/sim/experiment"
)

// TestIdentifiers: every experiment has its own, and all that list shows.
func TestIdentifiers(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range experiments() {
		if seen[e.ID] {
			t.Errorf("%s is there twice", e.ID)
		}
		seen[e.ID] = true
		if e.Setup == "" || e.Paper == "" || (e.Run == nil) == (e.Excluded == "") || (e.Run != nil) == (e.Check == "") {
			t.Errorf("%s lacks set-up, paper's value, check or reason", e.ID)
		}
	}
	for _, id := range []string{"haechi-1a", "haechi-2a-zipf", "haechi-4-under-zipf", "pshift-1", "pshift-3c", "pshift-fig6", "pshift-4c",
		"numa-5.2", "numa-5-9", "numa-5-10", "numa-5-11", "numa-t5.3", "fussy-e", "fussy-l", "fussy-h",
		"tyche-t2", "tyche-t3", "tyche-path", "tyche-fig1", "tyche-fig5-reads", "tyche-fig6", "tyche-fig7", "tyche-fig8-writes",
		"events-5-12", "events-scaling", "events-t5.2", "events-5-15", "events-batching", "events-integrity"} {
		if !seen[id] {
			t.Errorf("%s is missing", id)
		}
	}
}

// TestList: one line per experiment, with the reason where none can run.
func TestList(t *testing.T) {
	var out strings.Builder
	if err := list(&out, experiments()); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), "\n"); lines != len(experiments())+1 {
		t.Errorf("%d lines, expected %d", lines, len(experiments())+1)
	}
	if !strings.Contains(out.String(), "not checkable: ") {
		t.Error("no experiment says why it cannot be checked")
	}
}

func TestChoose(t *testing.T) {
	all := []experiment.Experiment{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d-1"}, {ID: "d-2"}}
	for _, tc := range []struct {
		ids  []string
		want string
		fail bool
	}{
		{[]string{"all"}, "abcd-1d-2", false},
		{[]string{"c", "a"}, "ac", false},
		{[]string{"all", "b"}, "abcd-1d-2", false},
		{[]string{"d", "b"}, "bd-1d-2", false},
		{[]string{"d-2"}, "d-2", false},
		{[]string{"b", "e"}, "", true},
	} {
		chosen, err := choose(all, tc.ids)
		got := ""
		for _, e := range chosen {
			got += e.ID
		}
		if got != tc.want || (err != nil) != tc.fail {
			t.Errorf("choose(%v) = %q, %v, expected %q, error %t", tc.ids, got, err, tc.want, tc.fail)
		}
	}
}

// fake is an experiment with one check and one figure.
func fake(verdict experiment.Verdict) experiment.Experiment {
	return experiment.Experiment{ID: "fake", Setup: "nothing", Run: func(*experiment.Env) (r experiment.Result) {
		r.Add(experiment.Check{Name: "rate", Paper: "1", Expected: "≥1", Measured: "2", Verdict: verdict, Note: "because"})
		r.Figures = []experiment.Figure{{
			Name: "fake", Title: "Fake", X: "x", Y: "y", LogX: true, LogY: true,
			Series: []experiment.Series{experiment.Line("one", 1, []float64{1, 2, 3}), experiment.Line("two", 1, []float64{3, 2, 1})},
		}}
		return r
	}}
}

// TestRunAll: the table, the figure, and an error when a check failed.
func TestRunAll(t *testing.T) {
	for verdict, want := range map[experiment.Verdict]error{experiment.Pass: nil, experiment.Report: nil, experiment.Fail: errFailed} {
		var out bytes.Buffer
		dir := filepath.Join(t.TempDir(), "plots")
		chosen := []experiment.Experiment{fake(verdict), {ID: "real", Excluded: "needs a disk"}}
		if err := runAll(&out, &experiment.Env{}, chosen, dir); !errors.Is(err, want) {
			t.Errorf("%s: error %v, expected %v", verdict, err, want)
		}
		for _, part := range []string{"| paper", "| 1 ", "| ≥1 ", "| 2 ", "| " + verdict.String(), "note: rate: because", "real: not checkable: needs a disk"} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%s: no %q in\n%s", verdict, part, &out)
			}
		}
		svg, err := os.ReadFile(filepath.Join(dir, "fake.svg"))
		if err != nil || !bytes.Contains(svg, []byte("<svg")) {
			t.Errorf("figure of %d bytes, error %v", len(svg), err)
		}
	}
}

// TestRunWritesLog: a run as the command line makes it.
func TestRunWritesLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	c := runCmd{IDs: []string{"pshift-3a"}, Reduced: true, Seed: 1, Log: path}
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(log, []byte(" issue ")) {
		t.Errorf("decision log of %d bytes, error %v", len(log), err)
	}
	if err := (&runCmd{IDs: []string{"nothing"}}).Run(); err == nil {
		t.Error("an unknown identifier was accepted")
	}
}
