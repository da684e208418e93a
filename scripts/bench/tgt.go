package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"

	"lunar/internal/freeport"
)

// startTgt serves a file from LUN 1 of C tgt on, whose LUN 0 is a controller. With
// direct it opens it with O_DIRECT.
func startTgt(ctx context.Context, o *options, v serving, direct bool) (*server, error) {
	port, err := freeport.Find()
	if err != nil {
		return nil, err
	}
	control := strconv.Itoa(port % 32768) // any number of 15 bits that no other tgtd uses
	s, err := spawn(tgtName, o, v.work, "tgtd", "-f", "-C", control, "--iscsi", fmt.Sprintf("portal=127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	s.urls, s.size = urls(port, 1, 1), v.bytes
	ctlCtx := context.WithoutCancel(ctx) // stop needs it after an interrupt
	ctl := func(args ...string) error {
		return exec.CommandContext(ctlCtx, "tgtadm", append([]string{"-C", control, "--lld", "iscsi"}, args...)...).Run()
	}
	s.end = func() { _ = ctl("--op", "delete", "--mode", "system") }
	if err := s.await(ctx, port); err != nil {
		return s, err
	}
	unit := []string{"--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", v.paths()[0], "--blocksize", strconv.Itoa(v.block)}
	if direct {
		unit = append(unit, "--bsoflags", "direct")
	}
	return s, errors.Join(ctl("--op", "new", "--mode", "target", "--tid", "1", "-T", targetName), ctl(unit...),
		ctl("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL"))
}
