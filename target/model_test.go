package target_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"lunar/backstore"
	"lunar/backstore/memstore"
	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/scsi"
	"lunar/target/targettest"
)

// imageSize is the volume of the property tests, in bytes.
const imageSize = 1 << 20

// drawKeys draws what a session negotiates.
func drawKeys(rt *rapid.T) initiator.Keys {
	number := func(name string, values ...int) initiator.Key {
		return initiator.Key{Name: name, Value: strconv.Itoa(rapid.SampledFrom(values).Draw(rt, name))}
	}
	yesNo := func(name string) initiator.Key {
		return initiator.Key{Name: name, Value: rapid.SampledFrom([]string{"Yes", "No"}).Draw(rt, name)}
	}
	return initiator.Keys{yesNo("ImmediateData"), yesNo("InitialR2T"), number("FirstBurstLength", 512, 1000, 4096, 65536),
		number("MaxBurstLength", 65536, 100000, 262144, 1<<20), number("MaxOutstandingR2T", 1, 2, 3, 8),
		number("MaxRecvDataSegmentLength", 512, 1001, 4096, 262144)}
}

// drawCommand draws a read or write of the image.
func drawCommand(rt *rapid.T) (cmd initiator.Command, off int) {
	blocks := rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(1, 700)).Draw(rt, "blocks")
	lba := rapid.IntRange(0, imageSize/512-blocks).Draw(rt, "lba")
	cmd.Attr = rapid.SampledFrom([]byte{initiator.AttrUntagged, initiator.AttrSimple, initiator.AttrOrdered, initiator.AttrHeadOfQueue}).Draw(rt, "attr")
	if rapid.Bool().Draw(rt, "write") {
		cmd.CDB = cdbWrite16(uint64(lba), uint32(blocks))
		cmd.Out = pattern(blocks*512, rapid.Byte().Draw(rt, "seed"))
		cmd.Segment = rapid.SampledFrom([]int{0, 300, 512, 5000, 70000}).Draw(rt, "segment")
		cmd.HoldData = rapid.Bool().Draw(rt, "hold")
	} else {
		cmd.CDB, cmd.InLen = cdbRead16(uint64(lba), uint32(blocks)), blocks*512
	}
	return cmd, lba * 512
}

// modelRun is a session beside a byte slice that knows what the volume holds.
type modelRun struct {
	rt    *rapid.T
	c     *initiator.Conn
	image []byte
	live  []*modelTask
}

type modelTask struct {
	*initiator.Task
	off int
}

func (m *modelTask) length() int { return max(len(m.Command.Out), m.Command.InLen) }

// conflicts says whether two commands at once would leave the result open.
func (m *modelRun) conflicts(cmd initiator.Command, off int) bool {
	n := max(len(cmd.Out), cmd.InLen)
	return slices.ContainsFunc(m.live, func(l *modelTask) bool {
		return off < l.off+l.length() && l.off < off+n && (len(cmd.Out) > 0 || len(l.Command.Out) > 0)
	})
}

func (m *modelRun) start() {
	cmd, off := drawCommand(m.rt)
	if m.conflicts(cmd, off) || !m.c.WindowOpen() {
		return
	}
	task, err := m.c.Start(cmd)
	if err != nil {
		m.rt.Fatal(err)
	}
	m.live = append(m.live, &modelTask{task, off})
}

// answer sends the data of one R2T of every command, any of those that are held.
func (m *modelRun) answer() (some bool) {
	for _, l := range m.live {
		if n := len(l.R2Ts); n > 0 {
			i := rapid.IntRange(0, n-1).Draw(m.rt, "r2t")
			l.R2Ts[0], l.R2Ts[i] = l.R2Ts[i], l.R2Ts[0]
			if err := m.c.SendData(l.Task); err != nil {
				m.rt.Fatal(err)
			}
			some = true
		}
	}
	return some
}

// finish waits for one command. The others get their data too: it may be their
// memory that this one waits for.
func (m *modelRun) finish(i int) {
	l := m.live[i]
	for !l.Done {
		for m.answer() {
		}
		if _, err := m.c.Step(0); err != nil {
			m.rt.Fatal(err)
		}
	}
	m.live = slices.Delete(m.live, i, i+1)
	m.judge(l)
}

func (m *modelRun) judge(l *modelTask) {
	held := m.image[l.off:][:l.length()]
	switch {
	case (l.Result.Status == initiator.StatusTaskSetFull || l.Result.Status == initiator.StatusBusy) && len(l.Command.Out) > 0: // not written
	case l.Result.Status != initiator.StatusGood:
		m.rt.Fatalf("status %#02x sense %x", l.Result.Status, l.Result.Sense)
	case len(l.Command.Out) > 0:
		copy(held, l.Command.Out)
	case !bytes.Equal(l.Result.In, held):
		m.rt.Fatalf("read of %d bytes at %d: other data than was written", l.length(), l.off)
	}
}

// abort ends one command by task management. What an aborted write has written
// is any of its sectors.
func (m *modelRun) abort(i int) {
	l := m.live[i]
	code, err := m.c.TaskManagement(initiator.TaskRequest{Function: initiator.AbortTask, Referenced: l.Task})
	if err != nil {
		m.rt.Fatal(err)
	}
	m.live = slices.Delete(m.live, i, i+1)
	if l.Done {
		m.judge(l)
		return
	}
	if code != 0 {
		m.rt.Fatalf("ABORT TASK of a running command: response %d", code)
	}
	m.c.Forget(l.Task)
	if len(l.Command.Out) > 0 {
		m.adopt(l)
	}
}

// adopt reads what an aborted write has left.
func (m *modelRun) adopt(l *modelTask) {
	for len(m.live) > 0 { // or it waits for memory that they hold until they get their data
		m.finish(0)
	}
	n := l.length()
	res, err := m.c.Command(cdbRead16(uint64(l.off/512), uint32(n/512)), 0, nil, n)
	if err != nil || res.Status != 0 {
		m.rt.Fatalf("read after abort: %v, %v", res, err)
	}
	for at := 0; at < n; at += 512 {
		got, old, written := res.In[at:at+512], m.image[l.off+at:][:512], l.Command.Out[at:at+512]
		if !bytes.Equal(got, old) && !bytes.Equal(got, written) {
			m.rt.Fatalf("sector at %d after an abort is neither old nor new", l.off+at)
		}
		copy(old, got)
	}
}

// Random commands under random keys, in any interleaving, do what a byte slice
// does. Every PDU is judged on the way.
func TestTransfersMatchModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		store, err := memstore.New(memstore.Config{Size: imageSize, Async: rapid.Bool().Draw(rt, "async")})
		if err != nil {
			rt.Fatal(err)
		}
		s := newServed(t, scsi.LUConfig{Name: "v", Store: store, BlockSize: 512, Serial: "1"},
			target.Config{Threads: 1, Buffers: rapid.SampledFrom([]int{512 << 10, 4 << 20}).Draw(rt, "buffers"), NoRing: true})
		defer s.stop(t)
		wire := targettest.Wire{Piece: rapid.SampledFrom([]int{0, 1500, 20000}).Draw(rt, "piece"), Window: rapid.SampledFrom([]int{0, 8000}).Draw(rt, "window")}
		c := initiator.NewConn(targettest.Dial(s.Server, 1, wire))
		defer c.Close()
		if err := c.Login(initiator.Options{Target: testTarget, Keys: drawKeys(rt)}); err != nil {
			rt.Fatal(err)
		}
		if err := c.Ready(0); err != nil {
			rt.Fatal(err)
		}
		m := &modelRun{rt: rt, c: c, image: make([]byte, imageSize)}
		m.run(rapid.IntRange(1, 16).Draw(rt, "steps"))
		if !bytes.Equal(store.Bytes(), m.image) {
			rt.Fatal("the store holds other data than the model")
		}
		c.Close()
		s.expectNothingHeld(t)
	})
}

func (m *modelRun) run(steps int) {
	for range steps {
		switch kind := rapid.IntRange(0, 9).Draw(m.rt, "step"); {
		case kind < 6 || len(m.live) == 0:
			m.start()
		case kind < 7:
			m.answer()
		case kind < 9:
			m.finish(rapid.IntRange(0, len(m.live)-1).Draw(m.rt, "which"))
		default:
			m.abort(rapid.IntRange(0, len(m.live)-1).Draw(m.rt, "which"))
		}
	}
	for len(m.live) > 0 {
		m.finish(0)
	}
}

// sectorHistory is what a sector may hold after a power cut: what was stable,
// and all that was written since.
type sectorHistory [][]byte

func (h sectorHistory) allows(got []byte) bool {
	return slices.ContainsFunc(h, func(v []byte) bool { return bytes.Equal(v, got) })
}

// FUA and SYNCHRONIZE CACHE mean what they say: whatever power cut follows,
// what they made stable is there. With a write-through unit that is everything.
func TestStableMeansStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		const sectors = 64
		store, err := memstore.New(memstore.Config{Size: sectors * 512, Async: rapid.Bool().Draw(rt, "async")})
		if err != nil {
			rt.Fatal(err)
		}
		through := rapid.Bool().Draw(rt, "write through")
		s := newServed(t, scsi.LUConfig{Name: "v", Store: store, BlockSize: 512, Serial: "1", WriteThrough: through},
			target.Config{Threads: 1, Buffers: 1 << 20, NoRing: true})
		defer s.stop(t)
		c := s.connect(t, overMemory(targettest.Wire{}), initiator.Options{})
		if err := c.Ready(0); err != nil {
			rt.Fatal(err)
		}
		disk := make([]sectorHistory, sectors)
		for i := range disk {
			disk[i] = sectorHistory{make([]byte, 512)}
		}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			changeDisk(rt, c, disk, through)
		}
		for seed := range uint64(4) {
			left := store.CrashClone(seed).Bytes()
			for i, h := range disk {
				if !h.allows(left[i*512:][:512]) {
					rt.Fatalf("sector %d lost what was acknowledged as stable", i)
				}
			}
		}
		c.Close()
	})
}

// changeDisk writes or synchronizes some sectors.
func changeDisk(rt *rapid.T, c *initiator.Conn, disk []sectorHistory, through bool) {
	lba := rapid.IntRange(0, len(disk)-1).Draw(rt, "lba")
	n := rapid.IntRange(1, len(disk)-lba).Draw(rt, "blocks")
	var cmd initiator.Command
	stable := true
	if rapid.IntRange(0, 3).Draw(rt, "kind") == 0 {
		cmd.CDB = cdbRead16(uint64(lba), uint32(n))
		cmd.CDB[0] = 0x91 // SYNCHRONIZE CACHE(16)
	} else {
		cmd.CDB = cdbWrite16(uint64(lba), uint32(n))
		cmd.Out = pattern(n*512, rapid.Byte().Draw(rt, "seed"))
		fua := rapid.Bool().Draw(rt, "fua")
		if fua {
			cmd.CDB[1] |= 0x08
		}
		stable = fua || through
	}
	res, err := c.Do(cmd)
	if err != nil || res.Status != 0 {
		rt.Fatalf("%#02x: %v, %v", cmd.CDB[0], res, err)
	}
	for i := range n {
		h := &disk[lba+i]
		if cmd.Out != nil {
			*h = append(*h, cmd.Out[i*512:][:512])
		}
		if stable {
			*h = (*h)[len(*h)-1:]
		}
	}
}

// configuration is one way to build a server.
type configuration struct {
	name   string
	config target.Config
	dial   dialer
	open   func(t testing.TB) (backstore.Store, error)
}

// outcome runs the commands and returns how each ended, and the image.
func (f configuration) outcome(t *testing.T, commands []initiator.Command) (ends []string) {
	store, err := f.open(t)
	if err != nil {
		t.Fatal(err)
	}
	c := serve(t, store, 512, f.config).connect(t, f.dial, initiator.Options{})
	if err := c.Ready(0); err != nil {
		t.Fatal(err)
	}
	commands = append(slices.Clone(commands), initiator.Command{CDB: cdbRead16(0, imageSize/512), InLen: imageSize})
	for _, cmd := range commands {
		r, err := c.Do(cmd)
		if err != nil {
			t.Fatalf("%s: %v", f.name, err)
		}
		ends = append(ends, fmt.Sprintf("status %#x sense %x residual %d %t %t data %x", r.Status, r.Sense, r.Residual, r.Overflow, r.Underflow, sha256.Sum256(r.In)))
	}
	return ends
}

// configurations must not be told apart by what they serve.
var configurations = []configuration{
	{"memory, one thread", target.Config{Threads: 1}, memory.dial, func(testing.TB) (backstore.Store, error) { return backstore.NewRAM(imageSize, 512) }},
	{"pieces, little memory", target.Config{Threads: 1, Buffers: 1 << 20}, pieces.dial, func(testing.TB) (backstore.Store, error) {
		return memstore.New(memstore.Config{Size: imageSize, Async: true})
	}},
	{"TCP, two threads, ring", target.Config{Threads: 2}, sockets.dial, openVolume},
	{"digests, no ring", target.Config{Threads: 2, NoRing: true}, digested.dial, openVolume},
}

func openVolume(t testing.TB) (backstore.Store, error) {
	return backstore.OpenFile(backstore.FileConfig{Path: filepath.Join(t.TempDir(), "volume"), Size: imageSize})
}

// The same operations end in the same statuses and leave the same image, however
// the server is built.
func TestConfigurationsAgree(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var commands []initiator.Command
	for i := range 120 {
		lba, blocks := random.IntN(imageSize/512+50), 1+random.IntN(1+random.IntN(700))
		if i%3 == 0 {
			commands = append(commands, initiator.Command{CDB: cdbRead16(uint64(lba), uint32(blocks)), InLen: (blocks + random.IntN(3) - 1) * 512})
		} else {
			commands = append(commands, initiator.Command{CDB: cdbWrite16(uint64(lba), uint32(blocks)), Out: pattern((blocks+random.IntN(2))*512, byte(i))})
		}
	}
	var first []string
	for _, f := range configurations {
		got := f.outcome(t, commands)
		if first == nil {
			first = got
		}
		for i := range got {
			if got[i] != first[i] {
				t.Fatalf("%s: command %d: %s, expected %s", f.name, i, got[i], first[i])
			}
		}
	}
}
