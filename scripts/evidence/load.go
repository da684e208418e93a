package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"lunar/internal/initiator"
)

// unit is a logical unit under load, with the ledger of what it must hold.
type unit struct {
	lun     uint64
	name    string
	lasting bool // what is acknowledged survives the fault that is to come
	driven  bool // by a driver of gotgt, which has no room to give back and nothing atomic
	plain   bool // nothing is atomic
	*ledger
}

// request is a command under way.
type request struct {
	*unit
	deed
	lba, n  int
	version version
	then    []version // of a flush
	task    *initiator.Task
}

// deed is a kind of command.
type deed struct {
	kind    string
	share   int // of all commands
	start   func(l *load, r *request) initiator.Command
	changes bool
	zeroes  bool
	atomic  bool
	lasting bool // it is on stable media when it is acknowledged
	aligned bool // to 4 KiB
}

var deeds = []deed{
	{kind: "write", share: 20, changes: true, start: writing(0x8a, 0)},
	{kind: "write 4 KiB", share: 20, changes: true, aligned: true, start: writing(0x8a, 0)},
	{kind: "write FUA", share: 3, changes: true, lasting: true, start: writing(0x8a, 0x08)},
	{kind: "write atomic", share: 6, changes: true, atomic: true, lasting: true, aligned: true, start: writing(0x9c, 0)},
	{kind: "unmap", share: 2, changes: true, zeroes: true, start: unmapping},
	{kind: "read", share: 10, start: reading},
	{kind: "flush", share: 2, start: flushing},
}

// load keeps a session busy. It belongs to one goroutine.
type load struct {
	conn   *initiator.Conn
	units  []*unit
	random *rand.Rand
	depth  int
	ended  int // commands
	out    []*request

	without string // a kind of commands that are not sent
}

// dial logs in and works off the unit attentions.
func dial(portal, target string, units []*unit, random *rand.Rand) (*load, error) {
	conn, err := initiator.Dial(context.Background(), portal, initiator.Options{Target: target, Initiator: initiatorName})
	if err != nil {
		return nil, err
	}
	conn.Timeout = 20 * time.Second
	l := &load{conn: conn, units: units, random: random, depth: 1 + random.IntN(8)}
	for _, u := range units {
		if err := conn.Ready(u.lun); err != nil {
			conn.Close()
			return nil, fmt.Errorf("%s: %w", u.name, err)
		}
	}
	return l, nil
}

// initiatorName is that of all loads.
const initiatorName = "iqn.2026-11.example.lunar:evidence"

// survey reads all units after a fault, returns what is wrong, and takes what is there as
// acknowledged.
func (l *load) survey() (wrong []error, err error) { return l.readAll((*ledger).survey) }

// inspect is survey that believes nothing.
func (l *load) inspect() (wrong []error, err error) { return l.readAll((*ledger).inspect) }

// errUnreadable is a block that was refused when it was read.
var errUnreadable = errors.New("cannot be read")

// readAll has the contents of all units judged, as blocks; nil: it was refused.
func (l *load) readAll(judge func(*ledger, [][]byte) []error) (wrong []error, err error) {
	const chunk = 256
	for _, u := range l.units {
		var blocks [][]byte
		for lba := 0; lba < len(u.blocks); lba += chunk {
			some, err := l.blocks(u, lba, min(chunk, len(u.blocks)-lba))
			if err != nil {
				return wrong, err
			}
			blocks = append(blocks, some...)
		}
		for _, e := range judge(u.ledger, blocks) {
			wrong = append(wrong, fmt.Errorf("%s: %w", u.name, e))
		}
	}
	return wrong, nil
}

// blocks reads n blocks, each by itself if they are refused together.
func (l *load) blocks(u *unit, lba, n int) ([][]byte, error) {
	r, err := l.conn.Command(cdb(0x88, 0, lba, n), u.lun, nil, n*blockSize)
	switch {
	case err != nil:
		return nil, err
	case r.Status == initiator.StatusGood && len(r.In) == n*blockSize:
		return slices.Collect(slices.Chunk(r.In, blockSize)), nil
	case n == 1:
		return [][]byte{nil}, nil
	}
	var all [][]byte
	for i := range n {
		one, err := l.blocks(u, lba+i, 1)
		if err != nil {
			return nil, err
		}
		all = append(all, one...)
	}
	return all, nil
}

// errWrong is what a command returned that it must not.
var errWrong = errors.New("wrong answer")

// run keeps commands under way until more says no, and then waits for the rest; or
// until the connection breaks, which is the other errors.
func (l *load) run(more func() bool) error {
	for {
		for len(l.out) < l.depth && more() {
			if err := l.start(); errors.Is(err, initiator.ErrWindowClosed) {
				break
			} else if err != nil {
				return err
			}
		}
		if len(l.out) == 0 {
			return nil
		}
		if _, err := l.conn.Step(0); err != nil {
			return err
		}
		if err := l.reap(); err != nil {
			return err
		}
	}
}

// start sends a command that no other one under way disturbs.
func (l *load) start() error {
	r := &request{unit: l.units[l.random.IntN(len(l.units))], deed: l.draw()}
	r.place(l.random)
	if r.kind == l.without || r.driven && r.zeroes || (r.driven || r.plain) && r.atomic || r.kind != "flush" && slices.ContainsFunc(l.out, r.overlaps) {
		return nil
	}
	if !l.conn.WindowOpen() {
		return initiator.ErrWindowClosed
	}
	if r.changes {
		r.version = r.begin(r.lba, r.n, r.zeroes, r.atomic)
	} else {
		r.then = r.snapshot()
	}
	task, err := l.conn.Start(r.deed.start(l, r))
	r.task = task
	if err == nil {
		l.out = append(l.out, r)
	}
	return err
}

func (l *load) draw() deed {
	all := 0
	for _, d := range deeds {
		all += d.share
	}
	at := l.random.IntN(all)
	for _, d := range deeds {
		if at -= d.share; at < 0 {
			return d
		}
	}
	panic("shares")
}

// place draws the blocks: half of the commands hit an eighth of the volume, so that
// there is much that is written again and again.
func (r *request) place(random *rand.Rand) {
	blocks := len(r.blocks)
	if random.IntN(2) == 0 {
		blocks /= 8
	}
	r.n = 1 + random.IntN(24)
	if r.aligned {
		r.n = 8 * (1 + random.IntN(3))
	}
	r.lba = random.IntN(blocks - r.n)
	if r.aligned {
		r.lba &^= 7
	}
}

func (r *request) overlaps(o *request) bool {
	return o.kind != "flush" && o.unit == r.unit && o.lba < r.lba+r.n && r.lba < o.lba+o.n
}

// reap notes what has ended.
func (l *load) reap() (err error) {
	l.out = slices.DeleteFunc(l.out, func(r *request) bool {
		if r.task.Done {
			l.ended++
			err = errors.Join(err, r.end())
		}
		return r.task.Done
	})
	return err
}

func (r *request) end() error {
	result := &r.task.Result
	if r.atomic && result.Status == initiator.StatusBusy {
		r.refused(r.lba, r.n, r.version) // reads kept it waiting for too long
		return nil
	}
	if result.Status != initiator.StatusGood {
		return fmt.Errorf("%w: %s: %s of %d blocks at %d: status %#x, sense % x", errWrong, r.unit.name, r.kind, r.n, r.lba, result.Status, result.Sense)
	}
	switch {
	case r.changes:
		r.acknowledged(r.lba, r.n, r.version, r.unit.lasting || r.deed.lasting)
	case r.kind == "flush":
		r.flushed(r.then)
	default:
		if err := r.read(r.lba, result.In); err != nil {
			return fmt.Errorf("%w: %s: %w", errWrong, r.unit.name, err)
		}
	}
	return nil
}

func writing(opcode, flags byte) func(*load, *request) initiator.Command {
	return func(_ *load, r *request) initiator.Command {
		out := make([]byte, r.n*blockSize)
		fill(out, r.volume, r.lba, r.version.generation)
		c := cdb(opcode, flags, r.lba, r.n)
		if r.atomic {
			c[10], c[11], c[12], c[13] = 0, 0, byte(r.n>>8), byte(r.n)
		}
		return initiator.Command{CDB: c, LUN: r.lun, Out: out, Attr: initiator.AttrSimple}
	}
}

func reading(_ *load, r *request) initiator.Command {
	return initiator.Command{CDB: cdb(0x88, 0, r.lba, r.n), LUN: r.lun, InLen: r.n * blockSize, Attr: initiator.AttrSimple}
}

func flushing(_ *load, r *request) initiator.Command {
	return initiator.Command{CDB: cdb(0x91, 0, 0, 0), LUN: r.lun, Attr: initiator.AttrSimple}
}

func unmapping(_ *load, r *request) initiator.Command {
	list := []byte{0, 22, 0, 16, 0, 0, 0, 0}
	list = binary.BigEndian.AppendUint64(list, uint64(r.lba))
	list = binary.BigEndian.AppendUint32(list, uint32(r.n))
	list = append(list, 0, 0, 0, 0)
	return initiator.Command{CDB: []byte{0x42, 0, 0, 0, 0, 0, 0, 0, byte(len(list)), 0}, LUN: r.lun, Out: list, Attr: initiator.AttrSimple}
}

// cdb is a command of 16 bytes that has LBA and length in the usual places.
func cdb(opcode, flags byte, lba, n int) []byte {
	c := make([]byte, 16)
	c[0], c[1] = opcode, flags
	binary.BigEndian.PutUint64(c[2:], uint64(lba))
	binary.BigEndian.PutUint32(c[10:], uint32(n))
	return c
}
