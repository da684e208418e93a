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
	limit // no target: the loopback limit
	contenders
)

var serverNames = [contenders]string{tgt: "C tgt", lunar: "Lunar", limit: "loopback limit"}

const (
	volumeBytes = 1 << 30
	targetName  = "iqn.2026-11.example.bench:volume"
)

// serving is what both servers offer: the same number of volumes of the same
// kind, each on a file of its own.
type serving struct {
	work    string    // directory of logs, configuration and state
	files   [2]string // directories of the volumes' files, by server
	volumes int
	bytes   int64 // of each volume
	block   int   // logical block in bytes
	holes   bool  // the files have nothing else, and take no memory
	// yaml makes lunar's configuration.
	yaml func(port int, work string, files []string) string
}

// paths are a server's files.
func (v serving) paths(server int) []string {
	var list []string
	for i := range v.volumes {
		list = append(list, filepath.Join(v.files[server], fmt.Sprintf("%s%d.img", [2]string{"tgt", "lunar"}[server], i)))
	}
	return list
}

// server is a running target.
type server struct {
	name string
	urls []string // by volume
	size int64    // bytes of each volume
	cmd  *exec.Cmd
	log  *os.File
	ctl  func(args ...string) error // tgt's tgtadm
}

// urls of logical units from first on.
func (v serving) urls(port, first int) (list []string) {
	for i := range v.volumes {
		list = append(list, fmt.Sprintf("iscsi://127.0.0.1:%d/%s/%d", port, targetName, first+i))
	}
	return list
}

func (s *server) pid() int { return s.cmd.Process.Pid }

// startServers starts both on files of their own. On error it returns those
// that run.
func startServers(ctx context.Context, o *options, v serving) ([]*server, error) {
	var servers []*server
	for _, start := range []func(context.Context, *options, serving, int) (*server, error){startTgt, startLunar} {
		port, err := freePort()
		if err != nil {
			return servers, err
		}
		s, err := start(ctx, o, v, port)
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

// startTgt serves from LUN 1 of C tgt on, whose LUN 0 is a controller.
func startTgt(ctx context.Context, o *options, v serving, port int) (*server, error) {
	if err := fillFiles(v.paths(tgt), v.bytes); err != nil {
		return nil, err
	}
	control := strconv.Itoa(port % 32768) // any number of 15 bits that no other tgtd uses
	s, err := spawn(tgt, o, v.work, "tgtd", "-f", "-C", control, "--iscsi", fmt.Sprintf("portal=127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	s.urls, s.size = v.urls(port, 1), v.bytes
	ctlCtx := context.WithoutCancel(ctx) // stop needs it after an interrupt
	s.ctl = func(args ...string) error {
		return exec.CommandContext(ctlCtx, "tgtadm", append([]string{"-C", control, "--lld", "iscsi"}, args...)...).Run()
	}
	if err := s.await(ctx, port); err != nil {
		return s, err
	}
	errs := []error{s.ctl("--op", "new", "--mode", "target", "--tid", "1", "-T", targetName)}
	for i, file := range v.paths(tgt) {
		errs = append(errs, s.ctl("--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", strconv.Itoa(i+1),
			"-b", file, "--blocksize", strconv.Itoa(v.block)))
	}
	return s, errors.Join(append(errs, s.ctl("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL"))...)
}

// onTmpfs are two volumes in dir, of which lunar serves one write: through and one
// write: back.
func onTmpfs(dir string) serving {
	return serving{work: dir, files: [2]string{dir, dir}, volumes: 2, bytes: 256 << 20, block: logicalBlockKiB << 10, yaml: tmpfsYAML}
}

const tmpfsConfig = `cache:
  size: 640MiB
  segment: %q
portal-groups:
  bench:
    tag: 1
    listen: ["127.0.0.1:%d"]
volumes:
  through:
    type: file
    path: %q
    block-size: 4096
    cache: true
    write: through
  back:
    type: file
    path: %q
    block-size: 4096
    cache: true
    write: back
targets:
  %s:
    portal-groups: [bench]
    auth-group: none
    luns:
      - {lun: 0, volume: through}
      - {lun: 1, volume: back}
`

func tmpfsYAML(port int, work string, files []string) string {
	return fmt.Sprintf(tmpfsConfig, filepath.Join(work, "segment"), port, files[throughVolume], files[backVolume], targetName)
}

func startLunar(ctx context.Context, o *options, v serving, port int) (*server, error) {
	files, config := v.paths(lunar), filepath.Join(v.work, "tgtd.yaml")
	fill := fillFiles
	if v.holes {
		fill = makeHoles
	}
	if err := errors.Join(fill(files, v.bytes), os.WriteFile(config, []byte(v.yaml(port, v.work, files)), 0o600)); err != nil {
		return nil, fmt.Errorf("lunar: %w", err)
	}
	s, err := spawn(lunar, o, v.work, o.Tgtd, "serve", "-c", config, "--state-dir", v.work)
	if err != nil {
		return nil, err
	}
	s.urls, s.size = v.urls(port, 0), v.bytes
	return s, s.await(ctx, port)
}

// spawn starts a server on its CPU, with its output in a file.
func spawn(n int, o *options, dir, program string, args ...string) (*server, error) {
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
	for range 600 { // the memory of a cache is touched first
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

// fillFiles makes files without holes, which would be cheaper to read, and
// waits until they are on the medium.
func fillFiles(paths []string, bytes int64) error {
	chunk := make([]byte, 1<<20)
	for i := range chunk {
		chunk[i] = byte(i * 31)
	}
	for _, path := range paths {
		if err := fillFile(path, bytes, chunk); err != nil {
			return fmt.Errorf("volume: %w", err)
		}
	}
	return nil
}

// makeHoles makes files of nothing else.
func makeHoles(paths []string, bytes int64) error {
	for _, path := range paths {
		err := os.WriteFile(path, nil, 0o600)
		if err := errors.Join(err, os.Truncate(path, bytes)); err != nil {
			return fmt.Errorf("volume: %w", err)
		}
	}
	return nil
}

func fillFile(path string, bytes int64, chunk []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for range bytes / int64(len(chunk)) {
		if _, err := f.Write(chunk); err != nil {
			return err
		}
	}
	return f.Sync()
}
