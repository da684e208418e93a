package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"lunar/scripts/evidence/notes"
	"lunar/scripts/evidence/site"
)

// deal is a run of libiscsi's suite: which node owns the volume, and by which the suite's two
// paths lead.
type deal struct{ owner, first, second int }

// deals have each node be the owner, the first path and the second one, and the owner be none of
// the paths, too.
var deals = []deal{{0, 0, 1}, {1, 2, 1}, {2, 0, 1}}

// suite runs libiscsi's suite in each deal. The volume is moved between the runs, so that what
// one has left behind, the next one meets at another owner. The suite writes over the volume,
// which therefore is none that anybody else uses.
func (s *scene) suite() (r notes.Result, err error) {
	if err := s.end(); err != nil {
		return r, err
	}
	s.load, s.site = nil, nil
	own, err := site.New(s.Options, volumeBytes)
	if err != nil {
		return r, err
	}
	defer own.End()
	r.How = "`iscsi-test-cu -d -t ALL` with two paths. " + s.how()
	r.Columns = []string{"owner", "paths by", "tests", "passed", "failed", "skipped", "not as expected"}
	wrong := 0
	for _, d := range deals {
		row, differ, err := s.deal(own, d)
		if err != nil {
			return r, err
		}
		r.Rows = append(r.Rows, row)
		wrong += differ
	}
	r.Facts = []notes.Fact{notes.Found("tests that ended otherwise than expected (scripts/conformance/expected-cluster.txt)", fmt.Sprint(wrong), wrong == 0)}
	return r, nil
}

// deal runs the suite once.
func (o *options) deal(s *site.Site, d deal) (row []string, differ int, err error) {
	owner, first, second := s.Nodes[d.owner], s.Nodes[d.first], s.Nodes[d.second]
	if err := s.MoveTo(owner); err != nil {
		return nil, 0, err
	}
	said, _ := exec.Command(filepath.Join(o.Module, "scripts/conformance/run.sh"), "--url", "cluster", url(first), url(second)).CombinedOutput() // its last line says more than its status
	os.Stderr.Write(said)
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	_, last, _ := strings.Cut(lines[len(lines)-1], "cluster: ")
	var tests, passed, failed, skipped, unfinished int
	if _, err := fmt.Sscanf(last, "%d tests, %d passed, %d failed, %d skipped, %d unfinished; %d differ", &tests, &passed, &failed, &skipped, &unfinished, &differ); err != nil {
		return nil, 0, fmt.Errorf("%q: %w", last, err)
	}
	for _, column := range []any{owner.Name, first.Name + ", " + second.Name, tests, passed, failed + unfinished, skipped, differ} {
		row = append(row, fmt.Sprint(column))
	}
	return row, differ, nil
}

func url(n *site.Node) string { return fmt.Sprintf("iscsi://%s/%s/0", n.Portal, site.Target) }
