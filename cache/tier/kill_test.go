package tier

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/cache/segment"
	"lunar/internal/evloop"
)

// TestKill kills a process that serves volumes from a segment. The process is
// this test binary; it is told by the environment that it is the victim.
const victimOf = "LUNAR_TIER_VICTIM"

func init() {
	if places := os.Getenv(victimOf); places != "" {
		var at place
		_, _ = fmt.Sscan(places, &at.shared, &at.disk, &at.direct)
		fmt.Fprintln(os.Stderr, victim(at)) // it only returns if it fails
		os.Exit(1)
	}
}

const (
	killVolumes = 2
	killWorkers = 3
	killSectors = 768 // of a volume: more than the cache holds of both
	killSize    = killSectors * sector
	alone       = killSectors / 2 // from here on each worker has a range of its own
)

// record is what is known of a sector. All are numbers of changes, which rise.
type record struct {
	intended uint64 // change that was begun last
	ended    uint64 // change that was acknowledged last
	stable   uint64 // what a flush that was acknowledged had to make stable
	zeroed   uint64 // the last change that wrote zeroes
}

// ledger are the records of all sectors, in memory that outlives the victim, and
// the last number of a change.
type ledger struct {
	records []record
	next    *atomic.Uint64
	mem     []byte
}

func openLedger(path string) (l ledger, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return l, err
	}
	defer f.Close()
	n := killVolumes * killSectors
	size := n*int(unsafe.Sizeof(record{})) + 8
	if err := f.Truncate(int64(size)); err != nil {
		return l, err
	}
	if l.mem, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return l, err
	}
	l.next = (*atomic.Uint64)(unsafe.Pointer(&l.mem[0]))
	l.records = unsafe.Slice((*record)(unsafe.Pointer(&l.mem[8])), n)
	return l, nil
}

func (l *ledger) of(volume, n int) *record { return &l.records[volume*killSectors+n] }

// place is where a victim works.
type place struct {
	shared, disk string // directories: of the segment, of the volumes
	direct       bool   // with io_uring and direct I/O, which the kernel goes on with after a kill
}

func (p place) String() string              { return fmt.Sprint(p.shared, " ", p.disk, " ", p.direct) }
func (p place) volume(n int) string         { return fmt.Sprintf("%s/volume%d", p.disk, n) }
func (p place) openLedger() (ledger, error) { return openLedger(p.shared + "/ledger") }

func (p place) options() Options {
	return Options{
		PerNode: 512 << 10, BlockSize: 16 << 10, Volumes: killVolumes,
		Checksum: true, Segment: p.shared + "/segment", Identity: "victim", Build: "v1", DirtyLimit: 256 << 10,
	}
}

// loop is an event thread of a victim.
func (p place) loop() (*evloop.Loop, error) {
	c := evloop.Config{Name: "victim", CPU: -1, Node: -1, Workers: evloop.NewWorkers(2)}
	if p.direct {
		c.RingEntries = 64
	}
	return evloop.New(c)
}

// open opens cache and volumes. What a killed process has under way in the
// kernel may keep a store locked for a moment.
func (p place) open() (*Cache, []backstore.Store, error) {
	c, err := Open(p.options())
	if err != nil {
		return nil, nil, err
	}
	var volumes []backstore.Store
	for i := range killVolumes {
		store, err := p.openStore(i)
		if err != nil {
			return nil, nil, err
		}
		v, err := c.Wrap(store, VolumeConfig{ID: uint64(100 + i), Name: strconv.Itoa(i), Policy: Back, Age: 2 * time.Millisecond, ReadAhead: 32 << 10})
		if err != nil {
			return nil, nil, err
		}
		volumes = append(volumes, v)
	}
	return c, volumes, nil
}

func (p place) openStore(n int) (s backstore.Store, err error) {
	for range 3000 { // requests of the killed process may be under way
		if s, err = backstore.OpenFile(backstore.FileConfig{Path: p.volume(n), Size: killSize, BlockSize: sector, Direct: p.direct}); err == nil {
			return s, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, err
}

// victim works until it is killed.
func victim(at place) error {
	l, err := at.openLedger()
	if err != nil {
		return err
	}
	_, volumes, err := at.open()
	if err != nil {
		return err
	}
	failed := make(chan error, killWorkers)
	for id := range killWorkers {
		w := &killer{id: id, ledger: l, random: rand.New(rand.NewPCG(l.next.Load(), uint64(id)))}
		loop, err := at.loop()
		if err != nil {
			return err
		}
		go loop.Run()
		for _, v := range volumes {
			lane, err := v.Lane(loop)
			if err != nil {
				return err
			}
			w.clients = append(w.clients, &backstoretest.Client{Loop: loop, Lane: lane})
		}
		go func() { failed <- w.run() }()
	}
	fmt.Println("ready")
	return <-failed
}

// killer is one of several users of both volumes. In the first half of a volume
// it owns every n-th sector, so that users meet in the same sub-blocks.
type killer struct {
	id      int
	clients []*backstoretest.Client
	ledger  ledger
	random  *rand.Rand
}

func (k *killer) run() error {
	for {
		if err := k.step(); err != nil {
			return err
		}
	}
}

// step changes sectors, reads what others may be writing, or flushes.
func (k *killer) step() error {
	volume := k.random.IntN(killVolumes)
	first, n := k.own()
	switch k.random.IntN(10) {
	case 0:
		return k.flush(volume)
	case 1:
		return k.change(volume, first, n, backstore.Op{Kind: backstore.WriteZeroes, Len: int64(n) * sector})
	case 2:
		return k.change(volume, first, n, backstore.Op{Kind: backstore.Write, FUA: true})
	case 3, 4:
		at := k.random.IntN(killSectors - 64)
		return k.clients[volume].Do(backstore.Op{Kind: backstore.Read, Off: int64(at) * sector, Data: backstoretest.Buffer(64 * sector)})
	}
	return k.change(volume, first, n, backstore.Op{Kind: backstore.Write})
}

// own returns sectors that nobody else changes.
func (k *killer) own() (first, n int) {
	if k.random.IntN(2) == 0 {
		return k.random.IntN(alone/killWorkers)*killWorkers + k.id, 1
	}
	span := (killSectors - alone) / killWorkers
	first = k.random.IntN(span)
	return alone + k.id*span + first, 1 + k.random.IntN(min(span-first, 80))
}

func (k *killer) change(volume, first, n int, op backstore.Op) error {
	change := k.ledger.next.Add(1)
	op.Off = int64(first) * sector
	if op.Kind == backstore.Write {
		op.Data = backstoretest.Buffer(n * sector)
		for at := 0; at < len(op.Data); at += 8 {
			binary.NativeEndian.PutUint64(op.Data[at:], change)
		}
	}
	for i := first; i < first+n; i++ {
		r := k.ledger.of(volume, i)
		if op.Kind != backstore.Write {
			atomic.StoreUint64(&r.zeroed, change)
		}
		atomic.StoreUint64(&r.intended, change)
	}
	if err := k.clients[volume].Do(op); err != nil {
		return fmt.Errorf("%v of %d sectors: %w", op.Kind, n, err)
	}
	for i := first; i < first+n; i++ {
		r := k.ledger.of(volume, i)
		atomic.StoreUint64(&r.ended, change)
		if op.FUA {
			atomic.StoreUint64(&r.stable, change)
		}
	}
	return nil
}

// flush covers what has ended of the own sectors.
func (k *killer) flush(volume int) error {
	if err := k.clients[volume].Do(backstore.Op{Kind: backstore.Flush}); err != nil {
		return err
	}
	span := (killSectors - alone) / killWorkers
	for i := range killSectors {
		if i < alone && i%killWorkers == k.id || i >= alone && (i-alone)/span == k.id {
			r := k.ledger.of(volume, i)
			atomic.StoreUint64(&r.stable, atomic.LoadUint64(&r.ended))
		}
	}
	return nil
}

// A process is killed again and again under writes, zeroes, flushes and reads of
// several users. What was flushed is in the store; what was acknowledged is what
// the next process reads, which then ends in order or is killed, too.
func TestKill(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 2
	}
	at := place{shared: sharedDir(t), disk: diskDir(t)}
	l, err := at.openLedger()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(l.mem)
	dirty := int64(0)
	for round := range rounds {
		at.direct = round%4 >= 2
		early := round%3 == 2
		killOnce(t, at, time.Duration(rand.IntN(60_000))*time.Microsecond, early)
		for v := range killVolumes {
			checkStable(t, at, &l, v)
		}
		a := checkAttached(t, at, &l, round%2 == 0)
		if a.Outcome != segment.Crashed.String() && !early || a.Dropped != 0 {
			t.Errorf("attached %+v", a)
		}
		dirty += a.DirtyBytes
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	if dirty == 0 || l.next.Load() < uint64(rounds) {
		t.Errorf("%d changes, and %d bytes were dirty at any kill", l.next.Load(), dirty)
	}
}

// killOnce starts a process, lets it work for a while and kills it; early: also
// while it attaches the segment.
func killOnce(t *testing.T, at place, after time.Duration, early bool) {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), victimOf+"="+at.String())
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if !early {
		if _, err := out.Read(make([]byte, 16)); err != nil {
			t.Errorf("the victim did not get ready: %v", err)
		}
	}
	time.Sleep(after) // any moment will do
	if err := child.Process.Kill(); err != nil {
		t.Error(err)
	}
	if err := child.Wait(); err == nil {
		t.Error("the victim ended by itself")
	}
}

// checkStable looks at a store as the victim has left it.
func checkStable(t *testing.T, p place, l *ledger, volume int) {
	t.Helper()
	data, err := os.ReadFile(p.volume(volume))
	if err != nil {
		t.Fatal(err)
	}
	for i := range killSectors {
		r := l.of(volume, i)
		for at := range sector / 8 {
			w := binary.NativeEndian.Uint64(data[i*sector+at*8:])
			if w < r.stable && (w != 0 || r.zeroed < r.stable) {
				t.Fatalf("volume %d, sector %d: the store has change %d, but %d was flushed", volume, i, w, r.stable)
			}
		}
	}
}

// checkAttached attaches the segment, reads everything, and ends in order or not.
func checkAttached(t *testing.T, p place, l *ledger, orderly bool) Attached {
	t.Helper()
	c, volumes, err := p.open()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	a := c.Attached()
	loop := backstoretest.NewLoop(t, false)
	images := make([][]byte, killVolumes)
	for i, v := range volumes {
		lane, err := v.Lane(loop)
		if err != nil {
			t.Fatal(err)
		}
		images[i] = l.read(t, i, &backstoretest.Client{Loop: loop, Lane: lane})
		backstoretest.On(loop, lane.Close)
	}
	if !orderly {
		crash(t, c, volumes)
		return a
	}
	for i, v := range volumes {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
		if data, err := os.ReadFile(p.volume(i)); err != nil || !bytes.Equal(data, images[i]) {
			t.Errorf("volume %d: the store is not what was read, %v", i, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	return a
}

// read compares a volume with its records, and brings these up to date: in each
// sector a change that was under way has happened or not.
func (l *ledger) read(t *testing.T, volume int, client *backstoretest.Client) []byte {
	t.Helper()
	image := client.Read(t, 0, killSize)
	for n := range killSectors {
		r, data := l.of(volume, n), image[n*sector:(n+1)*sector]
		switch before, after := r.content(r.ended), r.content(r.intended); {
		case made(data, after):
			r.ended = r.intended
		case made(data, before):
			r.intended = r.ended
		default:
			t.Fatalf("volume %d, sector %d: found %x, expected change %d or %d, of which zeroes: %d", volume, n, data[:16], r.ended, r.intended, r.zeroed)
		}
	}
	return image
}

// made reports whether data are of nothing but one change.
func made(data []byte, change uint64) bool {
	for at := 0; at < len(data); at += 8 {
		if binary.NativeEndian.Uint64(data[at:]) != change {
			return false
		}
	}
	return true
}

// content is what a change has left in a sector.
func (r *record) content(change uint64) uint64 {
	if change == r.zeroed {
		return 0
	}
	return change
}

// diskDir is a directory on a disk.
func diskDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "tier")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
