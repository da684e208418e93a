package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
)

// server is the real binary in a directory of its own.
type server struct {
	binary string
	dir    string // configuration; and state and segment, unless they are elsewhere
	state  string
	config string

	process *os.Process
	portal  chan string // closed when the process has ended
	output  output
}

// newServer writes the configuration below dir. In it, DIR stands for dir.
func newServer(binary, dir, config string) (*server, error) {
	s := &server{binary: binary, dir: dir, state: filepath.Join(dir, "state"), config: filepath.Join(dir, "tgtd.yaml")}
	text := bytes.ReplaceAll([]byte(config), []byte("DIR"), []byte(dir))
	return s, errors.Join(os.MkdirAll(s.state, 0o700), os.WriteFile(s.config, text, 0o600))
}

// socket is outside of the state directory, which may lie on a file system that has none.
func (s *server) socket() string { return filepath.Join(s.dir, "control.sock") }

var portalLine = regexp.MustCompile(`iscsiadm .*-p (\S+:\d+)`)

// launch starts the process; a traced one stops before its first instruction and
// belongs to the calling thread.
func (s *server) launch(traced bool) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.output.reset()
	s.portal = make(chan string, 1)
	s.process, err = os.StartProcess(s.binary, []string{s.binary, "serve", "-c", s.config, "--state-dir", s.state, "--socket", s.socket()}, &os.ProcAttr{
		Files: []*os.File{nil, w, w},
		Sys:   &syscall.SysProcAttr{Ptrace: traced, Pdeathsig: syscall.SIGKILL},
	})
	w.Close()
	if err != nil {
		r.Close()
		return err
	}
	go s.follow(r, s.portal)
	return nil
}

// follow keeps what the process says until it has ended.
func (s *server) follow(r *os.File, portal chan<- string) {
	defer r.Close()
	defer close(portal)
	told := false
	for lines := bufio.NewScanner(r); lines.Scan(); {
		s.output.add(lines.Text())
		if m := portalLine.FindStringSubmatch(lines.Text()); m != nil && !told {
			told = true
			portal <- m[1]
		}
	}
}

// errEnded is a process that has ended before its portals were open.
var errEnded = errors.New("tgtd did not start")

// ready returns the portal when it is open.
func (s *server) ready() (string, error) {
	if portal, ok := <-s.portal; ok {
		return portal, nil
	}
	return "", fmt.Errorf("%w:\n%s", errEnded, s.output.String())
}

// start is launch and ready, untraced.
func (s *server) start() (string, error) {
	if err := s.launch(false); err != nil {
		return "", err
	}
	portal, err := s.ready()
	if err != nil {
		s.process.Wait()
	}
	return portal, err
}

// command runs another command of the binary, with the server's state directory, and
// returns its exit code and what it said.
func (s *server) command(args ...string) (int, string) {
	c := exec.Command(s.binary, args...)
	said, err := c.CombinedOutput()
	if c.ProcessState == nil {
		return -1, err.Error()
	}
	return c.ProcessState.ExitCode(), string(said)
}

// kill ends an untraced process by a signal and waits for it.
func (s *server) kill(signal syscall.Signal) error {
	if err := s.process.Signal(signal); err != nil {
		return err
	}
	_, err := s.process.Wait()
	return err
}

// output is what a process has said.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Reset()
}

func (o *output) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.WriteString(line + "\n")
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
