package blocks

import "lunar/internal/evloop"

// Fence makes the segment's lock last as long as what l has under way. After a
// kill the kernel goes on reading into blocks, and writing from them, when the
// process is gone already: the next one must not have the segment before that has
// ended, or it would find blocks changed that it has used for something else. It
// comes before anything that a lane of l does.
func (m *Memory) Fence(l *evloop.Loop) {
	if m.segment == nil || l.Ring() == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.fenced[l] {
		return
	}
	m.mu.fenced[l] = true
	hold := func() {
		if err := l.Ring().Hold(m.segment.FD()); err != nil {
			m.log.Warn("the cache segment cannot be kept locked while the kernel ends what a killed process had under way", "loop", l.Name(), "err", err)
		}
	}
	if l.OnThread() {
		hold()
		return
	}
	l.Post(evloop.Func(hold))
}
