package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Trail is where changes are noted: the log, and a file if there is to be one. It may be
// used by any number of goroutines, none of which waits for the file.
type Trail struct {
	log    *slog.Logger
	failed atomic.Uint64

	mu   sync.Mutex
	file *auditFile // nil: none
}

// NewTrail returns a trail that notes changes in log alone.
func NewTrail(log *slog.Logger) *Trail { return &Trail{log: log} }

// Note notes a change.
func (t *Trail) Note(c Change) {
	c.Log(t.log)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file != nil {
		t.file.add(c)
	}
}

// Failures is how many changes are missing in the file.
func (t *Trail) Failures() uint64 { return t.failed.Load() }

// SetFile notes changes in the file at path, too, or with an empty path in none. The
// error says why it cannot be written now. It is tried again at each change.
func (t *Trail) SetFile(path string) error {
	t.mu.Lock()
	was := t.file
	t.file = nil
	var err error
	if path != "" {
		t.file = &auditFile{path: path, trail: t, lines: make(chan []byte, maxLines), ended: make(chan struct{})}
		err = t.file.open()
		go t.file.run()
	}
	t.mu.Unlock()
	was.close()
	return err
}

const (
	// maxLines bounds the changes that wait for a file that is slow.
	maxLines = 1024
	// tellInterval is how often a file that cannot be written is told of.
	tellInterval = time.Minute
	// endTime is how long the end waits for a file that is slow.
	endTime = 2 * time.Second
)

// auditFile is a file to which lines of JSON are appended. Whoever takes it away, to
// rotate it, gets another one in its place.
type auditFile struct {
	path  string
	trail *Trail
	lines chan []byte
	ended chan struct{}

	file *os.File     // the goroutine's; nil: none
	told atomic.Int64 // when a line was lost and told of, Unix time in seconds
}

// auditLine is a line of the file.
type auditLine struct {
	Time    time.Time `json:"time"`
	By      Caller    `json:"by"`
	What    string    `json:"what"`
	Outcome string    `json:"outcome"`
	Reason  string    `json:"reason,omitempty"`
	Result  string    `json:"result,omitempty"`
}

func (c Change) line() auditLine {
	l := auditLine{Time: time.Now(), By: c.By, What: c.What, Outcome: "done", Result: oneLine(c.Result)}
	if c.Err != nil {
		l.Outcome, l.Reason = "refused", oneLine(c.Err.Error())
	}
	return l
}

func (a *auditFile) add(c Change) {
	line, err := json.Marshal(c.line())
	if err == nil {
		select {
		case a.lines <- append(line, '\n'):
			return
		default:
			err = fmt.Errorf("%d changes wait for the file already", maxLines)
		}
	}
	a.lost(err)
}

// lost counts a change that is not in the file.
func (a *auditFile) lost(err error) {
	missing := a.trail.failed.Add(1)
	now, told := time.Now().Unix(), a.told.Load()
	if now-told >= int64(tellInterval/time.Second) && a.told.CompareAndSwap(told, now) {
		a.trail.log.Error("a change is not in the audit file", "file", a.path, "missing", missing, "err", err)
	}
}

// run writes the lines.
func (a *auditFile) run() {
	defer close(a.ended)
	for line := range a.lines {
		if err := a.write(line); err != nil {
			a.lost(err)
		}
	}
	if a.file != nil {
		a.file.Close()
	}
}

func (a *auditFile) write(line []byte) error {
	if err := a.open(); err != nil {
		return err
	}
	n, err := a.file.Write(line)
	if err != nil && n > 0 { // half a line is none
		if end, failed := a.file.Seek(0, 2); failed == nil {
			err = errors.Join(err, a.file.Truncate(end-int64(n)))
		}
	}
	return err
}

// open opens the file that is at the path now, unless it is open.
func (a *auditFile) open() error {
	if a.file != nil {
		is, err := os.Stat(a.path)
		was, failed := a.file.Stat()
		if err == nil && failed == nil && os.SameFile(is, was) {
			return nil
		}
		a.file.Close()
		a.file = nil
	}
	f, err := os.OpenFile(a.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: found %v, expected a file", a.path, info.Mode())
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	a.file = f
	return nil
}

// close ends the file once its lines are written. A nil file is none.
func (a *auditFile) close() {
	if a == nil {
		return
	}
	close(a.lines)
	select {
	case <-a.ended:
	case <-time.After(endTime):
		a.trail.log.Error("the audit file takes no lines: the last changes are missing in it", "file", a.path, "missing", len(a.lines))
	}
}
