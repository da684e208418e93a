package latency

import (
	"slices"
	"sync/atomic"
)

// Key is an initiator's use of a volume.
type Key struct {
	Volume    string
	Initiator string // iSCSI name; empty: all those without a slot of their own
	User      string // who has proven to be a user under a name that is not the user's own
}

// Operation is the kind of a command, by its data.
type Operation int

// The operations.
const (
	Read  Operation = iota // the initiator gets data
	Write                  // it sends some
	Other                  // neither, such as SYNCHRONIZE CACHE
	Operations
)

// String is the value of the label.
func (o Operation) String() string { return [...]string{"read", "write", "other"}[o] }

// Slot is what one event thread has done for a Key. Its thread alone adds.
type Slot struct {
	Key
	By     [Operations]Recorder
	proven bool
	used   int64 // when it was used last, on the thread's clock

	replaced atomic.Bool // nothing is added any more
	taken    atomic.Bool // a Book has read the last of it
}

// Stands reports whether the slot is to be used further: if not, Table.Open has another.
// A nil slot is not.
func (s *Slot) Stands() bool { return s != nil && !s.replaced.Load() }

const (
	// idleTime is how long a slot was not used before another initiator may get it, in
	// ns: those that are busy at the same time do not take theirs from each other.
	idleTime = 10_000_000_000
	// maxRetired bounds the slots that were replaced and wait for the Book.
	maxRetired = 64
)

// Table has the slots of an event thread. All methods but Shown and Replaced are for
// this thread.
type Table struct {
	most     int
	slots    map[Key]*Slot
	retired  []*Slot
	shown    atomic.Pointer[[]*Slot]
	replaced atomic.Uint64
}

// NewTable returns a table of at most so many initiators' uses of volumes, and one slot
// for each volume beside.
func NewTable(most int) *Table { return &Table{most: most, slots: make(map[Key]*Slot)} }

// Shown is all slots.
func (t *Table) Shown() []*Slot {
	if p := t.shown.Load(); p != nil {
		return *p
	}
	return nil
}

// Replaced is how many initiators' uses of volumes have lost their slot to others.
func (t *Table) Replaced() uint64 { return t.replaced.Load() }

// Open returns the slot of a key. If there is none left, the key gets that of the least
// recently active, if this was idle for some time; one whose name is not proven gets none
// of those whose are. Else it gets the volume's slot for all others: to be asked again
// later.
func (t *Table) Open(k Key, proven bool, now int64) *Slot {
	if s := t.slots[k]; s != nil {
		s.used = now
		return s
	}
	others := Key{Volume: k.Volume}
	if k != others && len(t.slots) >= t.most && !t.replace(proven, now) {
		return t.Open(others, true, now)
	}
	s := &Slot{Key: k, proven: proven, used: now}
	t.slots[k] = s
	t.show()
	return s
}

// replace retires the slot that another may have, if there is one.
func (t *Table) replace(proven bool, now int64) bool {
	t.prune()
	if len(t.retired) >= maxRetired {
		return false
	}
	var oldest *Slot
	for _, s := range t.slots {
		if s.Initiator != "" && (proven || !s.proven) && (oldest == nil || s.used < oldest.used) {
			oldest = s
		}
	}
	if oldest == nil || now-oldest.used < idleTime {
		return false
	}
	t.retire(oldest)
	t.replaced.Add(1)
	return true
}

func (t *Table) retire(s *Slot) {
	s.replaced.Store(true)
	delete(t.slots, s.Key)
	t.retired = append(t.retired, s)
}

// Forget gives up the slots of a volume.
func (t *Table) Forget(volume string) {
	for k, s := range t.slots {
		if k.Volume == volume {
			t.retire(s)
		}
	}
	t.show()
}

// prune forgets the slots whose last counts the Book has.
func (t *Table) prune() {
	t.retired = slices.DeleteFunc(t.retired, func(s *Slot) bool { return s.taken.Load() })
}

func (t *Table) show() {
	t.prune()
	all := make([]*Slot, 0, len(t.slots)+len(t.retired))
	for _, s := range t.slots {
		all = append(all, s)
	}
	all = append(all, t.retired...)
	t.shown.Store(&all)
}
