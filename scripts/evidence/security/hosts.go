package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"lunar/internal/initiator"
)

const (
	hostRetry     = time.Second     // between two logins of a host
	mostHostWaits = 2 * time.Minute // until it gives up
)

func hostName(i int) string { return fmt.Sprintf("iqn.2026-11.example.host:%d", i) }

// hostsConfig has a user for each of n hosts, and one target for all.
func hostsConfig(n, port int) string {
	var users strings.Builder
	for i := range n {
		fmt.Fprintf(&users, "      - {user: host-%d, secret: \"secret-of-host-%d\", initiators: [\"%s\"]}\n", i, i, hostName(i))
	}
	return fmt.Sprintf(`server:
  threads: 1
  limits: {sessions: %d}
log: {level: info}
portal-groups:
  local: {tag: 1, listen: ["127.0.0.1:%d"]}
auth-groups:
  hosts:
    chap:
%svolumes:
  shared: {type: ram, size: 1MiB}
targets:
  %s: {auth-group: hosts, luns: [{lun: 0, volume: shared}]}
`, n+n/5+16, port, users.String(), openTarget)
}

// hosts are sessions of as many hosts, each with a user and an address of its own.
type hosts struct {
	back, repeated atomic.Int64
	conns          []*initiator.Conn
	times          []time.Duration // until each was back, or gave up
}

// hostsAt has n of them log in at once, each again and again until it is in.
func hostsAt(ctx context.Context, portal string, n int) *hosts {
	ctx, stop := context.WithTimeout(ctx, mostHostWaits)
	defer stop()
	h := &hosts{conns: make([]*initiator.Conn, n), times: make([]time.Duration, n)}
	begin := time.Now()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			chap := initiator.CHAP{User: fmt.Sprintf("host-%d", i), Secret: fmt.Appendf(nil, "secret-of-host-%d", i)}
			o := as(hostName(i), openTarget, &chap, uint32(i))
			h.times[i] = mostHostWaits
			for ctx.Err() == nil {
				c, err := readyAt(context.WithoutCancel(ctx), manyAddresses(i), portal, o, 0)
				if err == nil {
					h.conns[i], h.times[i] = c, time.Since(begin)
					h.back.Add(1)
					return
				}
				h.repeated.Add(1)
				pause(ctx, hostRetry)
			}
		})
	}
	all.Wait()
	return h
}

func (h *hosts) leave() {
	for _, c := range h.conns {
		if c != nil {
			c.Close()
		}
	}
}
