package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"lunar/scripts/evidence/daemon"
)

// brackets has a file checked that is nothing but lists in lists.
func brackets(_ context.Context, s *scene) (figures, error) {
	file := filepath.Join(s.Scratch, "brackets.yaml")
	if err := os.WriteFile(file, []byte("targets: "+strings.Repeat("[", 20000)), 0o600); err != nil {
		return nil, err
	}
	c := exec.Command(s.Binary, "check", file)
	_ = c.Run() // it is refused, at some cost
	usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return nil, os.ErrInvalid
	}
	return figures{"check's memory, MiB": float64(usage.Maxrss >> 10)}, nil
}

// slowClients crowd the control socket and the metrics.
func slowClients(ctx context.Context, s *scene) (figures, error) {
	t := newTally()
	for network, address := range map[string]string{"unix": s.Socket, "tcp": s.Metrics} {
		go crowd(ctx, 40, func(int) error {
			c, err := net.Dial(network, address)
			if err != nil {
				return err
			}
			defer context.AfterFunc(ctx, func() { c.Close() })()
			defer c.Close()
			for _, b := range []byte("GET /metrics HTTP/1.1\r\nHost: slow\r\n" + strings.Repeat("X-Slow: 1\r\n", 1000)) {
				if _, err := c.Write([]byte{b}); err != nil {
					return err
				}
				pause(ctx, 100*time.Millisecond)
			}
			return nil
		})
	}
	for pause(ctx, 200*time.Millisecond) {
		t.atLeast(commandTime, took(ctx, func() error {
			return exec.CommandContext(ctx, daemon.Lunar(s.Binary), "status", "--socket", s.Socket).Run()
		}))
		t.atLeast(scrapeTime, took(ctx, func() error { return s.scrape(ctx) }))
	}
	return t.figures(), nil
}

// took is how many milliseconds something took, or has been going on; many if it failed.
func took(ctx context.Context, f func() error) float64 {
	begin := time.Now()
	if err := f(); err != nil && ctx.Err() == nil {
		return float64(answerTime.Milliseconds())
	}
	return float64(time.Since(begin).Milliseconds())
}

func (s *scene) scrape(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Metrics+"/metrics", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}
