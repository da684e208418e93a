package main

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"lunar/internal/initiator"
	"lunar/scripts/evidence/daemon"
)

// probe is compiled into the server.
//
//go:embed testdata/probe.go
var probe []byte

// build compiles the tree's server so that it counts its statements.
func build(tree, dir string) (binary string, err error) {
	files, err := exec.Command("git", "-C", tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return "", fmt.Errorf("git ls-files: %w", err)
	}
	copied := filepath.Join(dir, "tree")
	for name := range strings.SplitSeq(strings.TrimSuffix(string(files), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join(tree, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted, and not committed yet
		}
		if err == nil {
			err = write(filepath.Join(copied, name), text)
		}
		if err != nil {
			return "", err
		}
	}
	if err := write(filepath.Join(copied, "cmd/tgtd/structure_probe.go"), probe); err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "tgtd")
	compile := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-cover", "-covermode=atomic", "-coverpkg=lunar/...", "-o", binary, "./cmd/tgtd")
	compile.Dir, compile.Stderr = copied, os.Stderr
	return binary, compile.Run()
}

func write(path string, text []byte) error {
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o644))
}

// server is the counting server with one session.
type server struct {
	dir   string
	run   *daemon.Server
	probe net.Conn
	reply *bufio.Reader
	conn  *initiator.Conn
}

// config is as small as it gets. NOPs would be counted among the commands.
const config = `server: {threads: 1, sandbox: off, nop: {interval: 0s}}
portal-groups: {pg: {tag: 1, listen: ["127.0.0.1:0"]}}
volumes: {disk: {type: file, path: DIR/disk.img, size: 64MiB}}
targets: {"iqn.2026-11.example.lunar:structure": {portal-groups: [pg], auth-group: none, luns: [{lun: 0, volume: disk}]}}
`

// start starts the server with more configuration, and logs in.
func start(binary, dir, more string) (s *server, err error) {
	s = &server{dir: dir}
	if s.run, err = daemon.New(binary, dir, config+more); err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "probe.sock")
	if err := os.Setenv("STRUCTURE_PROBE", socket); err != nil {
		return nil, err
	}
	portal, err := s.run.Start()
	if err != nil {
		return nil, err
	}
	if s.probe, err = net.Dial("unix", socket); err == nil {
		s.reply = bufio.NewReader(s.probe)
		s.conn, err = initiator.Dial(context.Background(), portal, initiator.Options{Target: "iqn.2026-11.example.lunar:structure"})
	}
	if err == nil {
		err = s.conn.Ready(0)
	}
	if err != nil {
		return nil, errors.Join(err, s.run.Kill(syscall.SIGKILL))
	}
	return s, nil
}

func (s *server) stop() error {
	return errors.Join(s.conn.Close(), s.probe.Close(), s.run.Kill(syscall.SIGTERM))
}

// tell sends the probe a line and waits until it is done.
func (s *server) tell(line string) error {
	if _, err := fmt.Fprintln(s.probe, line); err != nil {
		return err
	}
	_, err := s.reply.ReadString('\n')
	return err
}

// window counts what is executed from before do until the server is quiet again.
func (s *server) window(do func(*initiator.Conn) error) (counts, error) {
	time.Sleep(quiet)
	if err := s.tell(""); err != nil {
		return nil, err
	}
	if err := do(s.conn); err != nil {
		return nil, err
	}
	time.Sleep(quiet)
	dir, err := os.MkdirTemp(s.dir, "counts")
	if err != nil {
		return nil, err
	}
	if err := s.tell(dir); err != nil {
		return nil, err
	}
	return readCounts(dir)
}

// quiet is longer than a server looks for work after a command.
const quiet = 100 * time.Millisecond
