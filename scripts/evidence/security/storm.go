package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"lunar/internal/freeport"
	"lunar/internal/initiator"
	"lunar/scripts/evidence/canary"
	"lunar/scripts/evidence/daemon"
)

// A login storm is what follows the death of a server: all who had sessions want them
// back at once, while a stranger floods the portal.

const (
	stormSessions = 1000
	floodRate     = 600  // connections a second
	longestStorm  = 10.0 // seconds until all are back
)

// Figures of a storm; stormColumns are those of the table, in order.
const (
	allBack   = "all back after, s"
	halfBack  = "half back after, s"
	isBack    = "sessions back"
	serverCPU = "server's CPU time, s" // from its start to its end
	tried     = "flood's attempts/s"
	opened    = "connections of them/s" // none while the server is down
	refused   = "refused logins of them/s"
	admitted  = "flood's sessions"
)

var stormColumns = []string{"portal open after, s", halfBack, allBack, isBack, "logins repeated", serverCPU, tried, opened, refused, admitted}

// storm is the flood and what has to hold meanwhile.
var storm = attack{
	name: "storm", floods: true, run: flood,
	bounds: []bound{timed(atMost(allBack, longestStorm)), atMost(admitted, 0)},
}

// flood opens connections at its rate from ctx's beginning to its end: half of a login on
// one, a login with a wrong secret on the next. While the server is down it is refused.
func flood(ctx context.Context, s *scene) (figures, error) {
	t := newTally()
	login := initiator.NewPDU(initiator.OpLoginRequest, 0x87, nil)
	wrong := initiator.CHAP{User: "host-0", Secret: []byte("not-the-secret-of-host-0")}
	var all sync.WaitGroup
	begin := time.Now()
	for n := 0; pause(ctx, 5*time.Millisecond); {
		for ; n < int(floodRate*time.Since(begin).Seconds()); n++ {
			half, nth := n%2 == 0, uint32(n)
			t.add(tried, 1)
			all.Go(func() {
				c, err := dialFrom(ctx, malloryAddress, s.Portal)
				if err != nil {
					return
				}
				defer c.Close()
				t.add(opened, 1)
				if half {
					if _, err := c.Write(login.BHS[:24]); err == nil {
						_, _ = c.Read(make([]byte, 1)) // until the server closes it
					}
					return
				}
				mine := initiator.NewConn(c)
				mine.Timeout = answerTime
				switch err := mine.Login(as(hostName(0), openTarget, &wrong, nth)); {
				case err == nil:
					t.add(admitted, 1)
				case errors.As(err, new(*initiator.LoginFailure)):
					t.add(refused, 1)
				}
			})
		}
	}
	all.Wait()
	return t.figures(), nil
}

// stormOf restarts a server with n sessions by kill -9 while the flood goes on, and waits
// until all are back.
func (r *runCommand) stormOf(dir string, n int) (outcome, error) {
	port, err := freeport.Find()
	if err != nil {
		return outcome{}, err
	}
	d, err := daemon.New(r.Tgtd, dir, hostsConfig(n, port))
	if err != nil {
		return outcome{}, err
	}
	server, _ := canary.CPUs()
	d.Prefix = canary.Pinned(server)
	portal, err := d.Start()
	if err != nil {
		return outcome{}, err
	}
	g := &siege{attack: storm, timed: r.timed, outcome: outcome{Figures: figures{}}, site: &site{Server: d, scene: scene{Portal: portal}}}
	if err := g.throughStorm(r.ctx, n); err != nil {
		g.Process.Kill()
		return outcome{}, fmt.Errorf("%w\n%s", err, tail(g.Output.String()))
	}
	g.Failed = g.stop()
	g.Figures[serverCPU] = hundredths(g.used.Seconds())
	if g.Figures[isBack] < float64(n) {
		g.Failed = append(g.Failed, fmt.Sprintf("%s: %g", isBack, g.Figures[isBack]))
	}
	g.judge()
	return g.outcome, nil
}

// throughStorm fills the figures in.
func (g *siege) throughStorm(ctx context.Context, n int) error {
	before := hostsAt(ctx, g.scene.Portal, n)
	defer before.leave()
	if before.back.Load() < int64(n) {
		return fmt.Errorf("%d of %d sessions before the storm", before.back.Load(), n)
	}
	if err := g.remembered(ctx, n); err != nil {
		return err
	}
	flooding, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	var counted figures
	go func() {
		var err error
		counted, err = g.command(flooding, stop)
		ended <- err
	}()
	pause(flooding, settleTime)
	if err := g.Kill(syscall.SIGKILL); err != nil {
		return err
	}
	for range g.Portal { // until it has said all
	}
	before.leave()
	begin := time.Now()
	started := make(chan error, 1)
	go func() {
		_, err := g.Start()
		g.Figures["portal open after, s"] = hundredths(time.Since(begin).Seconds())
		started <- err
	}()
	after := hostsAt(flooding, g.scene.Portal, n)
	defer after.leave()
	err := <-started
	stop()
	if err := errors.Join(err, <-ended); err != nil {
		return err
	}
	for name, found := range counted {
		g.Figures[name] = found
	}
	slices.Sort(after.times)
	g.Figures[isBack], g.Figures["logins repeated"] = float64(after.back.Load()), float64(after.repeated.Load())
	g.Figures[halfBack], g.Figures[allBack] = hundredths(after.times[n/2].Seconds()), hundredths(after.times[n-1].Seconds())
	return nil
}

// remembered waits until the server has saved who has sessions, for which it takes its time.
func (g *siege) remembered(ctx context.Context, n int) error {
	for pause(ctx, 100*time.Millisecond) {
		saved, err := os.ReadFile(filepath.Join(g.State, "guests"))
		if err == nil && strings.Count(string(saved), `"name"`) == n {
			return nil
		}
	}
	return ctx.Err()
}
