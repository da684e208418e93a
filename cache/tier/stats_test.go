package tier

import (
	"errors"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/cache"
	"lunar/internal/eventually"
)

// TestSnapshot: nodes and volumes add up to the whole.
func TestSnapshot(t *testing.T) {
	s := large.on(2).with(Back, fussy)
	s.volume.Fussy = cache.FussyParams{FreqThreshold: 3, AccessThreshold: 1000, Metadata: 64, HRCount: 3}
	s.volume.Age = time.Hour
	f := newFaulty(t, s)
	f.Write(t, 0, backstoretest.Pattern(8*page, 1)) // enters, though fussy
	f.Read(t, 0, 8*page)
	f.Read(t, 256<<10, page) // is counted, and passes by
	found := f.cache.Snapshot()
	v := found.Volumes[f.volume]
	parts := s.nodes * s.parts
	if v.Policy != Back || v.Admission != fussy || v.Fussy.Partitions != parts || v.Fussy.Params != s.volume.Fussy || v.Fussy.Counted == 0 {
		t.Errorf("found %+v", v)
	}
	if v.Dirty != 8*page || found.DirtyBytes != 8*page || v.Resident == 0 || v.Resident%int64(s.block) != 0 {
		t.Errorf("found %d of %d dirty bytes, %d resident, expected %d dirty", v.Dirty, found.DirtyBytes, v.Resident, 8*page)
	}
	if v.Hits != found.Hits || v.Misses != found.Misses || v.Hits == 0 || v.Misses != 1 {
		t.Errorf("found %d hits and %d misses of the volume, %d and %d of all", v.Hits, v.Misses, found.Hits, found.Misses)
	}
	if len(found.Nodes) != s.nodes || found.Size != int64(s.block*s.blocks*parts) || found.Block != int64(s.block) || found.DirtyLimit != found.Size/2 {
		t.Errorf("found %+v", found)
	}
	var sum NodeStats
	for _, n := range found.Nodes {
		add(&sum.Stats, n.Stats)
		sum.Size += n.Size
		sum.Partitions += n.Partitions
	}
	if sum.Stats != found.Stats.Stats || sum.Size != found.Size || sum.Partitions != parts {
		t.Errorf("the nodes add up to %+v, the cache has %+v", sum, found)
	}
}

// TestSnapshotOfTrouble: what fails, since when, and who waits for it.
func TestSnapshotOfTrouble(t *testing.T) {
	s := large.with(Back, "lru")
	s.volume.Age, s.volume.Retry, s.volume.DirtyLimit = time.Millisecond, time.Millisecond, 4*page
	f := newFaulty(t, s)
	f.faults.SetRules(errstore.Rule{Kinds: writes, Hold: true})
	before := time.Now()
	first, second := backstore.Op{Kind: backstore.Write, Data: backstoretest.Pattern(4*page, 1)},
		backstore.Op{Kind: backstore.Write, Off: 4 * page, Data: backstoretest.Pattern(4*page, 2)}
	done := []<-chan struct{}{f.Go(&first), f.Go(&second)}
	state := func() VolumeStats { return f.cache.Snapshot().Volumes[f.volume] }
	eventually.Holds(t, "a write waits", func() bool { return f.cache.Snapshot().Waiting == 1 && f.faults.Held() > 0 })
	if v := state(); v.Throttled != 1 || !v.FailingSince.IsZero() {
		t.Errorf("found %+v, expected one throttled write", v)
	}
	f.faults.SetRules(errstore.Rule{Kinds: writes, Err: errMedium})
	f.faults.Release(-1)
	for _, d := range done {
		<-d
	}
	if first.Err != nil || second.Err != nil && !errors.Is(second.Err, errMedium) {
		t.Errorf("the writes ended with %v and %v", first.Err, second.Err)
	}
	eventually.Holds(t, "writing fails", func() bool { return !state().FailingSince.IsZero() })
	if since := state().FailingSince; since.Before(before) || since.After(time.Now()) {
		t.Errorf("found that it fails since %v, expected after %v", since, before)
	}
	f.faults.SetRules()
	eventually.Holds(t, "writing goes on", func() bool { v := state(); return v.FailingSince.IsZero() && v.Dirty == 0 })
}
