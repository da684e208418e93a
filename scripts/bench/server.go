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
	"time"

	"golang.org/x/sys/unix"

	"lunar/internal/freeport"
)

const targetName = "iqn.2026-11.example.bench:volume"

// serving is what a server offers: volumes, each on a file of its own.
type serving struct {
	work    string // directory of logs, configuration and state
	files   string // directory of the volumes' files
	volumes int
	units   int   // logical units, where they are more than the files
	bytes   int64 // of each volume
	block   int   // logical block in bytes
	holes   bool  // the files have nothing else, and take no memory
	// yaml makes lunar's configuration.
	yaml func(port int, files []string) string
}

// paths are the volumes' files.
func (v serving) paths() (list []string) {
	for i := range v.volumes {
		list = append(list, filepath.Join(v.files, fmt.Sprintf("volume%d.img", i)))
	}
	return list
}

// server is a running target.
type server struct {
	name  string
	urls  []string  // by volume
	size  int64     // bytes of each volume
	cmd   *exec.Cmd // nil: the client does the work itself
	log   *os.File
	end   func() // asks it to end, where a signal does not suffice
	after func() // gives back what it had
	spins bool   // it takes a CPU all the time, so it is stopped while others are measured
}

// urls of logical units from first on.
func urls(port, first, count int) (list []string) {
	for i := range count {
		list = append(list, fmt.Sprintf("iscsi://127.0.0.1:%d/%s/%d", port, targetName, first+i))
	}
	return list
}

// pid is this program's own where there is no server.
func (s *server) pid() int {
	if s.cmd == nil {
		return os.Getpid()
	}
	return s.cmd.Process.Pid
}

// stop ends the process that this program started: politely, then by force,
// since C tgt ignores SIGTERM while it has targets.
func (s *server) stop() {
	if s.after != nil {
		defer s.after()
	}
	if s.cmd == nil {
		return
	}
	_ = s.wake()
	if s.end != nil {
		s.end()
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

// startLunar starts it on a port of its own. On error it returns the process if it
// runs.
func startLunar(ctx context.Context, o *options, v serving) (*server, error) {
	port, err := freeport.Find()
	if err != nil {
		return nil, err
	}
	files, config := v.paths(), filepath.Join(v.work, "tgtd.yaml")
	fill := fillFiles
	if v.holes {
		fill = makeHoles
	}
	if err := errors.Join(fill(files, v.bytes), os.WriteFile(config, []byte(v.yaml(port, files)), 0o600)); err != nil {
		return nil, fmt.Errorf("lunar: %w", err)
	}
	s, err := spawn(lunarName, o, v.work, o.Tgtd, "serve", "-c", config, "--state-dir", v.work)
	if err != nil {
		return nil, err
	}
	s.urls, s.size = urls(port, 0, max(v.volumes, v.units)), v.bytes
	return s, s.await(ctx, port)
}

// spawn starts a server on its CPU, with its output in a file.
func spawn(name string, o *options, dir, program string, args ...string) (*server, error) {
	log, err := os.Create(filepath.Join(dir, filepath.Base(program)+".log"))
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
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &server{name: name, cmd: cmd, log: log}, nil
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

// fillFiles makes files without holes, which would be cheaper to read, and
// waits until they are on the medium. Those of an earlier run stay.
func fillFiles(paths []string, bytes int64) error {
	chunk := make([]byte, 1<<20)
	for i := range chunk {
		chunk[i] = byte(i * 31)
	}
	for _, path := range paths {
		var have unix.Stat_t
		if unix.Stat(path, &have) == nil && have.Size == bytes && have.Blocks*512 >= bytes {
			continue
		}
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
