// Package systemdtest is a service manager for tests: it hears what a service tells, and
// keeps its descriptors.
package systemdtest

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// PID1 is one, for one service.
type PID1 struct {
	Socket string // for NOTIFY_SOCKET

	conn *net.UnixConn
	mu   sync.Mutex
	said []string
	kept map[string]*os.File
}

// New returns one that hears until the test ends.
func New(t testing.TB) *PID1 {
	t.Helper()
	m := &PID1{Socket: filepath.Join(t.TempDir(), "notify"), kept: map[string]*os.File{}}
	var err error
	if m.conn, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.Socket, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	var hearing sync.WaitGroup
	hearing.Go(m.hear)
	t.Cleanup(func() {
		m.conn.Close()
		hearing.Wait()
		for _, f := range m.kept {
			f.Close()
		}
	})
	return m
}

func (m *PID1) hear() {
	text, rights := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	for {
		n, r, _, _, err := m.conn.ReadMsgUnix(text, rights)
		if err != nil {
			return
		}
		m.take(strings.Split(string(text[:n]), "\n"), fileOf(rights[:r]))
	}
}

// fileOf is the descriptor of a message; nil: it has none.
func fileOf(rights []byte) *os.File {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) == 0 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fds[0]), "kept")
}

func (m *PID1) take(lines []string, f *os.File) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said = append(m.said, lines...)
	name := ""
	for _, line := range lines {
		name = strings.TrimPrefix(line, "FDNAME=")
	}
	switch {
	case slices.Contains(lines, "FDSTORE=1"):
		m.kept[name] = f
	case slices.Contains(lines, "FDSTOREREMOVE=1"):
		if was := m.kept[name]; was != nil {
			was.Close()
			delete(m.kept, name)
		}
	case f != nil:
		f.Close() // a barrier ends
	}
}

// Said returns all lines so far.
func (m *PID1) Said() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.said)
}

// Heard reports whether a line has come.
func (m *PID1) Heard(line string) bool { return slices.Contains(m.Said(), line) }

// Kept returns what is kept now with its names, in the order of those, as the next process
// gets it: close the files.
func (m *PID1) Kept() (names []string, files []*os.File) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.kept {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		var fd int
		raw, err := m.kept[name].SyscallConn()
		if err == nil {
			err = raw.Control(func(kept uintptr) { fd, _ = unix.FcntlInt(kept, unix.F_DUPFD_CLOEXEC, 3) })
		}
		if err != nil {
			panic(err) // of a file that is not closed before the test ends
		}
		files = append(files, os.NewFile(uintptr(fd), name))
	}
	return names, files
}
