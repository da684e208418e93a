package daemon

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"lunar/internal/cli"
)

// tellService logs that the service manager could not be told something.
func tellService(log *slog.Logger, err error) {
	if err != nil {
		log.Warn("the service manager could not be told", "err", err)
	}
}

// summary is what the service manager shows of the server.
func (d *daemon) summary() string {
	cfg := d.config.Load()
	return "Serving " + strings.Join([]string{
		cli.Counted(len(cfg.Volumes), "volume"), cli.Counted(len(cfg.Targets), "target"), cli.Counted(len(d.Sessions()), "session"),
	}, ", ")
}

// tellAlive tells the service manager until ctx ends that the server lives, and how many
// sessions there are.
func (d *daemon) tellAlive(ctx context.Context, log *slog.Logger) {
	within := d.service.Watchdog()
	if within == 0 {
		return
	}
	tick := time.NewTicker(within / 4)
	defer tick.Stop()
	for said := d.summary(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := d.Alive(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			log.Error("the service manager is not told that the server lives, and will end it", "reason", err)
			continue
		}
		tellService(log, d.service.Alive())
		if now := d.summary(); now != said && d.Ready() == nil {
			said = now
			tellService(log, d.service.Status(now))
		}
	}
}
