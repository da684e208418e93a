// Package loglimit keeps peers from making the log grow as fast as they like. Each
// peer has a share of lines. Beyond it, events are only counted, and the counts are
// logged from time to time.
package loglimit

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"lunar/internal/places"
)

// How many lines there may be. A host that is no stranger may have all of its sessions
// log in anew.
var (
	eachStranger = places.Rate{Burst: 50, Every: time.Second}
	allStrangers = places.Rate{Burst: 200, Every: 100 * time.Millisecond}
	eachKnown    = places.Rate{Burst: 2500, Every: 50 * time.Millisecond}
)

const (
	maxRemembered = 4096 // peers
	maxSummaries  = 10   // lines that tell of one peer each, at a time

	interval = 10 * time.Second // of TellUntil
)

// Journal is a log that peers write to. It may be used by any number of goroutines.
type Journal struct {
	log *slog.Logger
	now func() time.Time

	mu struct {
		sync.Mutex
		peers      *places.Buckets[peer]
		all        *places.Buckets[bool]
		suppressed *simplelru.LRU[string, int] // lines that were not logged, by peer
		lost       int                         // of peers that were forgotten
	}
}

type peer struct {
	name  string
	known bool
}

// New returns a journal that logs to log, by a clock.
func New(log *slog.Logger, now func() time.Time) *Journal {
	j := &Journal{log: log, now: now}
	j.mu.peers, j.mu.all = places.NewBuckets[peer](maxRemembered), places.NewBuckets[bool](1)
	j.mu.suppressed, _ = simplelru.NewLRU(maxRemembered, func(_ string, n int) { j.mu.lost += n }) // fails for sizes below one alone
	return j
}

// Logger returns the log for what a peer brings about: an address, by which it is
// counted. Errors and what is below the level of information always pass: the former
// are the server's own, the latter somebody has asked for.
func (j *Journal) Logger(name string, known bool) *slog.Logger {
	return slog.New(&limited{j.log.Handler(), j, peer{name, known}})
}

// passes counts a line of the peer.
func (j *Journal) passes(p peer) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	now, rate := j.now(), eachStranger
	if p.known {
		rate = eachKnown
	}
	if j.mu.peers.Take(p, 1, rate, now) && (p.known || j.mu.all.Take(true, 1, allStrangers, now)) {
		return true
	}
	n, _ := j.mu.suppressed.Get(p.name)
	j.mu.suppressed.Add(p.name, n+1)
	return false
}

// summary is how many lines of a peer were held back.
type summary struct {
	peer string
	n    int
}

// Tell logs how many lines were held back since it was called before.
func (j *Journal) Tell() {
	told, rest := j.take()
	for _, s := range told {
		j.log.Warn("lines of one address were held back", "address", s.peer, "more", s.n)
	}
	if rest > 0 {
		j.log.Warn("lines of further addresses were held back", "more", rest)
	}
}

// TellUntil does Tell from time to time, and once more when done is closed.
func (j *Journal) TellUntil(done <-chan struct{}) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			j.Tell()
		case <-done:
			j.Tell()
			return
		}
	}
}

// take returns those of whom most was held back, and the sum of the rest.
func (j *Journal) take() (told []summary, rest int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, name := range j.mu.suppressed.Keys() {
		n, _ := j.mu.suppressed.Peek(name)
		told = append(told, summary{name, n})
	}
	rest = j.mu.lost
	j.mu.suppressed.Purge()
	j.mu.lost = 0
	slices.SortFunc(told, func(a, b summary) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.peer, b.peer)) })
	for len(told) > maxSummaries {
		last := len(told) - 1
		rest += told[last].n
		told = told[:last]
	}
	return told, rest
}

// limited is the handler of one peer's lines.
type limited struct {
	slog.Handler
	journal *Journal
	peer    peer
}

// Handle implements slog.Handler.
func (l *limited) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo && r.Level < slog.LevelError && !l.journal.passes(l.peer) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l *limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limited{l.Handler.WithAttrs(attrs), l.journal, l.peer}
}

// WithGroup implements slog.Handler.
func (l *limited) WithGroup(name string) slog.Handler {
	return &limited{l.Handler.WithGroup(name), l.journal, l.peer}
}
