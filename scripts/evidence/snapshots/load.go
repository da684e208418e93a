package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"lunar/internal/initiator"
)

const target = "iqn.2026-11.example:disks"

// load writes blocks at random, by several connections of which each has blocks of its own,
// and reads some of them back.
type load struct {
	*ledger
	lun     uint64
	writers int
	stop    context.CancelFunc
	ended   sync.WaitGroup
	wrote   atomic.Int64
	may     bool         // fail for want of space
	refused atomic.Int64 // of writes, for that

	mu   sync.Mutex
	took []time.Duration // of commands, since figures were asked for
	errs []error
}

// begin has the writers begin at a portal. Whatever ends their connections ends them.
func (l *load) begin(ctx context.Context, portal string) error {
	ctx, l.stop = context.WithCancel(ctx)
	for i := range l.writers {
		c, err := initiator.Dial(ctx, portal, initiator.Options{Target: target, Initiator: fmt.Sprintf("iqn.2026-11.example:writer-%d-%d", l.lun, i)})
		if err != nil {
			l.end()
			return err
		}
		l.ended.Go(func() {
			defer c.Close()
			l.write(ctx, c, i)
		})
	}
	return nil
}

// end ends the writers; their connections may be broken.
func (l *load) end() {
	l.stop()
	l.ended.Wait()
}

// write writes until ctx ends or the connection breaks.
func (l *load) write(ctx context.Context, c *initiator.Conn, writer int) {
	random := rand.New(rand.NewPCG(rand.Uint64(), uint64(writer)))
	own := len(l.blocks) / l.writers
	for ctx.Err() == nil {
		block := writer*own + random.IntN(own)
		number := l.begins(block)
		switch _, err := l.command(c, 0x8a, block, content(block, number), 0); {
		case errors.Is(err, errNoSpace): // it is there or not
			l.refused.Add(1)
			continue
		case err != nil:
			return
		}
		l.acknowledged(block)
		l.wrote.Add(1)
		if random.IntN(16) > 0 {
			continue
		}
		if read, err := l.command(c, 0x88, block, nil, blockSize); err != nil {
			return
		} else if !slices.Equal(read, content(block, number)) {
			l.note(fmt.Errorf("block %d: found % x, expected write %d", block, read[:16], number))
		}
	}
}

// errNoSpace is SPACE ALLOCATION FAILED WRITE PROTECT.
var errNoSpace = errors.New("no space")

// command runs a command for a block until it is done, or the connection breaks.
func (l *load) command(c *initiator.Conn, opcode byte, block int, out []byte, in int) ([]byte, error) {
	cdb := make([]byte, 16)
	cdb[0], cdb[13] = opcode, blockSize/512
	binary.BigEndian.PutUint64(cdb[2:], uint64(block)*(blockSize/512))
	for {
		began := time.Now()
		r, err := c.Command(cdb, l.lun, out, in)
		if err != nil {
			return nil, err
		}
		if r.Status == initiator.StatusGood {
			l.mu.Lock()
			l.took = append(l.took, time.Since(began))
			l.mu.Unlock()
			return append([]byte{}, r.In...), nil
		}
		key, asc, ascq := r.SenseKey()
		switch space := l.may && key == 7 && asc == 0x27 && ascq == 7; {
		case key == 6, space && r.Sense[0]&0x7f == 0x71: // a unit attention of a new session, or of a rollback; or about an earlier write
		case space:
			return nil, errNoSpace
		default:
			err := fmt.Errorf("block %d: found status %#x, sense %x/%02x/%02x", block, r.Status, key, asc, ascq)
			l.note(err)
			return nil, err
		}
	}
}

func (l *load) note(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

// figures are how long commands took since they were asked for last: the median, the 99th
// percentile and the longest.
func (l *load) figures() (median, p99, longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	took := l.took
	l.took = nil
	if len(took) == 0 {
		return 0, 0, 0
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
}
