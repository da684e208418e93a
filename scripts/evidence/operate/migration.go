package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"lunar/scripts/evidence/notes"
)

// migration moves a host from LIO and from C tgt to Lunar, in the lab's guest: the
// scenario compares everything by which a host knows a disk, byte for byte.
func migration(ctx context.Context, o options) (facts, error) {
	logs := "build/evidence/migration"
	run := exec.CommandContext(ctx, "scripts/lab/run.sh", "migration")
	run.Env = append(os.Environ(), "LAB_LOGS="+logs, "LAB_ARGUMENTS=full", "TGTD="+o.Tgtd)
	run.Stderr = os.Stderr
	out, err := run.Output()
	if _, failed := err.(*exec.ExitError); err != nil && !failed {
		return nil, err
	}
	passed := err == nil
	log, err := newestLog(logs)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	outcome := map[bool]string{true: "the same, and the file system went on", false: "the scenario failed: see " + logs}[passed]
	found := facts{notes.Found("vendor, product, revision, VPD pages 80h and 83h of the logical unit, size, blocks, names in /dev/disk/by-id, before and after", outcome, passed)}
	for _, line := range strings.Split(log, "\n") {
		switch {
		case strings.HasPrefix(line, "80h "), strings.HasPrefix(line, "83h "):
			found = append(found, notes.Found("page "+line[:3], "`"+strings.TrimSpace(line[4:])+"`", passed))
		case strings.HasPrefix(line, "/dev/disk/by-id/"):
			found = append(found, notes.Found("name", "`"+filepath.Base(line)+"`", passed))
		}
	}
	return found, nil
}

// newestLog is what the guest said.
func newestLog(logs string) (string, error) {
	all, err := filepath.Glob(filepath.Join(logs, "*-migration@*", "guest.log"))
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("found %d logs of the scenario below %s, expected one", len(all), logs)
	}
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(all[0])
	return string(text), err
}
