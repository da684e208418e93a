package experiment

import (
	"bufio"
	"io"
	"strconv"
)

// Log writes decisions, one line each: the virtual time in ns, a word and
// numbers. A nil *Log writes nothing.
type Log struct {
	w    *bufio.Writer
	line []byte
}

// NewLog returns a log into w, nil if w is nil. Flush ends it.
func NewLog(w io.Writer) *Log {
	if w == nil {
		return nil
	}
	return &Log{w: bufio.NewWriterSize(w, 1<<16)}
}

// Line writes one decision. Write errors stay in the writer until Flush.
func (l *Log) Line(now int64, word string, numbers ...int64) {
	if l == nil {
		return
	}
	l.line = strconv.AppendInt(l.line[:0], now, 10)
	l.line = append(l.line, ' ')
	l.line = append(l.line, word...)
	for _, n := range numbers {
		l.line = append(l.line, ' ')
		l.line = strconv.AppendInt(l.line, n, 10)
	}
	l.line = append(l.line, '\n')
	_, _ = l.w.Write(l.line)
}

// Flush writes what is buffered and returns the first error of all writes.
func (l *Log) Flush() error {
	if l == nil {
		return nil
	}
	return l.w.Flush()
}
