package iser

import (
	"errors"
	"sync"
)

// message is one that lies in a slot.
type message struct {
	slot   uint32
	length int
}

// loginState is what has arrived of a connection that is not attached yet. Any
// goroutine may use it.
type loginState struct {
	came chan struct{} // something has come, or the end
	mu   struct {
		sync.Mutex
		messages []message
		err      error
	}
}

func (l *loginState) init() { l.came = make(chan struct{}, 1) }

func (l *loginState) tell() {
	select {
	case l.came <- struct{}{}:
	default: // it has not looked since the last time
	}
}

// arrived keeps a message.
func (l *loginState) arrived(m message) {
	l.mu.Lock()
	l.mu.messages = append(l.mu.messages, m)
	l.mu.Unlock()
	l.tell()
}

// fail ends what waits.
func (l *loginState) fail(err error) {
	l.mu.Lock()
	l.mu.err = errors.Join(l.mu.err, err)
	l.mu.Unlock()
	l.tell()
}

// next takes the oldest message, if there is one.
func (l *loginState) next() (message, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mu.messages) == 0 {
		return message{}, false, l.mu.err
	}
	m := l.mu.messages[0]
	l.mu.messages = l.mu.messages[1:]
	return m, true, nil
}

// take takes all.
func (l *loginState) take() []message {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.mu.messages
	l.mu.messages = nil
	return m
}
