package main

import (
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"lunar/scripts/evidence/multipath/writers"
	"lunar/scripts/evidence/site"
)

const (
	bootPatience = 8 * time.Minute  // emulated, beside whatever else runs
	patience     = 5 * time.Minute  // of a call
	still        = 10 * time.Second // what no call takes of a guest that runs
)

// within waits for a value, in steps: time that passes while this host stands still is one
// step.
func within[T any](d time.Duration, values <-chan T) (value T, ok bool) {
	const step = 5 * time.Second
	for range d / step {
		select {
		case value = <-values:
			return value, true
		case <-time.After(step):
		}
	}
	return value, false
}

// guest is the lab's machine with its program that writes.
type guest struct {
	lab    *exec.Cmd
	ended  chan error // when the lab has ended
	client *rpc.Client
	stood  atomic.Int64 // how often the guest, or all of this host, stood still
}

// guest boots one, and returns when its program writes.
func (o *options) guest(s *site.Site) (*guest, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	g := &guest{lab: exec.Command(o.Run, "multipath@cluster"), ended: make(chan error, 1)}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	g.lab.Env = append(os.Environ(), "LAB_SECONDS=10800", "LAB_FILES="+o.Guest, "LAB_LOGS="+o.Logs, "TGTD="+o.Bin+"/tgtd",
		"LAB_ARGUMENTS="+strings.Join([]string{port, s.Nodes[0].Portal, strings.Join(o.Settings, ",")}, " "))
	g.lab.Stdout, g.lab.Stderr = os.Stderr, os.Stderr
	g.lab.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := g.lab.Start(); err != nil {
		return nil, err
	}
	conns := make(chan net.Conn, 1)
	go func() {
		if conn, err := l.Accept(); err == nil { // else it has been closed
			conns <- conn
		}
		close(conns)
	}()
	go func() {
		g.ended <- g.lab.Wait()
		l.Close()
	}()
	conn, ok := within(bootPatience, conns)
	if conn == nil {
		g.end()
		return nil, fmt.Errorf("the guest does not write; the lab has ended before: %t", ok)
	}
	g.client = rpc.NewClient(conn)
	return g, nil
}

// call has a method of writers.Writers called.
func (g *guest) call(method string, argument, answer any) error {
	began := time.Now()
	c := g.client.Go("Writers."+method, argument, answer, make(chan *rpc.Call, 1))
	if _, ok := within(patience, c.Done); !ok {
		return fmt.Errorf("the guest has not answered %s within %v", method, patience)
	}
	if time.Since(began) > still {
		g.stood.Add(1)
	}
	return c.Error
}

// watch sees when this program stands still.
func (g *guest) watch() {
	const look, long = 100 * time.Millisecond, 2 * time.Second
	for {
		last := time.Now()
		time.Sleep(look)
		if time.Since(last) > long {
			g.stood.Add(1)
		}
	}
}

// run runs a command of the shell in the guest.
func (g *guest) run(command string) (said string, err error) {
	return said, g.call("Run", command, &said)
}

func (g *guest) begin() error { return g.call("Begin", writers.Nothing{}, &writers.Nothing{}) }

func (g *guest) read() (f writers.Figures, err error) {
	return f, g.call("Read", writers.Nothing{}, &f)
}

// finish has the guest's program and the lab's scenario end well.
func (g *guest) finish() error {
	err := errors.Join(g.call("End", writers.Nothing{}, &writers.Nothing{}), g.client.Close())
	e, ok := within(patience, g.ended)
	if !ok {
		return errors.Join(err, fmt.Errorf("the lab's scenario has not ended within %v", patience))
	}
	g.ended <- nil
	return errors.Join(err, e)
}

// end ends the lab if it has not ended yet.
func (g *guest) end() {
	_ = g.lab.Process.Signal(syscall.SIGTERM) // it may have ended
	<-g.ended
}
