package wire

import "sync"

// Memory counts the bytes that another node's messages take here. Its connections share it.
type Memory struct {
	mu   sync.Mutex
	used int64
	most int64
	less chan struct{} // closed when there is less; nil: nobody waits
}

// NewMemory returns one of so many bytes.
func NewMemory(most int64) *Memory { return &Memory{most: most} }

// take waits until n bytes have place, and counts them; false: stop was closed. What is more
// than there can be has place alone.
func (m *Memory) take(n int64, stop <-chan struct{}) bool {
	for {
		m.mu.Lock()
		if m.used == 0 || m.used+n <= m.most {
			m.used += n
			m.mu.Unlock()
			return true
		}
		if m.less == nil {
			m.less = make(chan struct{})
		}
		less := m.less
		m.mu.Unlock()
		select {
		case <-less:
		case <-stop:
			return false
		}
	}
}

func (m *Memory) give(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= n
	if m.less != nil {
		close(m.less)
		m.less = nil
	}
}

// buffer is memory for a body.
type buffer struct {
	bytes []byte
	class int // of pools; -1: none
}

// pools have buffers of 4 KiB and a part for what is beside data, of 8 KiB and that part, and
// so on up to 16 MiB.
var pools [13]sync.Pool

func classSize(class int) int { return 4<<10<<class + 1<<10 }

// newBuffer returns one of n bytes, with anything in it.
func newBuffer(n int) *buffer {
	for class := range pools {
		if n > classSize(class) {
			continue
		}
		if b, _ := pools[class].Get().(*buffer); b != nil {
			b.bytes = b.bytes[:n]
			return b
		}
		return &buffer{make([]byte, n, classSize(class)), class}
	}
	return &buffer{make([]byte, n), -1}
}

// free gives it back. Nobody may use its bytes any more.
func (b *buffer) free() {
	if b != nil && b.class >= 0 {
		pools[b.class].Put(b)
	}
}

func sizeOf(parts [][]byte) (n int) {
	for _, p := range parts {
		n += len(p)
	}
	return n
}

// Joined is a copy of all parts.
func Joined(parts [][]byte) []byte {
	out := make([]byte, 0, sizeOf(parts))
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// copied is Joined in a buffer.
func copied(parts [][]byte) *buffer {
	b := newBuffer(sizeOf(parts))
	at := 0
	for _, p := range parts {
		at += copy(b.bytes[at:], p)
	}
	return b
}
