package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// load is what users do, and what they know of each block.
type load struct {
	site   *site
	users  []*user
	blocks []block
	ended  atomic.Bool
	avoid  atomic.Int32 // the number of a path that users do not take, from 1 on; 0: none
	rest   atomic.Bool  // nobody sends commands
	group  sync.WaitGroup

	mu    sync.Mutex
	last  time.Time // when a command of a user ended well
	gap   time.Duration
	err   error
	total counts
}

// counts are of the whole run.
type counts struct{ writes, reads, sticky, failovers, lost, stale, failed int64 }

// since is what has come to what was counted before.
func (c counts) since(b counts) counts {
	return counts{c.writes - b.writes, c.reads - b.reads, c.sticky - b.sticky, c.failovers - b.failovers, c.lost - b.lost, c.stale - b.stale, c.failed - b.failed}
}

// block has been written by one user alone.
type block struct{ sent, acked atomic.Uint32 }

// user has one command under way, on one of three paths.
type user struct {
	*load
	number int
	paths  []*path
	at     int // the path in use
	random *rand.Rand
}

func newLoad(s *site, users int) (*load, error) {
	l := &load{site: s, blocks: make([]block, volumeBytes/blockBytes)}
	for i := range users {
		l.users = append(l.users, l.user(i))
	}
	return l, nil
}

func (l *load) user(number int) *user {
	u := &user{load: l, number: number, random: rand.New(rand.NewPCG(1, uint64(number)))}
	for i, n := range l.site.nodes {
		u.paths = append(u.paths, &path{portal: n.portal, isid: uint32(number*len(l.site.nodes) + i + 1)})
	}
	return u
}

func (l *load) start() {
	l.last = time.Now()
	for _, u := range l.users {
		l.group.Go(u.work)
	}
	for i := range l.site.nodes {
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

// beginRound begins to look for the longest gap.
func (l *load) beginRound() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gap, l.last = 0, time.Now()
}

// endRound returns the longest gap, the one that is under way too.
func (l *load) endRound() (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(l.gap, time.Since(l.last)), l.err
}

// busy waits.
func (l *load) busy(d time.Duration) { time.Sleep(d) }

// went notes that a command has ended well.
func (l *load) went(write bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.gap, l.last = max(l.gap, now.Sub(l.last)), now
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
		u.pause(u.site.Pause)
		n := u.random.IntN(min(mine, 256))*len(u.users) + u.number
		b := &u.blocks[n]
		if u.random.IntN(3) > 0 {
			if data := u.perform(false, n, nil); data != nil {
				u.judge(n, data, b.acked.Load(), b.acked.Load())
			}
			continue
		}
		g := b.sent.Add(1)
		if u.perform(true, n, fill(n, g)) != nil {
			b.acked.Store(g)
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

func fill(n int, g uint32) []byte {
	data := make([]byte, blockBytes)
	for i := 0; i < blockBytes; i += 8 {
		binary.LittleEndian.PutUint64(data[i:], uint64(n)<<32|uint64(g))
	}
	return data
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
	if len(data) != blockBytes {
		u.wrong(&u.total.failed, fmt.Errorf("block %d: %d bytes were read", n, len(data)))
		return
	}
	found := binary.LittleEndian.Uint64(data)
	for i := 0; i < blockBytes; i += 8 {
		if binary.LittleEndian.Uint64(data[i:]) != found {
			u.wrong(&u.total.lost, fmt.Errorf("block %d is torn", n))
			return
		}
	}
	g := uint32(found)
	if g < least || g > most || found != 0 && found>>32 != uint64(n) {
		what := &u.total.lost
		if g < least {
			what = &u.total.stale
		}
		u.wrong(what, fmt.Errorf("block %d: found write %d of block %d over %s, expected %d to %d", n, g, found>>32, u.paths[u.at].portal, least, most))
	}
}

// stay reads any block over one path, and sees whether what is older comes back.
func (u *user) stay() {
	defer u.leave()
	p := u.paths[u.at]
	for !u.ended.Load() {
		n := u.random.IntN(256 * len(u.users))
		b := &u.blocks[n]
		least := b.acked.Load()
		r, err := p.do(command(false, n, nil))
		if err == nil {
			u.judge(n, r.In, least, b.sent.Load())
			u.note(func(c *counts) { c.sticky++ })
		} else if !errors.Is(err, errAgain) && !errors.Is(err, errElsewhere) {
			u.wrong(&u.total.failed, fmt.Errorf("reader on %s: %w", p.portal, err))
		}
		u.pause(max(u.site.Pause, time.Millisecond))
	}
}

func worst(all []time.Duration) time.Duration { return slices.Max(all) }

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}
