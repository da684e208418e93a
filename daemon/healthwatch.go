package daemon

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"lunar/cache/tier"
	"lunar/conf"
	"lunar/control"
	"lunar/daemon/volumes"
)

// watchHealth looks at all volumes until ctx ends, and logs how they are when that changes.
func (d *daemon) watchHealth(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(volumes.ExamineInterval)
	defer tick.Stop()
	var promised promiseWatch
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, v := range d.config.Load().Volumes {
				go d.Health.Look(v.Name, now)
				if v.Type == conf.FileVolume {
					go d.Health.Measure(v.Name, v.Path)
				}
			}
			d.tellHealth(log, now)
			promised.tell(log, d.promised())
		}
	}
}

// tellHealth logs what has changed.
func (d *daemon) tellHealth(log *slog.Logger, now time.Time) {
	cfg, cached := d.config.Load(), d.snapshot()
	for _, lu := range d.LogicalUnits() {
		if cfg.Volume(lu.Name()) == nil {
			continue
		}
		if found, changed := d.Health.Turned(lu.Name(), &cached, now); changed {
			logHealth(log, lu.Name(), found)
		}
	}
}

func logHealth(log *slog.Logger, volume string, h control.Health) {
	var why []string
	for _, t := range h.Troubles {
		why = append(why, t.What)
	}
	level := map[string]slog.Level{control.HealthOK: slog.LevelInfo, control.HealthDegraded: slog.LevelWarn, control.HealthFailed: slog.LevelError}[h.State]
	log.Log(context.Background(), level, "health of a volume", "volume", volume, "state", h.State, "reason", strings.Join(why, "; "))
}

// snapshot is of the cache, if there is one.
func (d *daemon) snapshot() (s tier.Snapshot) {
	if d.Cache != nil {
		s = d.Cache.Snapshot()
	}
	return s
}

// keptWarnings are data that only the cache has, of volumes that nobody serves.
func (d *daemon) keptWarnings() (out []string) {
	if d.Cache == nil {
		return nil
	}
	for _, o := range d.Cache.Attached().Orphans {
		kept := control.Orphan{Name: o.Name, DirtyBytes: o.Bytes}
		out = append(out, kept.Warning())
	}
	return out
}

// healthOf is that of a volume, for the control API.
func (s *source) healthOf(v *conf.Volume, cached *tier.Snapshot) control.Health {
	return s.daemon.Health.Judge(v.Name, cached, time.Now())
}
