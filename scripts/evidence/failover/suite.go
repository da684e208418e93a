package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"lunar/scripts/evidence/notes"
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
	site, err := newSite(s.options)
	if err != nil {
		return r, err
	}
	defer site.end()
	r.How = "`iscsi-test-cu -d -t ALL` with two paths, " + strings.Replace(s.how(), "a volume", "a volume of its own", 1)
	r.Columns = []string{"owner", "paths by", "tests", "passed", "failed", "skipped", "not as expected"}
	wrong := 0
	for _, d := range deals {
		row, differ, err := site.deal(d)
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
func (s *site) deal(d deal) (row []string, differ int, err error) {
	owner, first, second := s.nodes[d.owner], s.nodes[d.first], s.nodes[d.second]
	now, err := s.owner()
	if err == nil && now != owner {
		err = owner.lunar("cluster", "move", volume, owner.name, "--socket", owner.Socket())
	}
	if err != nil {
		return nil, 0, err
	}
	said, _ := exec.Command(filepath.Join(s.Module, "scripts/conformance/run.sh"), "--url", "cluster", first.url(), second.url()).CombinedOutput() // its last line says more than its status
	os.Stderr.Write(said)
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	_, last, _ := strings.Cut(lines[len(lines)-1], "cluster: ")
	var tests, passed, failed, skipped, unfinished int
	if _, err := fmt.Sscanf(last, "%d tests, %d passed, %d failed, %d skipped, %d unfinished; %d differ", &tests, &passed, &failed, &skipped, &unfinished, &differ); err != nil {
		return nil, 0, fmt.Errorf("%q: %w", last, err)
	}
	for _, column := range []any{owner.name, first.name + ", " + second.name, tests, passed, failed + unfinished, skipped, differ} {
		row = append(row, fmt.Sprint(column))
	}
	return row, differ, nil
}

func (n *server) url() string { return fmt.Sprintf("iscsi://%s/%s/0", n.portal, targetName) }
