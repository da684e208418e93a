// Package daemon runs the real tgtd for what breaks it: a directory, a process, what it says.
package daemon

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"syscall"
)

// Server is the real binary in a directory of its own.
type Server struct {
	Binary string
	Dir    string // configuration; and state and segment, unless they are elsewhere
	State  string
	Config string   // file
	Prefix []string // a command that the server is started by, such as taskset with its arguments

	Process *os.Process
	Portal  chan string // closed when the process has ended
	Output  Output
}

// New writes the configuration below dir. In it, DIR stands for dir.
func New(binary, dir, config string) (*Server, error) {
	s := &Server{Binary: binary, Dir: dir, State: filepath.Join(dir, "state"), Config: filepath.Join(dir, "tgtd.yaml")}
	text := bytes.ReplaceAll([]byte(config), []byte("DIR"), []byte(dir))
	return s, errors.Join(os.MkdirAll(s.State, 0o700), os.WriteFile(s.Config, text, 0o600))
}

// Socket is outside of the state directory, which may lie on a file system that has none.
func (s *Server) Socket() string { return filepath.Join(s.Dir, "control.sock") }

var portalLine = regexp.MustCompile(`iscsiadm .*-p (\S+:\d+)`)

// Launch starts the process; a traced one stops before its first instruction and
// belongs to the calling thread.
func (s *Server) Launch(traced bool) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	s.Output.reset()
	s.Portal = make(chan string, 1)
	line := append(slices.Clone(s.Prefix), s.Binary, "serve", "-c", s.Config, "--state-dir", s.State, "--socket", s.Socket())
	program, err := exec.LookPath(line[0])
	if err != nil {
		return errors.Join(err, r.Close(), w.Close())
	}
	start := func() {
		s.Process, err = os.StartProcess(program, line, &os.ProcAttr{
			Files: []*os.File{nil, w, w},
			Sys:   &syscall.SysProcAttr{Ptrace: traced, Pdeathsig: syscall.SIGKILL},
		})
	}
	if traced {
		start()
	} else {
		onLastingThread(start)
	}
	w.Close()
	if err != nil {
		r.Close()
		return err
	}
	go s.follow(r, s.Portal)
	return nil
}

// lasting are calls for a thread that ends with this process: Pdeathsig is about the end
// of the thread that started a process, and threads end with goroutines locked to them.
var lasting = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go func() {
		runtime.LockOSThread()
		for call := range calls {
			call()
		}
	}()
	return calls
})

func onLastingThread(f func()) {
	done := make(chan struct{})
	lasting() <- func() { f(); close(done) }
	<-done
}

// follow keeps what the process says until it has ended.
func (s *Server) follow(r *os.File, portal chan<- string) {
	defer r.Close()
	defer close(portal)
	told := false
	for lines := bufio.NewScanner(r); lines.Scan(); {
		s.Output.add(lines.Text())
		if m := portalLine.FindStringSubmatch(lines.Text()); m != nil && !told {
			told = true
			portal <- m[1]
		}
	}
}

// ErrEnded is a process that has ended before its portals were open.
var ErrEnded = errors.New("tgtd did not start")

// Ready returns the portal when it is open.
func (s *Server) Ready() (string, error) {
	if portal, ok := <-s.Portal; ok {
		return portal, nil
	}
	return "", fmt.Errorf("%w:\n%s", ErrEnded, s.Output.String())
}

// Start is Launch and Ready, untraced.
func (s *Server) Start() (string, error) {
	if err := s.Launch(false); err != nil {
		return "", err
	}
	portal, err := s.Ready()
	if err != nil {
		s.Process.Wait()
	}
	return portal, err
}

// Command runs another command of the binary and returns its exit code and what it said.
func (s *Server) Command(args ...string) (int, string) { return said(s.Binary, args) }

// Lunar runs a command of the administrator's program and returns its exit code and what
// it said.
func (s *Server) Lunar(args ...string) (int, string) { return said(Lunar(s.Binary), args) }

// Lunar is the administrator's program beside a tgtd; an older tgtd is its own.
func Lunar(tgtd string) string {
	beside := filepath.Join(filepath.Dir(tgtd), "lunar")
	if _, err := os.Stat(beside); err != nil {
		return tgtd
	}
	return beside
}

func said(binary string, args []string) (int, string) {
	c := exec.Command(binary, args...)
	said, err := c.CombinedOutput()
	if c.ProcessState == nil {
		return -1, err.Error()
	}
	return c.ProcessState.ExitCode(), string(said)
}

// Kill ends an untraced process by a signal and waits for it.
func (s *Server) Kill(signal syscall.Signal) error {
	if err := s.Process.Signal(signal); err != nil {
		return err
	}
	_, err := s.Process.Wait()
	return err
}

// Output is what a process has said.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *Output) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Reset()
}

func (o *Output) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.WriteString(line + "\n")
}

// Len is how many bytes that is.
func (o *Output) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Len()
}

// String is what it has said since it was launched.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
