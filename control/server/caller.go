package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/user"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/control"
)

// Caller is who asks or changes something.
type Caller struct {
	Kind    string       `json:"kind"` // user, token, certificate or signal
	Name    string       `json:"name,omitempty"`
	UID     *uint32      `json:"uid,omitempty"` // of a user
	PID     int32        `json:"pid,omitempty"`
	Address string       `json:"address,omitempty"` // of one over TCP
	Role    control.Role `json:"-"`
}

// Signal is who sends a signal to the server: root or its own user.
var Signal = Caller{Kind: "signal", Role: control.Admin}

// String is for a line of the log.
func (c Caller) String() string {
	switch {
	case c.Kind == "":
		return "unknown"
	case c.UID != nil:
		return fmt.Sprintf("pid %d, uid %d (%s)", c.PID, *c.UID, c.Name)
	case c.Address != "" && c.Name != "":
		return fmt.Sprintf("%s %s at %s", c.Kind, c.Name, c.Address)
	case c.Address != "":
		return "somebody at " + c.Address
	}
	return c.Kind
}

// identity is who it is, whatever process or address it comes from.
func (c Caller) identity() string { return c.Kind + " " + c.Name }

// holder is whose share of the log's lines it has.
func (c Caller) holder() string {
	if host, _, err := net.SplitHostPort(c.Address); err == nil {
		return host
	}
	return c.identity()
}

// peer is a process at the other end of a unix socket, as it was when it connected
// (SO_PEERCRED and SO_PEERGROUPS, unix(7)): what it becomes afterwards, and what the user
// database says, make no difference.
type peer struct {
	*unix.Ucred
	groups []uint32 // supplementary
	name   func() string
}

// peerOf is the other end of a connection; nil: it is no unix socket.
func peerOf(conn net.Conn) *peer {
	unixConn, ok := conn.(*net.UnixConn)
	if !ok {
		return nil
	}
	raw, err := unixConn.SyscallConn()
	if err != nil {
		return nil
	}
	var p peer
	ask := func(fd uintptr) {
		if p.Ucred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			p.groups = peerGroups(fd)
		}
	}
	if raw.Control(ask) != nil || err != nil {
		return nil
	}
	p.name = sync.OnceValue(p.lookUp)
	return &p
}

// lookUp is the user's name, which costs reading the user database.
func (p *peer) lookUp() string {
	if u, err := user.LookupId(strconv.FormatUint(uint64(p.Uid), 10)); err == nil {
		return u.Username
	}
	return "?"
}

// peerGroups are the supplementary groups of the other end; none if they cannot be told.
func peerGroups(fd uintptr) []uint32 {
	const most = 1 << 16 // NGROUPS_MAX
	for n := 32; n <= most; n *= 8 {
		groups := make([]uint32, n)
		size := uint32(4 * n)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		if errno == 0 {
			return groups[:size/4]
		}
		if !errors.Is(errno, unix.ERANGE) {
			return nil
		}
	}
	return nil
}

// overflow is the group that those have which have no number in a user namespace:
// strangers, which are no members of anything.
const overflow = 65534

// role is what a process may do: root, and the server's own user, everything; others what
// their groups may.
func (p *peer) role(groups map[uint32]control.Role) (role control.Role) {
	if p.Uid == 0 || p.Uid == uint32(os.Geteuid()) {
		return control.Admin
	}
	for _, g := range append([]uint32{p.Gid}, p.groups...) {
		if g != overflow {
			role = max(role, groups[g])
		}
	}
	return role
}

func (p *peer) caller(groups map[uint32]control.Role) Caller {
	return Caller{Kind: "user", Name: p.name(), UID: &p.Uid, PID: p.Pid, Role: p.role(groups)}
}

type connKey int

const (
	peerKey connKey = iota
	placeKey
	callerKey
	standingKey
	leavingKey
	turnKey
	noteKey
	jobKey
)

// withConn keeps the place of a connection, and who is at the other end, for its requests.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	if over, ok := conn.(*tls.Conn); ok {
		conn = over.NetConn()
	}
	ctx = context.WithValue(ctx, placeKey, conn)
	if p, ok := conn.(*placed); ok {
		conn = p.Conn
	}
	if p := peerOf(conn); p != nil {
		ctx = context.WithValue(ctx, peerKey, p)
	}
	return ctx
}

// callerOf is who makes a request.
func callerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey).(Caller)
	return c
}

// leavingOf ends when the server of a request serves nobody else any more.
func leavingOf(ctx context.Context) <-chan struct{} {
	if leaving, ok := ctx.Value(leavingKey).(context.Context); ok {
		return leaving.Done()
	}
	return nil
}

// placeOf is that of a request's connection; nil: it has none.
func placeOf(ctx context.Context) *placed {
	p, _ := ctx.Value(placeKey).(*placed)
	return p
}

// working gives a request its place for as long as it is worked on.
func working(r *http.Request, yes bool) {
	if p := placeOf(r.Context()); p != nil {
		p.works(yes)
	}
}
