package daemon

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"lunar/conf"
	"lunar/control"
)

// snapshotAge is the time after which snapshots are looked at again: writes alter what is
// shared.
const snapshotAge = time.Minute

// snapshots are what is known of those of all volumes.
type snapshots struct {
	mu sync.Mutex
	by map[string]*snapshotsOf // under mu
}

// snapshotsOf are what is known of those of one volume.
type snapshotsOf struct {
	busy  bool      // somebody looks
	stale bool      // they have changed since
	seen  time.Time // when somebody looked last
	told  *control.VolumeSnapshots
	next  time.Time // when its schedule wants something; zero: it has none
	cause string    // why that was not done
}

// of is called under the lock.
func (s *snapshots) of(volume string) *snapshotsOf {
	if s.by == nil {
		s.by = map[string]*snapshotsOf{}
	}
	if s.by[volume] == nil {
		s.by[volume] = &snapshotsOf{stale: true}
	}
	return s.by[volume]
}

// changed says that volumes have other snapshots than before.
func (s *snapshots) changed(volumes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range volumes {
		s.of(v).stale = true
	}
}

// status is what is told of a volume; nil: it has no snapshots and no schedule.
func (s *snapshots) status(volume string) *control.VolumeSnapshots {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.of(volume).told
	if told == nil {
		return nil
	}
	out := *told
	return &out
}

// warnings are the schedules that could not be kept.
func (s *snapshots) warnings() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, of := range s.by {
		if of.cause != "" {
			out = append(out, fmt.Sprintf("volume %s: the snapshot that its schedule wants was not made: %s", name, of.cause))
		}
	}
	slices.Sort(out)
	return out
}

// begin reports whether somebody is to look at a volume now, who ends it then.
func (s *snapshots) begin(v *conf.Volume, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.of(v.Name)
	scheduled := !of.next.IsZero()
	due := of.stale || now.Sub(of.seen) >= snapshotAge || now.Before(of.seen) || // the clock was set
		scheduled && !now.Before(of.next) || scheduled != (v.Snapshots != nil)
	if of.busy || !due {
		return false
	}
	of.busy, of.stale, of.seen = true, false, now
	return true
}

func (s *snapshots) end(volume string, told *control.VolumeSnapshots, next time.Time, cause string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.of(volume)
	of.busy, of.told, of.next, of.cause = false, told, next, cause
}

// forget forgets volumes that are not configured any more.
func (s *snapshots) forget(cfg *conf.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, of := range s.by {
		if !of.busy && cfg.Volume(name) == nil {
			delete(s.by, name)
		}
	}
}

// cause is why the schedule of a volume was not kept.
func (s *snapshots) cause(volume string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(volume).cause
}
