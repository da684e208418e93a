package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"lunar/scripts/evidence/notes"
	"lunar/scripts/evidence/site"
)

// aroundTime is for how long users stay away from the owner.
const aroundTime = 10 * time.Second

// around has all users take paths to nodes that do not own the volume.
func (s *scene) around(at *site.Site) error {
	owner, err := at.Owner()
	if err != nil {
		return err
	}
	s.load.avoid.Store(int32(slices.Index(at.Nodes, owner) + 1))
	defer s.load.avoid.Store(0)
	time.Sleep(aroundTime)
	return nil
}

// pace is what tgtload measures.
type pace struct {
	IOPS    float64 `json:"iops"`
	Latency struct {
		P50 float64 `json:"p50"`
		P99 float64 `json:"p99"`
	} `json:"latency_us"`
	Server struct {
		PerIO float64 `json:"us_per_io"`
	} `json:"server_cpu"`
	First *struct {
		Sense string `json:"sense"`
	} `json:"first_failure"`
}

// unused is where the blocks begin that users do not know.
const unused = "48m"

// relayed compares the owner's path with another one, while users rest.
func (s *scene) relayed() (r notes.Result, err error) {
	if err := s.begin(); err != nil {
		return r, err
	}
	s.load.rest.Store(true)
	defer s.load.rest.Store(false)
	owner, err := s.site.Owner()
	if err != nil {
		return r, err
	}
	r.How = s.how() + " `tgtload` on one path for 4 s; nothing else is done. CPU time is that of all three servers."
	r.Columns = []string{"what", "commands", "owner: I/O per s", "p50, p99", "CPU per I/O", "another: I/O per s", "p50, p99", "CPU per I/O"}
	for _, w := range []struct {
		rw, size string
		depth    int
	}{{"randread", "4k", 1}, {"randwrite", "4k", 1}, {"randread", "4k", 32}, {"randwrite", "4k", 32}, {"randread", "64k", 8}, {"randwrite", "64k", 8}} {
		row := []string{w.rw + " of " + w.size, strconv.Itoa(w.depth)}
		for _, n := range []*site.Node{owner, s.site.Other(owner)} {
			p, err := s.pace(n, w.rw, w.size, w.depth)
			if err != nil {
				return r, fmt.Errorf("%w\n%s", err, s.site.Logs())
			}
			row = append(row, fmt.Sprintf("%.0f", p.IOPS), fmt.Sprintf("%.0f, %.0f µs", p.Latency.P50, p.Latency.P99), fmt.Sprintf("%.0f µs", p.Server.PerIO))
		}
		r.Rows = append(r.Rows, row)
	}
	r.Facts = []notes.Fact{notes.Found("commands that failed", "0", true)}
	return r, nil
}

// pace loads one path.
func (s *scene) pace(n *site.Node, rw, size string, depth int) (p pace, err error) {
	args := []string{"--target", "iscsi://" + n.Portal + "/" + site.Target + "/0", "--rw", rw, "--bs", size, "--offset", unused, "--depth", strconv.Itoa(depth), "--runtime", "4s", "--json"}
	for _, o := range s.site.Nodes {
		args = append(args, "--server-pid", strconv.Itoa(o.Process.Pid))
	}
	said, err := exec.Command(filepath.Join(s.Bin, "tgtload"), args...).Output()
	if err != nil {
		return p, fmt.Errorf("tgtload %s of %s at %s: %w: %s", rw, size, n.Name, err, said)
	}
	if err = json.Unmarshal(said, &p); err == nil && p.First != nil && !strings.HasPrefix(p.First.Sense, "06/") { // a unit attention
		err = fmt.Errorf("tgtload %s of %s at %s: a command failed: sense %s", rw, size, n.Name, p.First.Sense)
	}
	return p, err
}
