package member

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"lunar/internal/places"
)

// messages passes what etcd logs on. Of warnings with the same words, which whoever reaches its ports
// can cause, some pass at once and then one in a while, with how many were held back.
type messages struct {
	to   io.Writer
	now  func() time.Time
	mu   sync.Mutex
	part []byte // of a line
	rate *places.Buckets[string]
	held map[string]int // by the words; bounded as rate is
}

// mostWords are warnings of different words that are told from each other.
const mostWords = 64

// eachWarning is how often one passes.
var eachWarning = places.Rate{Burst: 20, Every: 10 * time.Second}

func newMessages(to io.Writer, now func() time.Time) *messages {
	return &messages{to: to, now: now, rate: places.NewBuckets[string](mostWords), held: map[string]int{}}
}

// longest is how many bytes of a line are looked at as a whole.
const longest = 64 << 10

// Write implements io.Writer.
func (m *messages) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.part = append(m.part, b...)
	for {
		n := bytes.IndexByte(m.part, '\n') + 1
		switch {
		case n == 0 && len(m.part) < longest:
			return len(b), nil
		case n == 0:
			n = len(m.part)
		}
		line := m.part[:n]
		if held, passes := m.passes(line); passes {
			if held > 0 {
				fmt.Fprintf(m.to, "%d warnings of etcd like the following one were held back\n", held)
			}
			if _, err := m.to.Write(line); err != nil {
				return 0, err
			}
		}
		m.part = append(m.part[:0], m.part[n:]...)
	}
}

// passes judges a line. What is no warning always passes.
func (m *messages) passes(line []byte) (held int, passes bool) {
	var one struct{ Level, Msg string }
	if json.Unmarshal(line, &one) != nil || one.Level != "warn" {
		return 0, true
	}
	if !m.rate.Take(one.Msg, 1, eachWarning, m.now()) {
		if len(m.held) < mostWords || m.held[one.Msg] > 0 {
			m.held[one.Msg]++
		}
		return 0, false
	}
	held = m.held[one.Msg]
	delete(m.held, one.Msg)
	return held, true
}
