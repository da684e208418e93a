package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"lunar/control"
)

// ErrInUse tells that another process answers at the socket.
var ErrInUse = errors.New("another process serves it")

const (
	// maxSocketPath is what fits into a sockaddr_un with its final zero.
	maxSocketPath = 107
	// dialTimeout bounds the question whether somebody is alive.
	dialTimeout = 2 * time.Second
)

// listen makes the socket, for its owner only. It replaces the socket of a
// dead process at path, but neither that of a living one nor anything else.
func listen(path string) (*net.UnixListener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("control socket %s: found %d bytes, expected at most %d; --socket chooses a shorter one", path, len(path), maxSocketPath)
	}
	if err := removeStale(path); err != nil {
		return nil, fmt.Errorf("control socket %s: %w", path, err)
	}
	l, err := (&net.ListenConfig{Control: ownerOnly}).Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	return l.(*net.UnixListener), nil
}

// ownerOnly sets the mode of a socket before bind(2) gives it a name, which then has
// that mode from the beginning (unix_bind of the kernel takes it from the socket).
func ownerOnly(_, _ string, conn syscall.RawConn) error {
	var failed error
	err := conn.Control(func(fd uintptr) { failed = syscall.Fchmod(int(fd), 0o600) })
	return errors.Join(err, failed)
}

// openTo lets members of groups connect, if some have a role, and else only the owner.
// Who is no member is turned away when it asks: the mode of a file has one group, and
// there are several.
func openTo(path string, groups map[uint32]control.Role) error {
	mode := fs.FileMode(0o600)
	if len(groups) > 0 {
		mode = 0o666
	}
	if err := os.Chmod(path, mode); err != nil {
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

// removeStale removes a socket that nobody listens on.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("found %v there, expected a socket or nothing: remove it if nobody needs it", info.Mode())
	}
	conn, err := net.DialTimeout("unix", path, dialTimeout)
	switch {
	case err == nil:
		conn.Close()
		return ErrInUse
	case errors.Is(err, syscall.ECONNREFUSED):
		return takeAway(path)
	}
	return fmt.Errorf("%w, as far as can be told: %w", ErrInUse, err)
}

// takeAway removes a socket that nobody has listened on. Another server may have put its
// own there since, which gets its name back.
func takeAway(path string) error {
	aside := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%d", os.Getpid()))
	if len(aside) > maxSocketPath {
		return os.Remove(path)
	}
	if err := os.Rename(path, aside); err != nil {
		return err
	}
	conn, err := net.DialTimeout("unix", aside, dialTimeout)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return os.Remove(aside)
	}
	if err == nil {
		conn.Close()
	}
	return errors.Join(ErrInUse, os.Rename(aside, path))
}
