package eventually

import (
	"bytes"
	"strings"
	"sync"
)

// Output is a log, or what a program prints, that a test may read while it is written.
// The zero value is empty.
type Output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

// String returns what has been written.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// Since returns a function that returns what was written after the call of Since.
func (o *Output) Since() func() string {
	before := len(o.String())
	return func() string { return o.String()[before:] }
}

// Count returns how often s was written.
func (o *Output) Count(s string) int { return strings.Count(o.String(), s) }
