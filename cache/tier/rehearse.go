package tier

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"lunar/backstore"
	"lunar/backstore/evidence"
	"lunar/cache"
	"lunar/cache/segment"
)

// Rehearsal judges stores by what a segment has, which it only reads: journal, table of
// volumes and intents. Blocks and their index are not looked at, so that it takes no memory
// for them. It is for one goroutine, and must be ended.
type Rehearsal struct {
	segment *segment.Segment
	sub     int64           // bytes of a sub-block
	kept    map[uint64]kept // by the identity of the volume
}

// kept is what the segment has of a volume.
type kept struct {
	row   row
	dirty int64 // bytes
	end   int64 // byte behind the last that is dirty
}

// Rehearse looks at the segment of o, if Open would take it over; else it returns nil. It
// refuses what Open would refuse for what is in the segment.
func Rehearse(o Options) (*Rehearsal, error) {
	if o.Segment == "" {
		return nil, nil
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	config := o.config()
	s, err := o.rehearse(&config)
	if s == nil || err != nil {
		return nil, err
	}
	r, err := newRehearsal(&config, s)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cache: %w", err), s.Abandon())
	}
	return r, nil
}

func newRehearsal(config *Config, s *segment.Segment) (*Rehearsal, error) {
	g, err := cache.NewGeometry(config.Layout)
	if err != nil {
		return nil, err
	}
	found := remains{s, newTable(s.Area(tableArea)), g}
	if err := found.check(config); err != nil {
		return nil, err
	}
	r := &Rehearsal{segment: s, sub: int64(g.SubBlock()), kept: map[uint64]kept{}}
	for n := range found.table.rows() {
		if row := found.table.row(uint32(n)); row.used() {
			r.kept[row.id()] = kept{row: row}
		}
	}
	for _, d := range s.Dirty {
		k := r.kept[d.Volume]
		k.dirty += int64(bits.OnesCount64(d.Mask)) * r.sub
		k.end = max(k.end, int64(d.Block)*int64(g.BlockSize())+int64(bits.Len64(d.Mask))*r.sub)
		r.kept[d.Volume] = k
	}
	return r, nil
}

// check returns why New would fail with what is in the segment.
func (f remains) check(config *Config) error {
	slots, err := config.slots()
	if err != nil {
		return err
	}
	dirty, err := f.journalled(slots)
	if err != nil {
		return err
	}
	for id, of := range dirty {
		if err := cache.CheckDirty(cache.Config{ID: id, Slots: slots, BlockSize: config.Layout.BlockSize, LUs: f.table.rows()}, of); err != nil {
			return err
		}
	}
	return f.checkIntents(intentsOf(f.segment))
}

// End gives the segment back.
func (r *Rehearsal) End() error { return r.segment.Abandon() }

// Unwritten returns the volumes that have unwritten data, as that of a Cache.
func (r *Rehearsal) Unwritten() (found []Orphan) {
	for id, k := range r.kept {
		if k.dirty > 0 {
			found = append(found, Orphan{id, k.row.name(), k.dirty, k.row.stamp().Medium})
		}
	}
	slices.SortFunc(found, func(a, b Orphan) int {
		return cmp.Compare(r.kept[a.ID].row.number, r.kept[b.ID].row.number)
	})
	return found
}

// Discard goes on as if that of a Cache had been called.
func (r *Rehearsal) Discard(id uint64) (lost int64, err error) {
	lost = r.kept[id].dirty
	delete(r.kept, id)
	return lost, nil
}

// Prospect is a volume that is about to be opened.
type Prospect struct {
	ID         uint64
	Adopt      bool // as in VolumeConfig
	Enciphered bool // as in Meet
	ReadOnly   bool
	Size       int64 // bytes, when it is open
}

// Judge returns why Meet or Wrap would refuse the store of a volume.
func (r *Rehearsal) Judge(p Prospect, store backstore.Watched) error {
	k, known := r.kept[p.ID]
	if !known {
		return nil
	}
	noted, seen := k.row.noted(), evidence.Seen{Size: p.Size, Exact: store.Exact()}
	seen.Stamp, seen.OK = store.Opened()
	if p.Enciphered {
		seen.Stamp.Medium[2] = noted.Stamp.Medium[2]
	}
	if k.row.state() != 0 {
		if _, _, err := k.row.judge(noted, seen, k.dirty, p.Adopt); err != nil {
			return err
		}
	}
	if k.dirty > 0 && p.ReadOnly {
		return fmt.Errorf("the cache holds %d bytes of unwritten data of volume %q, which is read-only: open it for writing once, so that they are written", k.dirty, k.row.name())
	}
	_, err := k.row.fits(p.Size, k.end, r.sub, seen.Stamp)
	return err
}
