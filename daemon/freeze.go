package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"lunar/backstore"
	"lunar/conf"
	"lunar/control"
	"lunar/control/server"
	"lunar/daemon/volumes"
)

// freezes are the volumes that are frozen. Commands that come for them are held in the
// slots of their stores, until an administrator thaws them, the deadline passes, the
// server stops, or a client that wanted that is gone.
type freezes struct {
	mu   sync.Mutex
	by   map[string]*freeze // of each volume, under mu
	last map[string]string  // how the freeze before ended, for who thaws too late; under mu
}

// freeze is some volumes that are frozen together.
type freeze struct {
	control.Frozen
	longest time.Duration   // commands are held
	began   time.Time       // they are
	prepare func() error    // called before, while they go on; nil: nothing is
	held    bool            // under freezes.mu
	gone    <-chan struct{} // closed when the client that it needs has gone; nil: it needs none
	revoked func() error    // says that the client may not hold it any more; nil: it needs none
	thaw    chan struct{}
	begin   sync.Once     // of the thaw
	why     string        // it thaws
	ended   chan struct{} // nothing is held any more
}

// end begins to thaw the volumes, if nobody has.
func (f *freeze) end(why string) (first bool) {
	f.begin.Do(func() {
		f.why, first = why, true
		close(f.thaw)
	})
	return first
}

// of returns the freeze of a volume; nil: it is not frozen.
func (s *freezes) of(volume string) *freeze {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.by[volume]; f != nil && f.held {
		return f
	}
	return nil
}

// status is what is told of a volume; nil: it is not frozen.
func (s *freezes) status(volume string) *control.FrozenVolume {
	if f := s.of(volume); f != nil {
		return &control.FrozenVolume{At: f.At, Until: f.Until}
	}
	return nil
}

// drift is what the freezes are other than the configuration says.
func (s *freezes) drift() []control.Drift {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []control.Drift
	for _, name := range slices.Sorted(maps.Keys(s.by)) {
		if f := s.by[name]; f.held {
			out = append(out, control.Drift{Kind: "freeze", What: fmt.Sprintf("volume %s is frozen since %s, until %s at the latest", name, f.At.Format(time.TimeOnly), f.Until.Format(time.TimeOnly))})
		}
	}
	return out
}

// all are the freezes.
func (s *freezes) all() []*freeze {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.by))
}

// why nothing may be changed now; empty: it may.
func (s *freezes) why() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.by {
		if !f.held {
			continue // who holds the changes is freezing it, and this is a look besides
		}
		return fmt.Sprintf("%s frozen until %s at the latest: thaw first, or try again", namedVolumes(f.Volumes), f.Until.Format(time.TimeOnly))
	}
	return ""
}

func namedVolumes(names []string) string {
	if len(names) == 1 {
		return "volume " + names[0] + " is"
	}
	return "volumes " + strings.Join(names, ", ") + " are"
}

// take makes a freeze that of its volumes; a name: it is frozen already.
func (s *freezes) take(f *freeze) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by == nil {
		s.by, s.last = map[string]*freeze{}, map[string]string{}
	}
	for _, name := range f.Volumes {
		if s.by[name] != nil {
			return name
		}
	}
	for _, name := range f.Volumes {
		s.by[name] = f
		delete(s.last, name)
	}
	return ""
}

// release ends what take began.
func (s *freezes) release(f *freeze, told string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range f.Volumes {
		delete(s.by, name)
		s.last[name] = told
	}
}

// Freeze implements server.Source.
func (s *source) Freeze(by server.Asker, volume string, k control.Freeze, gone <-chan struct{}) (control.Frozen, error) {
	return s.changes.freeze(by, volume, k, gone)
}

// Thaw implements server.Source.
func (s *source) Thaw(volume string) (control.Thawed, error) { return s.changes.thaw(volume) }

func notFrozen(volume, why string, state bool) error {
	return &control.Refusal{What: "volume " + volume + " was not frozen", State: state, Reasons: []control.Reason{{Text: why}}}
}

// freeze freezes volumes. It holds the changes until it has.
func (a *applier) freeze(by server.Asker, volume string, k control.Freeze, gone <-chan struct{}) (control.Frozen, error) {
	deadline, err := freezeDeadline(k.Deadline, control.DefaultFreeze)
	if err != nil {
		return control.Frozen{}, notFrozen(volume, err.Error(), false)
	}
	if k.Attended && gone == nil {
		return control.Frozen{}, notFrozen(volume, "attended: this connection does not tell when its client is gone", false)
	}
	a.changing.Lock()
	defer a.changing.Unlock()
	if a.life.Err() != nil {
		return control.Frozen{}, notFrozen(volume, "the server is stopping", true)
	}
	if err := by.Begin(); err != nil {
		return control.Frozen{}, err
	}
	names := together(volume, k.With)
	for _, name := range names {
		if a.daemon.config.Load().Volume(name) == nil { // what others are called is not remembered
			return control.Frozen{}, notFrozen(volume, "found no volume "+name, true)
		}
	}
	f := newFreeze(names, deadline)
	if k.Attended {
		f.gone, f.revoked = gone, by.Revoked
	}
	defer by.Awaits(a.freezing(names))()
	if err := a.hold(f); err != nil {
		return control.Frozen{}, notFrozen(volume, err.Error(), true)
	}
	a.log.Info("volumes frozen", "volumes", strings.Join(names, ", "), "until", f.Until)
	return f.Frozen, nil
}

// together are a volume and others, none of them twice.
func together(volume string, with []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(append([]string{volume}, with...))))
}

// newFreeze is of volumes that are to be frozen, none of them twice, for a time at most.
func newFreeze(names []string, longest time.Duration) *freeze {
	return &freeze{Frozen: control.Frozen{Volumes: names}, longest: longest, thaw: make(chan struct{}), ended: make(chan struct{})}
}

// freezeDeadline is for how long a freeze holds commands at most.
func freezeDeadline(text string, absent time.Duration) (time.Duration, error) {
	if text == "" {
		return absent, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second || d > control.MaxFreeze {
		return 0, fmt.Errorf("deadline: found %q, expected a time from 1s to %v, such as 30s", text, control.MaxFreeze)
	}
	return d, nil
}

// hold makes a freeze that of its volumes, and returns when all are held, or none is. The
// caller holds the changes.
func (a *applier) hold(f *freeze) error {
	if taken := a.frozen.take(f); taken != "" {
		return fmt.Errorf("volume %s is frozen already", taken)
	}
	err := a.holdAll(f)
	if err != nil {
		a.frozen.release(f, "it could not be frozen")
		close(f.ended)
	}
	return err
}

// freezing is how far volumes are that are being frozen.
func (a *applier) freezing(names []string) func() control.Progress {
	var slots []*backstore.Slot
	for _, name := range names {
		if open := a.daemon.assembly.Open[name]; open != nil {
			slots = append(slots, open.Slot)
		}
	}
	all := "volumes " + strings.Join(names, ", ")
	return progressOf(all, all+": held, once what runs of them has ended", func() (dirty int64) {
		for _, s := range slots {
			dirty += s.Dirty()
		}
		return dirty
	})
}

// holdAll returns when all volumes are held, or none is. The time counts from when they begin
// to be: what the cache has to write before is written beside their commands.
func (a *applier) holdAll(f *freeze) error {
	begun, err := a.beginFreezes(f.Volumes)
	if err != nil {
		return err
	}
	if f.prepare != nil {
		if err := f.prepare(); err != nil {
			return errors.Join(err, endFreezes(begun))
		}
	}
	f.began = time.Now()
	f.Until = f.began.Add(f.longest)
	ctx, cancel := context.WithTimeout(a.life, min(freezeWait, f.longest))
	defer cancel()
	held, ends := make(chan struct{}, len(begun)), make(chan error, len(begun))
	for _, b := range begun {
		go func() { ends <- b.Hold(ctx, func() { held <- struct{}{} }, f.thaw) }()
	}
	for range begun {
		select {
		case <-held:
		case err := <-ends:
			f.end("it could not be frozen")
			for range len(begun) - 1 {
				err = errors.Join(err, <-ends)
			}
			return errors.Join(err, endFreezes(begun))
		}
	}
	a.frozen.mu.Lock()
	f.At, f.held = time.Now(), true
	a.frozen.mu.Unlock()
	go a.attend(f, begun, ends)
	return nil
}

// freezeWait is how long what is under way on volumes may take to end before they are
// frozen; others wait meanwhile.
const freezeWait = 5 * time.Second

// beginFreezes writes what the cache alone has, of all volumes at once.
func (a *applier) beginFreezes(names []string) (begun []*volumes.Freezing, err error) {
	type result struct {
		*volumes.Freezing
		error
	}
	cfg, results := a.daemon.config.Load(), make(chan result, len(names))
	var all []*conf.Volume
	for _, name := range names {
		v := cfg.Volume(name)
		if v == nil {
			return nil, fmt.Errorf("found no volume %s", name)
		}
		all = append(all, v)
	}
	for _, v := range all {
		go func() {
			b, err := a.daemon.BeginFreeze(a.daemon.Loops()[0], v)
			if err != nil {
				err = fmt.Errorf("volume %s: %w", v.Name, err)
			}
			results <- result{b, err}
		}()
	}
	for range all {
		r := <-results
		if err = errors.Join(err, r.error); r.error == nil {
			begun = append(begun, r.Freezing)
		}
	}
	if err != nil {
		return nil, errors.Join(err, endFreezes(begun))
	}
	return begun, nil
}

func endFreezes(begun []*volumes.Freezing) (err error) {
	for _, b := range begun {
		err = errors.Join(err, b.End())
	}
	return err
}

// attend thaws the volumes when something asks for it.
func (a *applier) attend(f *freeze, begun []*volumes.Freezing, ends <-chan error) {
	f.end(f.await(a.life))
	var err error
	for range begun {
		err = errors.Join(err, <-ends)
	}
	pause := time.Since(f.At)
	err = errors.Join(err, endFreezes(begun))
	a.frozen.release(f, fmt.Sprintf("it was frozen at %s and thawed after %v: %s", f.At.Format(time.TimeOnly), pause.Round(time.Millisecond), f.why))
	attrs := []any{"volumes", strings.Join(f.Volumes, ", "), "why", f.why, "commands were held for", pause.Round(time.Millisecond)}
	if err != nil {
		a.log.Error("volumes thawed", append(attrs, "err", err)...)
	} else {
		a.log.Info("volumes thawed", attrs...)
	}
	close(f.ended)
}

// await waits until something asks for the thaw, and returns what.
func (f *freeze) await(life context.Context) string {
	late, judge := time.NewTimer(time.Until(f.Until)), time.NewTicker(attendTime)
	defer late.Stop()
	defer judge.Stop()
	for {
		select {
		case <-f.thaw:
			return f.why
		case <-late.C:
			return "its deadline has passed: what was copied since then is not of one moment"
		case <-f.gone:
			return "the client that asked for it was gone"
		case <-life.Done():
			return "the server stops"
		case <-judge.C:
			if f.revoked == nil {
				continue
			}
			if err := f.revoked(); err != nil { // who could not thaw it either
				return "the client that asked for it may not any more: " + err.Error()
			}
		}
	}
}

// attendTime is how often it is asked whether a client may still hold a freeze.
const attendTime = time.Second

// thaw thaws a volume and those that were frozen with it. That it was thawed before is
// an error: what was copied since is not of one moment.
func (a *applier) thaw(volume string) (control.Thawed, error) {
	f := a.frozen.of(volume)
	if f == nil || !f.end("it was asked for") {
		why := "it is not frozen"
		if f != nil {
			why = "it thaws: " + f.why
		}
		a.frozen.mu.Lock()
		if told := a.frozen.last[volume]; told != "" && f == nil {
			why += "; " + told
		}
		a.frozen.mu.Unlock()
		return control.Thawed{}, &control.Refusal{What: "volume " + volume + " was not thawed", State: true, Reasons: []control.Reason{{Text: why}}}
	}
	at := time.Now()
	<-f.ended
	return control.Thawed{Volumes: f.Volumes, At: f.At, Held: at.Sub(f.At).Round(time.Millisecond).String()}, nil
}
