package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

const warmUps = 8

var (
	errCold = errors.New("reading again and again still reads the disk")
	errSlow = errors.New("writing again and again does not reach the volume's end")
)

// warm reads a volume until nothing comes from the disk any more.
func (c client) warm(ctx context.Context, s *server, volume int) error {
	w := sequential("read", volume)
	for i := range warmUps {
		before, err := s.diskReads()
		if err != nil {
			return err
		}
		r, _, err := c.run(ctx, s, w, time.Second<<min(i, 4))
		if err != nil {
			return err
		}
		after, err := s.diskReads()
		if err != nil {
			return err
		}
		if after == before && r.BytesPerSecond*r.Seconds > float64(s.size) {
			return nil
		}
	}
	return errCold
}

// fill writes all of a volume.
func (c client) fill(ctx context.Context, s *server, volume int) error {
	for i := range warmUps {
		r, _, err := c.run(ctx, s, sequential("write", volume), time.Second<<min(i, 4))
		if err != nil || r.BytesPerSecond*r.Seconds > float64(s.size) {
			return err
		}
	}
	return errSlow
}

func sequential(rw string, volume int) workload {
	return workload{rw: rw, kib: 256, depth: 8, connections: 1, volume: volume, tool: tgtloadPolling}
}

// diskReads are the bytes that the server made the disk read so far.
func (s *server) diskReads() (n int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", s.pid()))
	if err != nil {
		return 0, fmt.Errorf("disk reads of %s: %w", s.name, err)
	}
	_, rest, _ := strings.Cut(string(text), "\nread_bytes: ")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		return 0, fmt.Errorf("disk reads of %s in %q: %w", s.name, text, err)
	}
	return n, nil
}

const (
	settleStep  = 250 * time.Millisecond
	settleSteps = 5 // without work, one after the other: longer than flush-age
	settleLimit = 80
)

// settle waits until the server has written what it holds back and does nothing
// any more, since it would disturb the other one.
func (s *server) settle(ctx context.Context) error {
	last, err := look(s)
	for idle, i := 0, 0; err == nil && idle < settleSteps && i < settleLimit; i++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settleStep):
		}
		var now busy
		if now, err = look(s); now.server-last.server > settleStep/50 {
			idle = 0
		} else {
			idle++
		}
		last = now
	}
	return err
}
