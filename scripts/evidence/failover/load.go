package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"lunar/scripts/evidence/generations"
	"lunar/scripts/evidence/site"
)

const (
	volumeBytes = 64 << 20
	blockBytes  = generations.BlockBytes
)

// load is what users do, and what they know of each block.
type load struct {
	site   *site.Site
	users  []*user
	every  time.Duration // of a user between two commands
	blocks []generations.Block
	gap    generations.Gap
	ended  atomic.Bool
	avoid  atomic.Int32 // the number of a path that users do not take, from 1 on; 0: none
	rest   atomic.Bool  // nobody sends commands
	group  sync.WaitGroup

	mu    sync.Mutex
	err   error
	total counts
}

// counts are of the whole run.
type counts struct{ writes, reads, sticky, failovers, lost, stale, failed int64 }

// since is what has come to what was counted before.
func (c counts) since(b counts) counts {
	return counts{c.writes - b.writes, c.reads - b.reads, c.sticky - b.sticky, c.failovers - b.failovers, c.lost - b.lost, c.stale - b.stale, c.failed - b.failed}
}

// user has one command under way, on one of three paths.
type user struct {
	*load
	number int
	paths  []*path
	at     int // the path in use
	random *rand.Rand
}

func newLoad(s *site.Site, users int, every time.Duration) *load {
	l := &load{site: s, every: every, blocks: make([]generations.Block, volumeBytes/blockBytes)}
	for i := range users {
		l.users = append(l.users, l.user(i))
	}
	return l
}

func (l *load) user(number int) *user {
	u := &user{load: l, number: number, random: rand.New(rand.NewPCG(1, uint64(number)))}
	for i, n := range l.site.Nodes {
		u.paths = append(u.paths, &path{portal: n.Portal, isid: uint32(number*len(l.site.Nodes) + i + 1)})
	}
	return u
}

func (l *load) start() {
	l.gap.Begin()
	for _, u := range l.users {
		l.group.Go(u.work)
	}
	for i := range l.site.Nodes {
		sticky := l.user(len(l.users) + i)
		sticky.at = i
		l.group.Go(sticky.stay)
	}
}

func (l *load) end() {
	l.ended.Store(true)
	l.group.Wait()
}

func (l *load) count() counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

func (l *load) note(change func(*counts)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.total)
}

// failed is what must not have happened.
func (l *load) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// went notes that a command has ended well.
func (l *load) went(write bool) {
	l.gap.Went()
	l.mu.Lock()
	defer l.mu.Unlock()
	if write {
		l.total.writes++
	} else {
		l.total.reads++
	}
}

// wrong notes what must not happen.
func (l *load) wrong(what *int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*what++
	l.err = errors.Join(l.err, err)
	fmt.Fprintln(os.Stderr, err)
}

// work writes and reads the user's own blocks.
func (u *user) work() {
	defer u.leave()
	mine := len(u.blocks) / len(u.users)
	for !u.ended.Load() {
		u.pause(u.every)
		n := u.random.IntN(min(mine, 256))*len(u.users) + u.number
		b := &u.blocks[n]
		if u.random.IntN(3) > 0 {
			if data := u.perform(false, n, nil); data != nil {
				u.judge(n, data, b.Acked.Load(), b.Acked.Load())
			}
			continue
		}
		g := b.Sent.Add(1)
		data := make([]byte, blockBytes)
		generations.Fill(data, n, g)
		if u.perform(true, n, data) != nil {
			b.Acked.Store(g)
		}
	}
}

// pause is between two commands.
func (u *user) pause(d time.Duration) {
	time.Sleep(d)
	for u.rest.Load() && !u.ended.Load() {
		time.Sleep(time.Millisecond)
	}
}

func (u *user) leave() {
	for _, p := range u.paths {
		p.drop()
	}
}

// perform does a command, over whatever path; nil: the load ends.
func (u *user) perform(write bool, n int, data []byte) []byte {
	for !u.ended.Load() {
		if u.at == int(u.avoid.Load())-1 {
			u.at = (u.at + 1) % len(u.paths)
		}
		r, err := u.paths[u.at].do(command(write, n, data))
		switch {
		case err == nil:
			u.went(write)
			if write {
				return data
			}
			return r.In
		case errors.Is(err, errAgain):
		case errors.Is(err, errElsewhere):
			u.note(func(c *counts) { c.failovers++ })
			if u.at = (u.at + 1) % len(u.paths); u.at == u.number%len(u.paths) {
				time.Sleep(5 * time.Millisecond) // all were tried
			}
		default:
			u.wrong(&u.total.failed, fmt.Errorf("user %d, block %d: %w", u.number, n, err))
		}
	}
	return nil
}

// judge compares a block with what it may hold.
func (u *user) judge(n int, data []byte, least, most uint32) {
	err := generations.Judge(data, n, least, most)
	if err == nil {
		return
	}
	what := &u.total.lost
	if errors.Is(err, generations.ErrStale) {
		what = &u.total.stale
	}
	u.wrong(what, fmt.Errorf("over %s: %w", u.paths[u.at].portal, err))
}

// stay reads any block over one path, and sees whether what is older comes back.
func (u *user) stay() {
	defer u.leave()
	p := u.paths[u.at]
	for !u.ended.Load() {
		n := u.random.IntN(256 * len(u.users))
		b := &u.blocks[n]
		least := b.Acked.Load()
		r, err := p.do(command(false, n, nil))
		if err == nil {
			u.judge(n, r.In, least, b.Sent.Load())
			u.note(func(c *counts) { c.sticky++ })
		} else if !errors.Is(err, errAgain) && !errors.Is(err, errElsewhere) {
			u.wrong(&u.total.failed, fmt.Errorf("reader on %s: %w", p.portal, err))
		}
		u.pause(max(u.every, time.Millisecond))
	}
}
