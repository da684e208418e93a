package windows

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"hash/crc32"
)

// recover reads what the log has. A device of zeroes becomes a log.
func (x *Excess) recover() error {
	b := x.memory.take()
	defer x.memory.give(b)
	x.unflushed.slow.end() // of the last process
	x.unflushed.fast.end()
	if err := x.fast.read(0, b[:page]); err != nil {
		return err
	}
	j := &x.journal
	j.mu.segments = layout(x.fast.store.Info().Size)
	if bytes.Equal(b[:page], make([]byte, page)) {
		return x.make(b)
	}
	if err := j.label.decode(b); err != nil {
		return err
	}
	if want := x.config.Identity; want != [16]byte{} && j.label.identity != want {
		return fmt.Errorf("found that of another volume: %w", ErrNotIts)
	}
	for i := range j.mu.segments {
		if err := x.recoverLabel(&j.mu.segments[i], b); err != nil {
			return err
		}
	}
	if j.mu.segments[1].generation > j.mu.segments[0].generation {
		j.mu.active = 1
	}
	for _, i := range []int{1 - j.mu.active, j.mu.active} { // the newer one goes before the other
		if err := x.recoverSegment(&j.mu.segments[i], b); err != nil {
			return err
		}
	}
	if err := x.owns(); err != nil {
		return err
	}
	// The next to take records must be the newer one, or what it has would go before that
	// after another start.
	if other := 1 - j.mu.active; j.mu.segments[other].empty() {
		if err := j.erase(other, b); err != nil {
			return err
		}
	}
	if j.label.size == x.size() && j.label.slow == mediumOf(x.config.Slow) {
		return nil
	}
	return x.relabel(x.size())
}

// owns refuses a log with writes of another volume, or of a part that this one has not. One
// that is empty is anybody's. Who has no note of the log knows it by the slow device that it
// was written for.
func (x *Excess) owns() error {
	l, slow := &x.journal.label, mediumOf(x.config.Slow)
	switch {
	case x.Empty():
		return nil
	case l.size > x.size():
		return fmt.Errorf("found writes of a volume of %d bytes, expected one of at most %d: let it have its size, and stop the server in order", l.size, x.size())
	case x.config.Identity != [16]byte{}, l.slow != medium{} && l.slow == slow:
		return nil
	case l.slow == medium{}:
		return fmt.Errorf("found writes, and nothing tells that they are of this volume (an earlier version has left them, or its device cannot be told from others): %w", ErrNotIts)
	}
	return fmt.Errorf("found writes for another file or device than %s: %w", x.config.Slow.Info().Describe, ErrNotIts)
}

// make writes the labels of a fresh device. That of the device is the last: without it, a
// start begins anew.
func (x *Excess) make(b []byte) error {
	j := &x.journal
	if x.config.Identity != [16]byte{} {
		return fmt.Errorf("found an empty one: %w", ErrNotIts)
	}
	_, _ = rand.Read(j.label.identity[:]) // never fails
	j.label.size, j.label.slow = x.size(), mediumOf(x.config.Slow)
	for i := range segments {
		if err := j.erase(i, b); err != nil {
			return err
		}
	}
	j.mu.active = 0 // the older one: the other is the next
	j.label.encode(b)
	return x.fast.write(0, b[:page], true)
}

func (x *Excess) recoverLabel(s *segment, b []byte) error {
	if err := x.fast.read(s.from, b[:page]); err != nil {
		return err
	}
	var l label
	if err := l.decode(b); err != nil {
		return fmt.Errorf("segment at byte %d: %w", s.from, err)
	}
	if l.identity != x.journal.label.identity {
		return fmt.Errorf("segment at byte %d: found that of another volume", s.from)
	}
	s.begin(l.generation)
	return nil
}

// recoverSegment reads the records of a segment. There may be gaps: of records that were
// under way beside others that were made stable.
func (x *Excess) recoverSegment(s *segment, b []byte) error {
	data := x.memory.take()
	defer x.memory.give(data)
	for at := s.from + page; at < s.to; {
		n := min(int64(chunk), s.to-at)
		if err := x.fast.read(at, b[:n]); err != nil {
			return err
		}
		next := at + n
		for here := at; here < at+n; {
			var r record
			whole, err := r.decode(b[here-at:][:page], &x.journal.label.identity, s.generation, here), error(nil)
			if whole {
				whole, err = x.recoverRecord(s, &r, data)
			}
			if err != nil {
				return err
			}
			if !whole {
				here += page
				continue
			}
			here += r.length()
			s.next, next = here, max(next, here)
		}
		at = next
	}
	return nil
}

// recoverRecord takes a record if its data are whole.
func (x *Excess) recoverRecord(s *segment, r *record, data []byte) (whole bool, err error) {
	// A label that could not be written may be of a smaller volume than there was.
	if r.off > max(x.journal.label.size, x.size())-r.n || r.at >= 0 && (r.n > recordMost || r.position+r.length() > s.to) {
		return false, nil
	}
	if r.at >= 0 {
		n := r.length() - page
		if err := x.fast.read(r.at, data[:n]); err != nil {
			return false, err
		}
		if crc32.Checksum(data[:r.n], castagnoli) != r.sum {
			return false, nil
		}
	}
	x.map_.put(extent{r.off, r.n, r.at, r.position})
	return true, nil
}
