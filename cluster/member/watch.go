package member

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"lunar/cluster/etcd"
	"lunar/internal/greetings"
)

// watchProcesses ends the leases of processes that die (etcd.Options.Guard): a process has
// a connection for each of its leases, and the kernel closes it at once.
func watchProcesses(ctx context.Context, path string, state *etcd.State, log *slog.Logger) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	door := greetings.Door{Listener: l, Told: func(why error) {
		log.Warn("the deaths of processes are not noticed: their leases end after their time", "err", why)
	}}
	for {
		c, err := door.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go watchProcess(ctx, c, state, log)
	}
}

// leasePatience is how long it is tried to end a lease: by then it has ended by itself.
const leasePatience = 10 * time.Second

func watchProcess(ctx context.Context, c net.Conn, state *etcd.State, log *slog.Logger) {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	var lease int64
	lines := bufio.NewScanner(c)
	for lines.Scan() {
		if lines.Text() == "keep" {
			return
		}
		_, _ = fmt.Sscanf(lines.Text(), "lease %d", &lease) // others are signs of life
	}
	if ctx.Err() != nil || lease == 0 {
		return
	}
	ctx, end := context.WithTimeout(ctx, leasePatience)
	defer end()
	ended, err := state.EndLease(ctx, lease)
	switch {
	case err != nil:
		log.Warn("could not end the lease of a process that is gone: it ends after its time", "err", err)
	case ended:
		log.Info("ended the lease of a process that is gone", "lease", fmt.Sprintf("%x", lease))
	}
}
