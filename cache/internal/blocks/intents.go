package blocks

import (
	"sync"

	"lunar/internal/evloop"
)

// openIntents completes what the last process was killed in.
func (m *Memory) openIntents() error {
	if m.segment == nil {
		return nil
	}
	m.intents = intentsOf(m.segment)
	if err := m.remains().checkIntents(m.intents); err != nil {
		return err
	}
	m.intents[intentCount-1].shared = new(sync.Mutex)
	for i := range m.intents {
		m.intents[i].redo(m.Parts, m.slots)
	}
	return nil
}

// AnyIntent returns one for who is on no event thread.
func (m *Memory) AnyIntent() *Intent {
	if m.intents == nil {
		return nil
	}
	return &m.intents[intentCount-1]
}

// IntentOf returns the one of an event thread.
func (m *Memory) IntentOf(l *evloop.Loop) *Intent {
	if m.intents == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	in := m.mu.intents[l]
	if in == nil {
		in = &m.intents[min(len(m.mu.intents), intentCount-1)]
		m.mu.intents[l] = in
	}
	return in
}
