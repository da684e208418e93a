package volumes

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"lunar/backstore"
	"lunar/cache/tier"
	"lunar/control"
	"lunar/internal/bytesize"
)

const (
	// ExamineInterval is how often files and devices are looked at.
	ExamineInterval = 2 * time.Second
	// examineLong is how long that may take until it is a trouble of its own.
	examineLong = 10 * time.Second
	// fullBelow is what a file system has left at most that counts as full: some keep the
	// last blocks for themselves.
	fullBelow = 1 << 20
)

// health watches over the volumes. Its methods never block: goroutines of their
// own look at the files and devices, one at a time for each.
type health struct {
	mu    sync.Mutex
	wards map[string]*ward // by volume, under mu
}

// ward is what is known of a volume. It outlives the opening anew of its store.
type ward struct {
	base   backstore.Store  // the file or device; nil: not opened yet
	cached backstore.Store  // its part in the cache; nil: none
	slot   *backstore.Slot  // where its logical unit has its store; nil: it is not open
	kept   map[string]error // what could not be saved in the state directory, by kind

	found     []backstore.Trouble  // by Examine
	space     *control.Space       // by Measure; nil: not known
	shared    int64                // bytes of its file that snapshots or clones have too
	measuring bool                 // somebody does
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

// Serves notes where the logical unit of a volume has its store.
func (h *health) Serves(volume string, slot *backstore.Slot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.of(volume).slot = slot
}

// Slot is where the logical unit of a volume has its store; nil: it is not open.
func (h *health) Slot(volume string) *backstore.Slot {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of(volume).slot
}

// Base is what a volume is on, below all layers; nil: it is not open.
func (h *health) Base(volume string) backstore.Store {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.of(volume).base
}

// Forget forgets a volume that is closed.
func (h *health) Forget(volume string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.wards, volume)
}

// Cached is the part of a volume in the cache; nil: none.
func (h *health) Cached(volume string) backstore.Store {
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

// Look examines a volume, unless somebody does.
func (h *health) Look(volume string, now time.Time) {
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

// Judge says how a volume is.
func (h *health) Judge(volume string, cached *tier.Snapshot, now time.Time) control.Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.of(volume)
	out := control.Health{State: control.HealthOK, Troubles: []control.Trouble{}}
	seen := map[string]time.Time{}
	for _, t := range w.troubles(cached, now) {
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

// Turned is judge that also tells whether the state is another one than at the last time.
func (h *health) Turned(volume string, cached *tier.Snapshot, now time.Time) (found control.Health, changed bool) {
	found = h.Judge(volume, cached, now)
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.of(volume)
	changed = w.told != found.State
	w.told = found.State
	return found, changed
}

// troubles are all that is known to be wrong.
func (w *ward) troubles(cached *tier.Snapshot, now time.Time) (out []backstore.Trouble) {
	add := func(failed bool, format string, args ...any) {
		out = append(out, backstore.Trouble{Failed: failed, What: fmt.Sprintf(format, args...)})
	}
	switch {
	case w.slot == nil:
		return nil // it is closed
	case w.slot.Empty():
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
	if s := w.space; s != nil && s.Free < fullBelow && s.Unallocated+w.shared > 0 {
		add(false, "its file system is full: writes that need space there fail%s", sharing(w.shared))
	}
	if v, ok := cached.Volumes[w.cached]; ok && !v.FailingSince.IsZero() {
		add(true, control.DirtyTrouble+" since %s: they stay in the cache", v.FailingSince.Format(time.DateTime))
	}
	if p, ok := w.slot.Content().(interface{ Wrong() uint64 }); ok && p.Wrong() > 0 {
		add(false, "found blocks that do not fit their protection information")
	}
	for _, kind := range slices.Sorted(maps.Keys(w.kept)) {
		if err := w.kept[kind]; err != nil {
			add(false, "%s cannot be saved: %v", kind, err)
		}
	}
	return out
}

// sharing tells who has an allocated file why its writes need space.
func sharing(shared int64) string {
	if shared == 0 {
		return ""
	}
	return fmt.Sprintf(", also of the %s that snapshots or clones have too; lunar volume snapshot delete makes space", bytesize.Text(shared))
}
