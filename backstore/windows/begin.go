package windows

import (
	"crypto/rand"
	"errors"
	"fmt"

	"lunar/backstore"
)

// ErrNotIts says that a map or a fast device is not the one that the volume had.
var ErrNotIts = errors.New("not the one that the volume had")

// begin judges what the map says and what was found, and notes what follows.
func (m *Mirror) begin(opened [2]error) error {
	n, err := m.map_.chart.load()
	fresh := errors.Is(err, errNoMap)
	if err != nil && !fresh {
		return err
	}
	if want := m.config.Identity; want != [16]byte{} && n.identity != want {
		return fmt.Errorf("%w: %s is empty, or of another volume", ErrNotIts, m.config.Map.Info().Describe)
	}
	present := [2]bool{opened[0] == nil, opened[1] == nil}
	for i, err := range opened {
		if fresh && err != nil {
			return fmt.Errorf("member %s: %w; a new mirror begins with both: bring it back, or serve the other one by itself until then (type: file or block)", m.config.Members[i].Name, err)
		}
	}
	m.describe(present)
	old := n.size
	had, err := m.fits(&n, fresh, present)
	if err != nil {
		return err
	}
	_, last := m.regionsOf(0, m.size())
	var media [2]medium
	for i := range media {
		if present[i] {
			media[i] = mediumOf(m.slots[i].Content())
		}
	}
	if !fresh {
		if err := n.judge(present, media, last+1); err != nil {
			names := m.config.Members
			return fmt.Errorf("%w; members %s and %s: bring both back",
				err, names[0].Name, names[1].Name)
		}
	}
	if err := m.lengthen(had, present); err != nil {
		return err
	}
	if fresh {
		n = note{size: m.size(), media: media, leader: m.first()}
		n.differ.fill(last + 1)
		_, _ = rand.Read(n.identity[:]) // never fails
	}
	if !fresh { // members are the volume's, or become copies
		if err := m.clearNew(old, had, present); err != nil {
			return err
		}
	}
	for i := range media {
		if present[i] {
			n.media[i] = media[i]
		}
	}
	m.map_.note, m.leader = n, n.leader
	switch o := m.other(); {
	case n.lost[o]:
		m.mode = alone
		m.log.Error("a mirror's member is missing: it goes on with the other", "member", m.config.Members[o].Name, "err", opened[o])
		m.counts.lost.Add(1)
	case !n.differ.empty():
		m.mode, m.stale.regions = behind, n.differ
		m.log.Warn("a mirror's member is resynchronised", "member", m.config.Members[o].Name, "regions", n.differ.count())
	}
	return m.map_.chart.save(&m.map_.note)
}

// first is the member that the other one becomes like when there is no map yet: the first
// one, but for one that has nothing yet beside one that has something.
func (m *Mirror) first() int {
	var empty [2]bool
	for i, d := range m.disks {
		n, mapped := extentAt(d, 0, m.size())
		empty[i] = !mapped && n >= m.size()
	}
	if empty[0] && !empty[1] {
		return 1
	}
	return 0
}

// fits finds the size of the volume, and judges how large members are. It returns that, and
// changes none of them: what is refused stays as it is.
func (m *Mirror) fits(n *note, fresh bool, present [2]bool) (had [2]int64, err error) {
	size := m.config.Size
	for i, s := range m.slots {
		one := s.Info().Size
		if n.lost[i] {
			one = max(one, n.size) // it is to grow, but is none to grow for
		}
		if m.config.Size == 0 && present[i] && (size == 0 || one < size) {
			size = one
		}
	}
	if !fresh && m.config.Size == 0 && present != [2]bool{true, true} {
		size = n.size // who is there may be the larger one
	}
	switch {
	case size <= 0:
		return had, errors.New("found no size, expected one")
	case !fresh && size < n.size:
		return had, fmt.Errorf("found %d bytes, and the volume has %d by its map: a mirror becomes smaller only while it is served; start it as large as it was, and give it the smaller size then", size, n.size)
	}
	for i, s := range m.slots {
		had[i] = s.Info().Size
		if !fresh && present[i] && had[i] < n.size && !n.lost[i] { // a part of it has gone
			return had, fmt.Errorf("member %s has %d bytes, expected %d", m.config.Members[i].Name, had[i], size)
		}
	}
	for i := range m.slots {
		if fresh || !present[i] || had[i] >= n.size {
			continue
		}
		n.differ.span(had[i], n.size) // whatever it had there
		if err := m.map_.chart.save(n); err != nil {
			return had, err
		}
	}
	m.resized(size)
	m.shift = regionShift(size)
	if !fresh && size > n.size {
		m.log.Info("a mirror has grown", "from", n.size, "to", size)
		n.resize(size)
	}
	return had, nil
}

// lengthen has members grow to the volume's size: those that were away while the volume was
// resized, and all if it has become larger while nobody served it.
func (m *Mirror) lengthen(had [2]int64, present [2]bool) error {
	for i, s := range m.slots {
		if !present[i] || had[i] >= m.size() {
			continue
		}
		if err := backstore.Resize(s, m.size()); err != nil {
			return fmt.Errorf("member %s has %d bytes, expected %d: %w", m.config.Members[i].Name, had[i], m.size(), err)
		}
	}
	return nil
}

// clearNew zeroes what members had already behind the end of a volume that has grown while
// nobody served it. Where no size is configured they have grown themselves, and what is new is
// theirs, as in a volume on one file or device.
func (m *Mirror) clearNew(old int64, had [2]int64, present [2]bool) error {
	if m.config.Size == 0 {
		return nil
	}
	for i, d := range m.disks {
		if !present[i] {
			continue
		}
		if err := d.clear(old, min(had[i], m.size()), m.quit); err != nil {
			return fmt.Errorf("member %s: zeroes behind byte %d: %w", m.config.Members[i].Name, old, err)
		}
	}
	return nil
}

// resize makes the note one of another size. What is new the members may differ in.
func (n *note) resize(size int64) {
	n.differ.resize(n.size, size)
	n.size = size
}

// judge decides who leads, who is lost and what the other member lacks, by what the map
// says and what was found of the members. It changes the note, or says why nothing may be
// served: data that were acknowledged would be missing.
func (n *note) judge(present [2]bool, now [2]medium, all int64) error {
	var another [2]bool // file or device than the member's
	for i := range another {
		another[i] = present[i] && (n.media[i] != medium{} || n.lost[i]) && (now[i] != n.media[i] || now[i] == medium{})
	}
	l, o := n.leader, 1-n.leader
	whole := n.differ.empty() && !n.lost[o] // the other member is
	switch {
	case present[l] && !another[l]:
	case present[l] && another[o] && whole:
		// Both were copied while nothing was under way.
	case present[o] && !another[o] && whole:
		n.leader, l, o = o, o, l
		another[o] = true
	case present[l]:
		return fmt.Errorf("member %d, which has the newest data, is another file or device than before, and member %d lacks %d regions", l+1, o+1, n.differ.count())
	default:
		return fmt.Errorf("member %d, which has the newest data, is missing, and member %d lacks %d regions", l+1, o+1, n.differ.count())
	}
	n.lost = [2]bool{}
	if n.lost[o] = !present[o]; another[o] && present[o] {
		n.differ.fill(all)
	}
	return nil
}
