package target_test

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"lunar/internal/initiator"
)

var (
	ledgerSteps = flag.Int("relay.steps", 150, "commands of each initiator in TestRelayLedger")
	ledgerSeed  = flag.Uint64("relay.seed", 1, "its seed")
)

// ledger is an initiator with a path to each node that alone writes some blocks.
type ledger struct {
	t      *testing.T
	random *rand.Rand
	lba    uint64
	paths  []*initiator.Conn
	last   uint64
	may    []uint64 // what the blocks may have
	ended  [3]int   // writes that were done, of unknown outcome, aborted
}

const ledgerBlocks = 8

func stamped(v uint64) []byte {
	return bytes.Repeat(binary.BigEndian.AppendUint64(nil, v), ledgerBlocks*512/8)
}

// step does something, by some path.
func (l *ledger) step() error {
	c := l.paths[l.random.IntN(len(l.paths))]
	switch l.random.IntN(5) {
	case 0, 1:
		return l.read(c)
	case 2:
		return l.abort(c)
	}
	return l.write(c)
}

// outcome of a command: it was done, or may have been, or was not.
func outcome(res *initiator.Result) (done, perhaps bool, err error) {
	key, asc, ascq := res.SenseKey()
	switch {
	case res.Status == 0:
		return true, false, nil
	case key == 6:
		return false, false, nil
	case [3]byte{key, asc, ascq} == [3]byte{2, 4, 0x0a}:
		return false, true, nil
	}
	return false, false, fmt.Errorf("status %#x, sense %x %x %x", res.Status, key, asc, ascq)
}

func (l *ledger) write(c *initiator.Conn) error {
	l.last++
	res, err := c.Command(cdbWrite16(l.lba, ledgerBlocks), 0, stamped(l.last), 0)
	if err != nil {
		return err
	}
	done, perhaps, err := outcome(res)
	switch {
	case done:
		l.may = []uint64{l.last}
		l.ended[0]++
	case perhaps:
		l.may = append(l.may, l.last)
		l.ended[1]++
	}
	return err
}

// abort begins a write and aborts it: afterwards it does not happen any more.
func (l *ledger) abort(c *initiator.Conn) error {
	l.last++
	task, err := c.Start(initiator.Command{CDB: cdbWrite16(l.lba, ledgerBlocks), Out: stamped(l.last)})
	if err != nil {
		return err
	}
	code, err := c.TaskManagement(initiator.TaskRequest{Function: initiator.AbortTask, Referenced: task})
	if err != nil || code > 1 {
		return fmt.Errorf("ABORT TASK: response %d, %v", code, err)
	}
	l.may = append(l.may, l.last)
	l.ended[2]++
	c.Forget(task)
	return l.read(c)
}

func (l *ledger) read(c *initiator.Conn) error {
	res, err := c.Command(cdbRead16(l.lba, ledgerBlocks), 0, nil, ledgerBlocks*512)
	if err != nil {
		return err
	}
	if done, _, err := outcome(res); !done {
		return err
	}
	v := binary.BigEndian.Uint64(res.In)
	if !slices.Contains(l.may, v) || !bytes.Equal(res.In, stamped(v)) {
		return fmt.Errorf("blocks at %d: found %d, expected one of %d", l.lba, v, l.may)
	}
	l.may = []uint64{v}
	return nil
}

// TestRelayLedger: while links break, are cut and slow, and the disk moves in order and without,
// each initiator reads by each path what it has written last, and nothing that was aborted
// or replaced comes back.
func TestRelayLedger(t *testing.T) {
	r := newRelayRig(t, 3)
	random := rand.New(rand.NewPCG(*ledgerSeed, 0))
	var load sync.WaitGroup
	var all []*ledger
	for i := range 4 {
		l := &ledger{t: t, random: rand.New(rand.NewPCG(*ledgerSeed, uint64(i+1))), lba: uint64(i * ledgerBlocks), may: []uint64{0}}
		for _, n := range r.nodes {
			l.paths = append(l.paths, n.ready(byte(i+1)))
		}
		all = append(all, l)
		load.Go(func() {
			for step := range *ledgerSteps {
				if err := l.step(); err != nil {
					t.Errorf("initiator %d, step %d: %v", i, step, err)
					return
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		load.Wait()
		close(done)
	}()
	for faults := 0; ; faults++ {
		select {
		case <-done:
			for i, l := range all {
				t.Logf("initiator %d: %d writes done, %d of unknown outcome, %d aborted", i, l.ended[0], l.ended[1], l.ended[2])
			}
			t.Logf("%d faults", faults)
			return
		case <-time.After(time.Duration(random.IntN(20)) * time.Millisecond):
			r.fault(random)
		}
	}
}

func (r *relayRig) fault(random *rand.Rand) {
	order := random.Perm(len(r.nodes))
	a, b := r.nodes[order[0]].name, r.nodes[order[1]].name
	switch random.IntN(5) {
	case 0:
		r.move(order[0], random.Perm(len(r.nodes))...)
	case 1: // a takeover: the owner is fenced with what it does
		r.hold()
		r.settle(order[0], random.Perm(len(r.nodes))...)
	case 2:
		r.net.Break(a, b)
	case 3:
		r.net.Cut(a, b, true)
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond) // longer than the silence, or not
		r.net.Cut(a, b, false)
	case 4:
		most := random.IntN(2000)
		r.net.Delay(a, b, func() time.Duration { return time.Duration(rand.IntN(most+1)) * time.Microsecond })
	}
}
