package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"lunar/scripts/evidence/canary"
	"lunar/scripts/evidence/daemon"
	"lunar/scripts/evidence/notes"
)

const (
	stallPhases = 3 // 1 without times, and a tenth of the times
	phaseAlone  = 800 * time.Millisecond
	phaseDriven = 1600 * time.Millisecond
	driveEnds   = 30 * time.Second // that calls under way may take then

	// mostWait is what no command may wait for a call. Calls that do take longer: a
	// command that waits for one of them would show it.
	mostWait = 100 * time.Millisecond
)

// stall drives the API in every way beside an initiator. The server has one CPU for all
// that it does, so that I/O has to be served between and beside the calls.
func stall(ctx context.Context, o options) (facts, error) {
	if !o.Untimed {
		if err := canary.StepAside(); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp("/dev/shm", "operate")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := daemon.New(o.Tgtd, dir, stallConfig(o.Objects, 1))
	if err != nil {
		return nil, err
	}
	server, _ := canary.CPUs()
	s.Prefix = canary.Pinned(server)
	portal, err := s.Start()
	if err != nil {
		return nil, err
	}
	defer func() { _ = s.Kill(syscall.SIGKILL) }()
	c := newCanary(portal, !o.Untimed)
	found := facts{notes.Found("how it is done", fmt.Sprintf("%d volumes and targets; the server has one CPU, and a host on another one reads and writes 4 KiB, 500 a second; %d times %v alone and %v with calls, as many as the other CPU has time for; medians, alone → meanwhile", o.Objects, stallPhases, phaseAlone, phaseDriven), true)}
	for _, t := range troubles {
		one, err := t.beside(ctx, o, s, portal, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", t.name, err, tail(s.Output.String()))
		}
		found = append(found, one)
	}
	c.Leave()
	return append(found, notes.Found("commands that failed, blocks that were wrong, sessions that were lost", fmt.Sprint(harm(c), " ", c.Bad, strings.Join(c.Losses, "; ")), harm(c) == 0)), nil
}

// tail is the end of what a server said.
func tail(said string) string { return said[max(0, len(said)-2048):] }

// beside watches a canary alone and with calls.
func (t trouble) beside(ctx context.Context, o options, s *daemon.Server, portal string, c *canary.Canary) (notes.Fact, error) {
	var p canary.Phases
	var sum done
	phases, alone, driven := stallPhases, phaseAlone, phaseDriven
	if o.Untimed {
		phases, alone, driven = 1, alone/10, driven/10
	}
	for range phases {
		before, err := c.Live(ctx, alone, nil)
		if err != nil {
			return notes.Fact{}, err
		}
		driving, stop := context.WithCancel(ctx)
		type end struct {
			done
			err error
		}
		ended, begins := make(chan end, 1), make(chan struct{})
		go func() {
			d, err := t.command(driving, o, s, portal, func() { close(begins) })
			stop()
			ended <- end{d, err}
		}()
		select {
		case <-driving.Done():
		case <-begins:
		}
		with, err := c.Live(ctx, driven, stop)
		stop()
		e := <-ended
		if err := errors.Join(err, e.err); err != nil {
			return notes.Fact{}, err
		}
		p.Add(before, with)
		sum.add(e.done)
	}
	p50 := func(l canary.Slice) time.Duration { return l.P50 }
	p99 := func(l canary.Slice) time.Duration { return l.P99 }
	longest := p.Longest()
	for _, with := range p.With {
		for _, one := range with.Slow {
			longest = max(longest, one.Took())
		}
	}
	return notes.Found(t.what, fmt.Sprintf("median %v → %v, 99th percentile %v → %v, longest %v; %d calls or events, %d of them refused, the longest of %v", median(p.Alone, p50), median(p.With, p50), median(p.Alone, p99), median(p.With, p99), tens(longest), sum.Calls, sum.Refused, sum.Longest.Round(time.Millisecond)),
		sum.Calls > sum.Refused && (o.Untimed || longest <= mostWait)), nil
}

func median(all []canary.Slice, of func(canary.Slice) time.Duration) time.Duration {
	return tens(time.Duration(canary.Median(all, func(s canary.Slice) float64 { return float64(of(s)) })))
}

// command drives the API in a process of its own until ctx ends. The canary's thread, a
// real-time one, preempts it.
func (t trouble) command(ctx context.Context, o options, s *daemon.Server, portal string, begins func()) (d done, err error) {
	self, err := os.Executable()
	if err != nil {
		return d, err
	}
	var line []string
	if !o.Untimed {
		_, cpu := canary.CPUs()
		line = canary.Pinned(cpu)
	}
	line = append(line, self, "drive", t.name, s.Socket(), s.Config, portal, fmt.Sprint(o.Objects))
	c := exec.Command(line[0], line[1:]...)
	in, err := c.StdinPipe()
	if err != nil {
		return d, err
	}
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.StdoutPipe()
	if err != nil {
		return d, err
	}
	if err := c.Start(); err != nil {
		return d, err
	}
	defer context.AfterFunc(ctx, func() {
		in.Close()
		time.AfterFunc(driveEnds, func() { c.Process.Kill() })
	})()
	lines := bufio.NewReader(out)
	if line, _ := lines.ReadString('\n'); line == begun+"\n" {
		begins()
	}
	err = json.NewDecoder(lines).Decode(&d)
	if e := c.Wait(); e != nil {
		return d, fmt.Errorf("%w: %s", e, said.String())
	}
	return d, err
}
