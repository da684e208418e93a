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
	"lunar/cache/internal/blocks"
	"lunar/cache/internal/volumes"
	"lunar/cache/segment"
)

// Rehearsal judges stores by what a segment has, which it only reads: journal, table of
// volumes and intents. Blocks and their index are not looked at, so that it takes no memory
// for them. It is for one goroutine, and must be ended.
type Rehearsal struct {
	segment *segment.Segment
	sub     int64                // bytes of a sub-block
	volumes map[uint64]unwritten // by the identity of the volume
}

// unwritten is what the segment has of a volume.
type unwritten struct {
	row   volumes.Row
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
		return nil, errors.Join(fmt.Errorf("cache: %w", err), s.Detach())
	}
	return r, nil
}

func newRehearsal(config *Config, s *segment.Segment) (*Rehearsal, error) {
	g, err := cache.NewGeometry(config.Layout)
	if err != nil {
		return nil, err
	}
	found := blocks.Remains{Segment: s, Table: volumes.NewTable(s.Area(blocks.TableArea)), Geometry: g}
	memory := config.memory(nil)
	if err := found.Check(&memory); err != nil {
		return nil, err
	}
	r := &Rehearsal{segment: s, sub: int64(g.SubBlock()), volumes: map[uint64]unwritten{}}
	for n := range found.Table.Rows() {
		if row := found.Table.Row(uint32(n)); row.Used() {
			r.volumes[row.ID()] = unwritten{row: row}
		}
	}
	for _, d := range s.Dirty {
		k := r.volumes[d.Volume]
		k.dirty += int64(bits.OnesCount64(d.Mask)) * r.sub
		k.end = max(k.end, int64(d.Block)*int64(g.BlockSize())+int64(bits.Len64(d.Mask))*r.sub)
		r.volumes[d.Volume] = k
	}
	return r, nil
}

// End gives the segment back.
func (r *Rehearsal) End() error { return r.segment.Detach() }

// Unwritten returns the volumes that have unwritten data, as that of a Cache.
func (r *Rehearsal) Unwritten() (found []Orphan) {
	for id, k := range r.volumes {
		if k.dirty > 0 {
			found = append(found, Orphan{id, k.row.Name(), k.dirty, k.row.Stamp().Medium})
		}
	}
	slices.SortFunc(found, func(a, b Orphan) int {
		return cmp.Compare(r.volumes[a.ID].row.Number, r.volumes[b.ID].row.Number)
	})
	return found
}

// Discard goes on as if that of a Cache had been called.
func (r *Rehearsal) Discard(id uint64) (lost int64, err error) {
	lost = r.volumes[id].dirty
	delete(r.volumes, id)
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
	k, known := r.volumes[p.ID]
	if !known {
		return nil
	}
	noted, seen := k.row.Noted(), evidence.Seen{Size: p.Size, Exact: store.Exact()}
	seen.Stamp, seen.OK = store.Opened()
	if p.Enciphered {
		seen.Stamp.Medium[2] = noted.Stamp.Medium[2]
	}
	if k.row.Opened() {
		if _, _, err := k.row.Judge(noted, seen, k.dirty, p.Adopt); err != nil {
			return err
		}
	}
	if k.dirty > 0 && p.ReadOnly {
		return fmt.Errorf("the cache holds %d bytes of unwritten data of volume %q, which is read-only: open it for writing once, so that they are written", k.dirty, k.row.Name())
	}
	_, err := k.row.Fits(p.Size, k.end, r.sub, seen.Stamp)
	return err
}
