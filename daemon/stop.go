package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"lunar/conf"
	"lunar/internal/bytesize"
)

// shutdownTime bounds the whole of a stop but for writing what the cache still
// holds: sessions get the first part of it to finish and log out.
const shutdownTime = 20 * time.Second

// overdueTime is how much longer a stop may take before the process ends
// anyway: a flush that hangs in the kernel must not hang the service manager.
// The dirty data of the cache then stay in its segment, for the next start.
const overdueTime = 15 * time.Second

// flushTimeOf is how long the server waits for its stores to become stable: with
// dirty data as long as it takes, for shutDown gives up when nothing moves; else
// the server's default, 0.
func flushTimeOf(cfg *conf.Config) time.Duration {
	if slices.ContainsFunc(cfg.Volumes, func(v conf.Volume) bool { return v.Write == conf.WriteBack }) {
		return 24 * time.Hour
	}
	return 0
}

// shutDown ends the server, in bounded time but while dirty data is being
// written.
func shutDown(s *daemon, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(ctx) }()
	const patience = shutdownTime + overdueTime
	err := await(ended, s.unwritten, patience, time.Second, func(left int64) {
		log.Info("writing the dirty data of the cache", "left", bytesize.Text(left))
		tellService(log, s.service.Extend(patience+overdueTime, "Writing the dirty data of the cache, "+bytesize.Text(left)+" left"))
	})
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	log.Info("stopped")
	return nil
}

// await waits for an end until the number of unwritten bytes has been the same
// for some time, and tells it in every interval in which it has changed.
func await(ended <-chan error, unwritten func() int64, patience, interval time.Duration, tell func(left int64)) error {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	last, moved := unwritten(), time.Now()
	for {
		select {
		case err := <-ended:
			return err
		case <-ticks.C:
		}
		if now := unwritten(); now != last {
			last, moved = now, time.Now()
			tell(now)
		}
		if time.Since(moved) > patience {
			return fmt.Errorf("not finished, and nothing has moved for %v; %s in the cache are not written yet", patience, bytesize.Text(last))
		}
	}
}
