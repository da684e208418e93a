package windows

import (
	"errors"
	"fmt"
	"time"
)

// errFull says that the log has no place, and cannot be written back.
var errFull = errors.New("the fast device is full, and cannot be written back")

// run is the background: it writes back while the slow device works.
func (x *Excess) run() {
	tick := time.NewTicker(max(x.config.Window/2, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-x.quit:
			x.turn()
			return
		case <-tick.C:
		case <-x.wake:
		}
		if x.Empty() && x.pressed.Load() == 0 || !x.works() {
			continue
		}
		was := x.trouble.Load()
		if err := x.writeBack(x.pause); err != nil {
			if was == nil { // it is tried again and again
				x.log.Error("writes in excess could not be written back: they stay on the fast device", "err", err)
			}
			text := "writes in excess cannot be written back: " + err.Error()
			x.trouble.Store(&text)
			x.sleep(time.Second)
		} else if x.trouble.Store(nil); was != nil {
			x.log.Info("writes in excess are written back again")
		}
		x.turn()
	}
}

// pause waits until the slow device works, and reports false when the store is closed.
func (x *Excess) pause() bool {
	for !x.works() {
		if !x.sleep(max(x.config.Window/4, time.Millisecond)) {
			return false
		}
	}
	select {
	case <-x.quit:
		return false
	default:
		return true
	}
}

// sleep reports false when the store is closed meanwhile.
func (x *Excess) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-x.quit:
		return false
	case <-t.C:
		return true
	}
}

// turn tells who waits for place.
func (x *Excess) turn() {
	x.roomMu.Lock()
	x.turns++
	x.roomMu.Unlock()
	x.room.Broadcast()
}

// waitForRoom waits until a segment was written back, or could not be.
func (x *Excess) waitForRoom() error {
	x.pressed.Add(1)
	defer x.pressed.Add(-1)
	x.roomMu.Lock()
	defer x.roomMu.Unlock()
	was := x.turns
	select {
	case x.wake <- struct{}{}:
	default:
	}
	for x.turns == was {
		x.room.Wait()
	}
	if text := x.trouble.Load(); text != nil {
		return fmt.Errorf("%w: %s", errFull, *text)
	}
	return nil
}

// writeBack has the slow device get what the older segment has, in the order of its place,
// and then erases that segment. goOn waits before each step, and ends all when it says
// no.
func (x *Excess) writeBack(goOn func() bool) error {
	x.backing.Lock()
	defer x.backing.Unlock()
	index := x.older()
	if index < 0 {
		return nil
	}
	s := x.journal.at(index)
	x.map_.RLock()
	all := x.map_.all()
	x.map_.RUnlock()
	b := x.memory.take()
	defer x.memory.give(b)
	for _, e := range all {
		if !s.holds(e) {
			continue
		}
		for e.n > 0 {
			if !goOn() {
				return nil
			}
			part := e
			if e.at >= 0 {
				part = e.part(e.off, e.off+chunk-page)
			}
			if err := x.back(part, b); err != nil {
				return err
			}
			if part.n == e.n {
				break
			}
			e = e.part(e.off+part.n, e.end())
		}
	}
	return x.release(index, s, all, b)
}

// wipe overwrites what the log has of data that were written back, and writes back the rest
// before.
func (x *Excess) wipe() error {
	if err := x.drain(); err != nil {
		return err
	}
	zeroes := x.memory.take()
	defer x.memory.give(zeroes)
	clear(zeroes)
	x.gate.Lock()
	defer x.gate.Unlock()
	for i := range segments {
		s := x.journal.at(i)
		for at := s.next; at < s.to; {
			n := min(int64(len(zeroes)), s.to-at)
			if err := x.fast.write(at, zeroes[:n], false); err != nil {
				return err
			}
			at += n
		}
	}
	return x.fast.flush()
}

// older returns the segment to write back: the one that takes no records. If that one is
// empty, they change places first. -1: nothing is there.
func (x *Excess) older() int {
	x.gate.Lock() // nobody is between a reservation and its record
	defer x.gate.Unlock()
	x.journal.swap()
	x.journal.mu.Lock()
	defer x.journal.mu.Unlock()
	if other := 1 - x.journal.mu.active; !x.journal.mu.segments[other].empty() {
		return other
	}
	return -1
}

// holds reports whether an extent is of this segment.
func (s *segment) holds(e extent) bool {
	return e.where >= s.from && e.where < s.to
}

// back copies an extent. A newer one may have taken its place meanwhile: that goes before
// it.
func (x *Excess) back(e extent, b []byte) error {
	if e.at < 0 {
		return x.slow.zero(e)
	}
	from := e.at / page * page
	n := (e.at + e.n - from + page - 1) / page * page
	if err := x.fast.read(from, b[:n]); err != nil {
		return x.broken(err)
	}
	copy(b, b[e.at-from:][:e.n])
	x.counts.back.Add(1)
	return x.slow.write(e.off, b[:e.n], false)
}

// release erases a segment that was written back, and has nobody look for its records any
// more.
func (x *Excess) release(index int, s segment, all []extent, b []byte) error {
	// What has taken a place in this segment's stead must be as stable as that was.
	if err := errors.Join(x.unflushed.slow.flushBeside(x.slow), x.unflushed.fast.flushBeside(x.fast)); err != nil {
		return err
	}
	x.gate.Lock()
	defer x.gate.Unlock()
	if err := x.journal.erase(index, b); err != nil {
		return err
	}
	for len(all) > 0 {
		n := min(len(all), 256) // event threads wait that long
		x.map_.Lock()
		for _, e := range all[:n] {
			x.map_.drop(e, &s)
		}
		x.map_.Unlock()
		all = all[n:]
	}
	x.map_.Lock()
	defer x.map_.Unlock()
	for _, e := range x.map_.suspect.all() {
		if s.holds(e) {
			x.map_.suspect.cut(e.off, e.n)
		}
	}
	return nil
}

// drop removes what is left of an extent of a segment.
func (x *extents) drop(e extent, s *segment) {
	var mine []extent
	x.each(e.off, e.n, func(p extent) {
		if s.holds(p) {
			mine = append(mine, p)
		}
	})
	for _, p := range mine {
		x.cut(p.off, p.n)
	}
}
