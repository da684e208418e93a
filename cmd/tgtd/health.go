package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"lunar/backstore"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/internal/control"
	"lunar/target/scsi"
)

const (
	// examineInterval is how often files and devices are looked at.
	examineInterval = 2 * time.Second
	// examineLong is how long that may take until it is a trouble of its own.
	examineLong = 10 * time.Second
)

// health watches over the volumes. What is asked for here never blocks; files and
// devices are looked at by goroutines of their own, one at a time for each.
type health struct {
	mu    sync.Mutex
	wards map[string]*ward // by volume, under mu
}

// ward is what is known of a volume. It outlives the opening anew of its store.
type ward struct {
	base   backstore.Store  // the file or device; nil: not opened yet
	cached backstore.Store  // its part in the cache; nil: none
	kept   map[string]error // what could not be saved in the state directory, by kind

	found     []backstore.Trouble  // by Examine
	examining time.Time            // zero: nobody does
	since     map[string]time.Time // when each trouble was noticed
	told      string               // state that was logged last
}

func newHealth() *health { return &health{wards: map[string]*ward{}} }

// of is called under the lock.
func (h *health) of(volume string) *ward {
	w := h.wards[volume]
	if w == nil {
		w = &ward{kept: map[string]error{}, since: map[string]time.Time{}, told: control.HealthOK}
		h.wards[volume] = w
	}
	return w
}

// opened notes what a volume is on, and its part in the cache.
func (h *health) opened(volume string, base, cached backstore.Store) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.of(volume)
	w.base, w.cached, w.found = base, cached, nil
}

// cached is the part of a volume in the cache; nil: none.
func (h *health) cached(volume string) backstore.Store {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of(volume).cached
}

// keeping makes a function that saves something of a volume tell whether it can.
func keeping[T any](h *health, volume, kind string, save func(T) error) func(T) error {
	return func(v T) error {
		err := save(v)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.of(volume).kept[kind] = err
		return err
	}
}

// look examines a volume, unless somebody does.
func (h *health) look(volume string, now time.Time) {
	h.mu.Lock()
	w := h.of(volume)
	base := w.base
	p, ok := base.(backstore.Patient)
	if ok = ok && w.examining.IsZero(); ok {
		w.examining = now
	}
	h.mu.Unlock()
	if !ok {
		return
	}
	found := p.Examine()
	h.mu.Lock()
	defer h.mu.Unlock()
	w.examining = time.Time{}
	if w.base == base { // else it was opened anew
		w.found = found
	}
}

// judge says how a volume is.
func (h *health) judge(volume string, lu *scsi.LogicalUnit, cached *tier.Snapshot, now time.Time) control.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.of(volume)
	out := control.Health{State: control.HealthOK, Troubles: []control.Trouble{}}
	seen := map[string]time.Time{}
	for _, t := range w.troubles(lu, cached, now) {
		since, known := w.since[t.What]
		if !known {
			since = now
		}
		seen[t.What] = since
		state := control.HealthDegraded
		if t.Failed {
			state = control.HealthFailed
		}
		if out.State != control.HealthFailed {
			out.State = state
		}
		out.Troubles = append(out.Troubles, control.Trouble{State: state, What: t.What, Since: since})
	}
	w.since = seen
	return out
}

// troubles are all that is known to be wrong.
func (w *ward) troubles(lu *scsi.LogicalUnit, cached *tier.Snapshot, now time.Time) (out []backstore.Trouble) {
	add := func(failed bool, format string, args ...any) {
		out = append(out, backstore.Trouble{Failed: failed, What: fmt.Sprintf(format, args...)})
	}
	slot := slotOf(lu)
	if slot.Empty() {
		add(true, "its file or device could not be opened again")
		return out
	}
	if p, ok := w.base.(backstore.Patient); ok {
		out = append(out, p.Troubles()...)
	}
	out = append(out, w.found...)
	if !w.examining.IsZero() && now.Sub(w.examining) > examineLong {
		add(true, "its file or device does not answer")
	}
	if v, ok := cached.Volumes[w.cached]; ok && !v.FailingSince.IsZero() {
		add(true, "dirty data cannot be written since %s: they stay in the cache", v.FailingSince.Format(time.DateTime))
	}
	if p, ok := slot.Content().(interface{ Wrong() uint64 }); ok && p.Wrong() > 0 {
		add(false, "found blocks that do not fit their protection information")
	}
	for _, kind := range slices.Sorted(maps.Keys(w.kept)) {
		if err := w.kept[kind]; err != nil {
			add(false, "%s cannot be saved: %v", kind, err)
		}
	}
	return out
}

// watch looks at all volumes until ctx ends, and logs how they are when that changes.
func (h *health) watch(ctx context.Context, d *daemon, log *slog.Logger) {
	tick := time.NewTicker(examineInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			for _, v := range d.config.Load().Volumes {
				go h.look(v.Name, now)
			}
			h.tell(d, log, now)
		}
	}
}

// tell logs what has changed, and forgets volumes that are gone.
func (h *health) tell(d *daemon, log *slog.Logger, now time.Time) {
	cfg, cached := d.config.Load(), d.snapshot()
	units := d.LogicalUnits()
	for _, lu := range units {
		if cfg.Volume(lu.Name()) == nil {
			continue
		}
		found := h.judge(lu.Name(), lu, &cached, now)
		h.mu.Lock()
		w := h.of(lu.Name())
		changed := w.told != found.State
		w.told = found.State
		h.mu.Unlock()
		if changed {
			logHealth(log, lu.Name(), found)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(h.wards, func(name string, _ *ward) bool {
		return cfg.Volume(name) == nil && !slices.ContainsFunc(units, func(lu *scsi.LogicalUnit) bool { return lu.Name() == name })
	})
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
	if d.cache != nil {
		s = d.cache.Snapshot()
	}
	return s
}

// keptWarnings are data that only the cache has, of volumes that nobody serves.
func (d *daemon) keptWarnings() (out []string) {
	if d.cache == nil {
		return nil
	}
	for _, o := range d.cache.Attached().Orphans {
		out = append(out, fmt.Sprintf("the cache keeps %s of volume %s, which is not served: its file or device is incomplete until it is configured again", size(o.Bytes), o.Name))
	}
	return out
}

// healthOf is that of a volume, for the control API.
func (s *source) healthOf(v *conf.Volume, lu *scsi.LogicalUnit, cached *tier.Snapshot) control.Health {
	return s.daemon.health.judge(v.Name, lu, cached, time.Now())
}
