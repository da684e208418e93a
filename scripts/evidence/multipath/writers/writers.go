// Package writers writes to a disk and to files in a guest, judges what it reads by a ledger,
// and answers the host's questions by net/rpc.
package writers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"lunar/scripts/evidence/generations"
)

const (
	each  = 128 // blocks of a writer
	pause = 5 * time.Millisecond
	// awhile passes before a reader on one path tries again, for most paths do not serve.
	awhile = 500 * time.Millisecond
	// maxWrong bounds what is told of.
	maxWrong = 50
)

// Counts are of the whole run.
type Counts struct{ Writes, Reads, Failed, Lost, Stale int64 }

// Part is what the writers of one place tell: counts, and of the time since Begin the longest
// time without an end of any command, and the longest command.
type Part struct {
	Counts
	Gap, Slowest time.Duration
}

// Figures are those of all writers. Paths has the reads of those who stay on one path, where
// Failed counts paths that did not serve, which is no fault.
type Figures struct {
	Disk, Files, Paths Part
	Wrong              []string // what must not happen
}

// part is a place with its writers.
type part struct {
	all     *Writers
	at      place
	blocks  []generations.Block
	gap     generations.Gap
	writers []*writer
	began   atomic.Int64 // in ns since all.zero

	mu      sync.Mutex
	counts  Counts
	slowest time.Duration
}

// writer has one command under way.
type writer struct {
	*part
	over   place // which a reader that stays has for itself
	number int
	data   []byte
	random *rand.Rand
	since  atomic.Int64 // in ns since all.zero, of the command under way; 0: none
}

// Writers are all of them. Its exported methods with two arguments are what the host calls.
type Writers struct {
	zero               time.Time
	disk, files, paths *part
	ended              atomic.Bool
	group              sync.WaitGroup
	over               chan struct{}

	mu    sync.Mutex
	wrong []string
}

// New has so many writers of a disk, and of files in a directory, and a reader of the disk
// over each of its paths.
func New(device string, diskWriters int, dir string, fileWriters int, paths []string) (*Writers, error) {
	w := &Writers{zero: time.Now(), over: make(chan struct{})}
	d, err := openDisk(device, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	w.disk, w.files = w.part(d, diskWriters), w.part(directory(dir), fileWriters)
	w.paths = &part{all: w, blocks: w.disk.blocks}
	for _, p := range []*part{w.disk, w.files} {
		for range cap(p.writers) {
			if err := p.add(p.at); err != nil {
				return nil, err
			}
		}
	}
	for _, path := range paths {
		d, err := openDisk(path, os.O_RDONLY)
		if err != nil {
			return nil, err
		}
		if err := w.paths.add(d); err != nil {
			return nil, err
		}
	}
	w.start()
	return w, nil
}

func (w *Writers) start() {
	for _, p := range []*part{w.disk, w.files} {
		for _, one := range p.writers {
			w.group.Go(one.work)
		}
	}
	for _, one := range w.paths.writers {
		w.group.Go(one.stay)
	}
}

func (w *Writers) part(at place, writers int) *part {
	return &part{all: w, at: at, blocks: make([]generations.Block, writers*each), writers: make([]*writer, 0, writers)}
}

func (p *part) add(over place) error {
	data, err := buffer()
	number := len(p.writers)
	p.writers = append(p.writers, &writer{part: p, over: over, number: number, data: data, random: rand.New(rand.NewPCG(1, uint64(number)))})
	return err
}

// work writes and reads the writer's own blocks.
func (w *writer) work() {
	for !w.all.ended.Load() {
		time.Sleep(pause)
		n := w.random.IntN(each)*len(w.writers) + w.number
		b := &w.blocks[n]
		if w.random.IntN(3) > 0 && b.Acked.Load() > 0 {
			if w.timed(func() error { return w.over.read(n, w.data) }, func(c *Counts) { c.Reads++ }) {
				w.judge(generations.Judge(w.data, n, b.Acked.Load(), b.Sent.Load()))
			}
			continue
		}
		g := b.Sent.Add(1)
		generations.Fill(w.data, n, g)
		if w.timed(func() error { return w.over.write(n, w.data) }, func(c *Counts) { c.Writes++ }) {
			b.Acked.Store(g)
		}
	}
}

// stay reads what others write, over one path, and sees whether what is older comes back.
func (w *writer) stay() {
	for !w.all.ended.Load() {
		n := w.random.IntN(len(w.blocks))
		least := w.blocks[n].Acked.Load()
		if err := w.over.read(n, w.data); err != nil {
			w.count(func(c *Counts) { c.Failed++ })
			time.Sleep(awhile)
			continue
		}
		w.gap.Went()
		w.count(func(c *Counts) { c.Reads++ })
		w.judge(generations.Judge(w.data, n, least, w.blocks[n].Sent.Load()))
		time.Sleep(10 * pause)
	}
}

// timed reports whether a command ended well.
func (w *writer) timed(command func() error, count func(*Counts)) bool {
	began := w.all.now()
	w.since.Store(int64(began))
	err := command()
	w.since.Store(0)
	if err != nil {
		w.count(func(c *Counts) { c.Failed++ })
		w.all.note(err)
		return false
	}
	w.gap.Went()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slowest = max(w.slowest, w.all.now()-began)
	count(&w.counts)
	return true
}

func (p *part) count(change func(*Counts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.counts)
}

func (p *part) judge(err error) {
	switch {
	case err == nil:
		return
	case errors.Is(err, generations.ErrStale):
		p.count(func(c *Counts) { c.Stale++ })
	default:
		p.count(func(c *Counts) { c.Lost++ })
	}
	p.all.note(err)
}

func (w *Writers) now() time.Duration { return time.Since(w.zero) }

func (w *Writers) note(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.wrong) < maxWrong {
		w.wrong = append(w.wrong, fmt.Sprintf("after %v: %v", w.now().Round(time.Millisecond), err))
	}
}

func (p *part) begin() {
	p.gap.Begin()
	p.began.Store(int64(p.all.now()))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slowest = 0
}

// figures has commands that are under way as if they ended now.
func (p *part) figures() Part {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := Part{Counts: p.counts, Gap: p.gap.Longest(), Slowest: p.slowest}
	for _, w := range p.writers {
		if since := w.since.Load(); since != 0 {
			f.Slowest = max(f.Slowest, p.all.now()-time.Duration(since))
		}
	}
	return f
}
