package systemd

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// barrierTime bounds the wait for the service manager.
const barrierTime = 5 * time.Second

// Service is the connection of a process to the service manager that has started it. A
// nil Service is that of a process that nobody has started so: its methods do nothing.
// They may be called at the same time.
type Service struct {
	manager  string // address of its socket, as environ(7) has it
	watchdog time.Duration

	mu     sync.Mutex
	given  map[string]*os.File // descriptors of the process before, by name
	ending bool
}

// FromEnvironment takes the connection out of the environment, where no child finds it;
// nil: there is none.
func FromEnvironment() *Service {
	s := &Service{manager: os.Getenv("NOTIFY_SOCKET"), given: map[string]*os.File{}}
	s.watchdog, _ = daemon.SdWatchdogEnabled(true) // a value that is none watches nobody
	for _, f := range activation.Files(true) {
		s.add(f)
	}
	os.Unsetenv("NOTIFY_SOCKET")
	if s.manager == "" {
		return nil
	}
	return s
}

// add takes a descriptor; of several that have one name, the last counts.
func (s *Service) add(f *os.File) {
	if was := s.given[f.Name()]; was != nil {
		was.Close()
	}
	s.given[f.Name()] = f
}

// Watchdog is how often the manager wants to hear that the process is alive, or else ends
// it; 0: never.
func (s *Service) Watchdog() time.Duration {
	if s == nil {
		return 0
	}
	return s.watchdog
}

// Ready says that the server serves, or serves again after Reloading.
func (s *Service) Ready(status string) error {
	return s.tell(nil, daemon.SdNotifyReady, "STATUS="+status)
}

// Status is one line for people.
func (s *Service) Status(text string) error { return s.tell(nil, "STATUS="+text) }

// Alive is the sign that the watchdog waits for.
func (s *Service) Alive() error { return s.tell(nil, daemon.SdNotifyWatchdog) }

// Reloading says that the configuration is being read; Ready ends that.
func (s *Service) Reloading() error {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return err
	}
	return s.tell(nil, daemon.SdNotifyReloading, fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/1000))
}

// Stopping says that the server ends. What is kept from now on stays kept for the next
// process, whatever this one closes.
func (s *Service) Stopping() error {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	return s.tell(nil, daemon.SdNotifyStopping)
}

// Extend asks for at least so much time more to start or to stop.
func (s *Service) Extend(d time.Duration, status string) error {
	return s.tell(nil, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", d.Microseconds()), "STATUS="+status)
}

// tell sends lines, with a descriptor unless it is nil.
func (s *Service) tell(with syscall.Conn, lines ...string) error {
	if s == nil {
		return nil
	}
	var err error
	if text := []byte(strings.Join(lines, "\n")); with == nil {
		err = s.send(text, nil)
	} else {
		err = s.sendWith(with, text)
	}
	if err != nil {
		return fmt.Errorf("service manager: %w", err)
	}
	return nil
}

// sendWith sends text with a descriptor, whose mode stays as it is.
func (s *Service) sendWith(with syscall.Conn, text []byte) error {
	raw, err := with.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = s.send(text, unix.UnixRights(int(fd))) })
	return errors.Join(err, failed)
}

// send sends text with control messages: sockets of package net cannot (ErrWriteToConnected).
func (s *Service) send(text, control []byte) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendmsg(fd, text, control, &unix.SockaddrUnix{Name: s.manager}, 0)
}

// barrier waits until the manager has seen to all that it was told before.
func (s *Service) barrier() error {
	ours, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ours.Close()
	err = s.tell(theirs, "BARRIER=1")
	theirs.Close()
	if err != nil {
		return err
	}
	if err := ours.SetReadDeadline(time.Now().Add(barrierTime)); err != nil {
		return err
	}
	if _, err = ours.Read(make([]byte, 1)); os.IsTimeout(err) {
		return fmt.Errorf("service manager: no answer within %v", barrierTime)
	}
	return nil // the manager has closed its end
}
