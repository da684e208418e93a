package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Indices of the two servers.
const (
	tgt = iota
	lunar
)

var serverNames = [2]string{tgt: "C tgt", lunar: "Lunar"}

const (
	volumeBytes = 1 << 30
	targetName  = "iqn.2026-11.example.bench:volume"
)

// server is a running target.
type server struct {
	name string
	url  string
	cmd  *exec.Cmd
	log  *os.File
	ctl  func(args ...string) error // tgt's tgtadm
}

func (s *server) pid() int { return s.cmd.Process.Pid }

// startServers starts both on files of their own. On error it returns those
// that run.
func startServers(ctx context.Context, o options, dir string) ([]*server, error) {
	var servers []*server
	for _, start := range []func(context.Context, options, string, int) (*server, error){startTgt, startLunar} {
		port, err := freePort()
		if err != nil {
			return servers, err
		}
		s, err := start(ctx, o, dir, port)
		if s != nil {
			servers = append(servers, s)
		}
		if err != nil {
			return servers, err
		}
	}
	return servers, nil
}

func stopServers(servers []*server) {
	for _, s := range servers {
		s.stop()
	}
}

// stop ends the process that this program started: politely, then by force,
// since C tgt ignores SIGTERM while it has targets.
func (s *server) stop() {
	if s.ctl != nil {
		_ = s.ctl("--op", "delete", "--mode", "system")
	}
	_ = s.cmd.Process.Signal(unix.SIGTERM)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.cmd.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill()
		<-ended
	}
	s.log.Close()
}

// startTgt serves LUN 1 of C tgt, whose LUN 0 is a controller.
func startTgt(ctx context.Context, o options, dir string, port int) (*server, error) {
	file := filepath.Join(dir, "tgt.img")
	if err := fillFile(file); err != nil {
		return nil, err
	}
	control := strconv.Itoa(port % 32768) // any number of 15 bits that no other tgtd uses
	s, err := spawn(tgt, o, dir, "tgtd", "-f", "-C", control, "--iscsi", fmt.Sprintf("portal=127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	s.url = fmt.Sprintf("iscsi://127.0.0.1:%d/%s/1", port, targetName)
	ctlCtx := context.WithoutCancel(ctx) // stop needs it after an interrupt
	s.ctl = func(args ...string) error {
		return exec.CommandContext(ctlCtx, "tgtadm", append([]string{"-C", control, "--lld", "iscsi"}, args...)...).Run()
	}
	if err := s.await(ctx, port); err != nil {
		return s, err
	}
	return s, errors.Join(
		s.ctl("--op", "new", "--mode", "target", "--tid", "1", "-T", targetName),
		s.ctl("--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", file),
		s.ctl("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL"))
}

const lunarConfig = `portal-groups:
  bench:
    tag: 1
    listen: ["127.0.0.1:%d"]
volumes:
  bench:
    type: file
    path: %q
    size: 1GiB
targets:
  %s:
    portal-groups: [bench]
    auth-group: none
    luns:
      - lun: 0
        volume: bench
`

func startLunar(ctx context.Context, o options, dir string, port int) (*server, error) {
	file, config := filepath.Join(dir, "lunar.img"), filepath.Join(dir, "tgtd.yaml")
	text := fmt.Sprintf(lunarConfig, port, file, targetName)
	if err := errors.Join(fillFile(file), os.WriteFile(config, []byte(text), 0o600)); err != nil {
		return nil, fmt.Errorf("lunar: %w", err)
	}
	s, err := spawn(lunar, o, dir, o.Tgtd, "serve", "-c", config, "--state-dir", dir)
	if err != nil {
		return nil, err
	}
	s.url = fmt.Sprintf("iscsi://127.0.0.1:%d/%s/0", port, targetName)
	return s, s.await(ctx, port)
}

// spawn starts a server on its CPU, with its output in a file.
func spawn(n int, o options, dir, program string, args ...string) (*server, error) {
	log, err := os.Create(filepath.Join(dir, filepath.Base(program)+strconv.Itoa(n)+".log"))
	if err != nil {
		return nil, fmt.Errorf("server log: %w", err)
	}
	args = slices.Concat(o.place(o.Server), []string{program}, args)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	// A signal to this program's group must not race with stop.
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		log.Close()
		return nil, fmt.Errorf("%s: %w", serverNames[n], err)
	}
	return &server{name: serverNames[n], cmd: cmd, log: log}, nil
}

// await waits until the server accepts connections.
func (s *server) await(ctx context.Context, port int) error {
	for range 100 {
		nc, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return nc.Close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	output, _ := os.ReadFile(s.log.Name())
	return fmt.Errorf("%s does not listen on port %d: %s", s.name, port, output)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// fillFile makes a file without holes, which would be cheaper to read.
func fillFile(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("volume: %w", err)
	}
	defer f.Close()
	chunk := make([]byte, 1<<20)
	for i := range chunk {
		chunk[i] = byte(i * 31)
	}
	for range volumeBytes / len(chunk) {
		if _, err := f.Write(chunk); err != nil {
			return fmt.Errorf("volume: %w", err)
		}
	}
	return nil
}
