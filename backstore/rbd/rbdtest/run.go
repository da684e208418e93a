// Package rbdtest has the tests that every backstore/rbd.Library must pass: the fake one,
// and librbd on a cluster.
package rbdtest

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/backstore/backstoretest"
	"lunar/backstore/rbd"
	"lunar/internal/eventually"
)

// Subject is a library and a cluster.
type Subject struct {
	Library rbd.Library
	Account rbd.Account
	// Create makes an image of zeroes, with the feature exclusive-lock.
	Create func(t testing.TB, size int64) rbd.Name
}

// Size is that of images, in bytes: several objects of 4 MiB.
const Size = 16 << 20

const page = 4096

// Run runs all tests.
func Run(t *testing.T, s Subject) {
	for name, test := range map[string]func(*testing.T, Subject){
		"ReadBack": testReadBack, "Zeroes": testZeroes, "ManyInFlight": testManyInFlight, "Mapped": testMapped,
		"Lock": testLock, "Break": testBreak, "Fence": testFence, "Notes": testNotes, "Changed": testChanged, "Cut": testCut,
		"ReadOnly": testReadOnly, "Settings": testSettings, "Snapshots": testSnapshots, "Names": testNames, "Children": testChildren, "Missing": testMissing,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// testFence: an instance that another one has fenced can neither write nor read.
func testFence(t *testing.T, s Subject) {
	name := s.Create(t, Size)
	old, other := s.open(t, name, false), s.open(t, name, false)
	old.write(0, make([]byte, page))
	if err := other.client.Fence(old.client.Address()); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []rbd.Kind{rbd.WriteIO, rbd.ReadIO} {
		if r := old.do(kind, 0, page, make([]byte, page)); r != -int64(unix.ESHUTDOWN) {
			t.Errorf("found %d, expected that a fenced instance is refused", r)
		}
	}
}

// user is an instance with an image open, and a queue.
type user struct {
	t      *testing.T
	client rbd.Client
	image  rbd.Image
	queue  rbd.Queue
	next   uint32 // token
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// open is by an instance of its own.
func (s Subject) open(t *testing.T, name rbd.Name, readOnly bool) *user {
	t.Helper()
	u := &user{t: t, client: must[rbd.Client](t)(s.Library.Connect(s.Account))}
	u.image = must[rbd.Image](t)(u.client.Open(name, readOnly))
	u.queue = must[rbd.Queue](t)(s.Library.Queue())
	t.Cleanup(func() {
		u.queue.Close()
		if err := errors.Join(u.image.Close(), u.client.Close()); err != nil {
			t.Log(err) // of a fenced instance
		}
	})
	return u
}

// await reaps so many operations, asleep while there are none.
func (u *user) await(n int) (all []rbd.Ended) {
	u.t.Helper()
	for buf := make([]rbd.Ended, 7); len(all) < n; {
		got := u.queue.Reap(buf)
		all = append(all, buf[:got]...)
		if got > 0 || u.queue.Arm() {
			continue
		}
		fds := []unix.PollFd{{Fd: int32(u.queue.FD()), Events: unix.POLLIN}}
		if ready, err := unix.Poll(fds, 60_000); ready == 0 || err != nil && err != unix.EINTR {
			u.t.Fatalf("found %d of %d operations ended (%v)", len(all), n, err)
		}
		var count [8]byte
		_, _ = unix.Read(u.queue.FD(), count[:]) // so that poll sleeps again
	}
	return all
}

func (u *user) start(kind rbd.Kind, off, n int64, data []byte) {
	u.t.Helper()
	io := rbd.IO{Kind: kind, Off: off, Len: n, Data: unsafe.Pointer(unsafe.SliceData(data))}
	if errno := u.queue.Start(u.image, io, u.next); errno != 0 {
		u.t.Fatal(errno)
	}
	u.next++
}

// do returns the result of an operation.
func (u *user) do(kind rbd.Kind, off, n int64, data []byte) int64 {
	u.t.Helper()
	u.start(kind, off, n, data)
	e := u.await(1)[0]
	if u.next--; e.Token != u.next {
		u.t.Fatalf("found token %d, expected %d", e.Token, u.next)
	}
	return e.Result
}

func (u *user) write(off int64, data []byte) {
	u.t.Helper()
	if r := u.do(rbd.WriteIO, off, int64(len(data)), data); r < 0 {
		u.t.Fatalf("write at %d: %v", off, syscall.Errno(-r))
	}
}

func (u *user) expect(off int64, want []byte) {
	u.t.Helper()
	got := backstoretest.Buffer(len(want))
	if r := u.do(rbd.ReadIO, off, int64(len(got)), got); r != int64(len(got)) {
		u.t.Fatalf("read at %d: found %d, expected %d", off, r, len(got))
	}
	if !bytes.Equal(got, want) {
		u.t.Fatalf("the %d bytes at %d differ from those that were written", len(got), off)
	}
}

func testReadBack(t *testing.T, s Subject) {
	u := s.open(t, s.Create(t, Size), false)
	u.expect(0, make([]byte, page))
	for i, r := range []struct {
		off int64
		n   int
	}{{0, page}, {4<<20 - page, 2 * page}, {512, 512}, {Size - 1<<20, 1 << 20}} {
		data := backstoretest.Pattern(r.n, uint64(i))
		u.write(r.off, data)
		u.expect(r.off, data)
	}
}

// testZeroes: a range that begins and ends anywhere reads as zeroes, and nothing around it.
func testZeroes(t *testing.T, s Subject) {
	u := s.open(t, s.Create(t, Size), false)
	want := slices.Clone(backstoretest.Pattern(Size, 1))
	data := backstoretest.Buffer(Size)
	copy(data, want)
	u.write(0, data)
	for _, r := range [][2]int64{{512, 512}, {page, 60 << 10}, {4<<20 - 512, 1024}, {5 << 20, 4 << 20}, {8 << 20, 4 << 20}} {
		if got := u.do(rbd.ZeroIO, r[0], r[1], nil); got < 0 {
			t.Fatalf("zero: %v", syscall.Errno(-got))
		}
		clear(want[r[0] : r[0]+r[1]])
		u.expect(0, want)
	}
}

func testManyInFlight(t *testing.T, s Subject) {
	u := s.open(t, s.Create(t, Size), false)
	const many = 300
	for _, kind := range []rbd.Kind{rbd.WriteIO, rbd.ReadIO} {
		u.next = 0
		data := backstoretest.Buffer(many * page)
		if kind == rbd.WriteIO {
			copy(data, backstoretest.Pattern(len(data), 3))
		}
		for i := range int64(many) {
			u.start(kind, i*page, page, data[i*page:(i+1)*page])
		}
		seen := map[uint32]bool{}
		for _, e := range u.await(many) {
			if e.Result < 0 || seen[e.Token] {
				t.Fatalf("found result %d of token %d, seen before: %v", e.Result, e.Token, seen[e.Token])
			}
			seen[e.Token] = true
		}
		if kind == rbd.ReadIO && !bytes.Equal(data, backstoretest.Pattern(len(data), 3)) {
			t.Error("the data read differ from those written")
		}
	}
	u.next = 0
}

func testMapped(t *testing.T, s Subject) {
	u := s.open(t, s.Create(t, Size), false)
	g := must[rbd.Geometry](t)(u.image.Geometry())
	if mapped, n, err := u.image.Mapped(0, Size); mapped || n != Size || err != nil {
		t.Fatalf("an empty image: found %v for %d, %v", mapped, n, err)
	}
	u.write(g.Object, backstoretest.Pattern(int(g.Object), 4))
	for _, want := range []struct {
		off, n int64
		mapped bool
	}{{0, g.Object, false}, {g.Object, g.Object, true}, {g.Object + page, g.Object - page, true}, {2 * g.Object, Size - 2*g.Object, false}} {
		if mapped, n, err := u.image.Mapped(want.off, Size-want.off); mapped != want.mapped || n != want.n || err != nil {
			t.Errorf("at %d: found %v for %d, %v; expected %v for %d", want.off, mapped, n, err, want.mapped, want.n)
		}
	}
}

// same compares addresses without the version of Ceph's protocol.
func same(a, b string) bool {
	bare := func(s string) string { return s[strings.LastIndex(s, "/")+1:] }
	return a != "" && b != "" && bare(a) == bare(b)
}

// testLock: the lock is its owner's until it closes the image, and keeps others from
// writing, not from reading.
func testLock(t *testing.T, s Subject) {
	name := s.Create(t, Size)
	a, b := s.open(t, name, false), s.open(t, name, false)
	if owner := must[string](t)(a.image.Owner()); owner != "" {
		t.Fatalf("found owner %s of a new image", owner)
	}
	if err := a.image.Acquire(); err != nil {
		t.Fatal(err)
	}
	if owner := must[string](t)(b.image.Owner()); !same(owner, a.client.Address()) || !a.image.Owned() || b.image.Owned() {
		t.Errorf("found owner %s, and that it is a: %v, b: %v, expected %s", owner, a.image.Owned(), b.image.Owned(), a.client.Address())
	}
	watchers := must[[]string](t)(a.image.Watchers())
	for _, u := range []*user{a, b} {
		if !slices.ContainsFunc(watchers, func(w string) bool { return same(w, u.client.Address()) }) {
			t.Errorf("found watchers %v, without %s", watchers, u.client.Address())
		}
	}
	data := backstoretest.Pattern(page, 5)
	a.write(0, data)
	if r := b.do(rbd.WriteIO, 0, page, data); r != -int64(unix.EROFS) {
		t.Errorf("a write without the lock: found %d, expected EROFS", r)
	}
	b.expect(0, data)
	if err := a.image.Close(); err != nil {
		t.Fatal(err)
	}
	a.image = must[rbd.Image](t)(a.client.Open(name, false))
	if owner := must[string](t)(b.image.Owner()); owner != "" {
		t.Errorf("found owner %s after its image was closed", owner)
	}
}

// testBreak: an owner whose lock is broken writes nothing any more.
func testBreak(t *testing.T, s Subject) {
	name := s.Create(t, Size)
	a, b := s.open(t, name, false), s.open(t, name, false)
	if err := a.image.Acquire(); err != nil {
		t.Fatal(err)
	}
	a.write(0, backstoretest.Pattern(page, 6))
	owner := must[string](t)(b.image.Owner())
	if err := errors.Join(b.image.Break(owner), b.image.Acquire()); err != nil {
		t.Fatal(err)
	}
	data := backstoretest.Pattern(page, 7)
	b.write(0, data)
	if r := a.do(rbd.WriteIO, 0, page, backstoretest.Pattern(page, 8)); r != -int64(unix.ESHUTDOWN) {
		t.Errorf("a write of a fenced instance: found %d, expected ESHUTDOWN", r)
	}
	b.expect(0, data)
}

func testNotes(t *testing.T, s Subject) {
	name := s.Create(t, Size)
	a, b := s.open(t, name, false), s.open(t, name, false)
	for _, text := range []string{"", "first", "second text", ""} {
		if err := a.image.Annotate("note", text); err != nil {
			t.Fatal(err)
		}
		if got := must[string](t)(b.image.Note("note")); got != text {
			t.Errorf("found note %q, expected %q", got, text)
		}
	}
}

// testChanged: who has the image open hears of the size that another gives it.
func testChanged(t *testing.T, s Subject) {
	name := s.Create(t, Size)
	a, b := s.open(t, name, false), s.open(t, name, false)
	if err := a.image.Acquire(); err != nil {
		t.Fatal(err)
	}
	if err := a.image.Resize(2 * Size); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the other has heard of the size", func() bool {
		<-b.image.Changed()
		return must[rbd.Geometry](t)(b.image.Geometry()).Size == 2*Size
	})
	a.write(2*Size-page, backstoretest.Pattern(page, 9))
}

// testCut: what lay behind the end is gone when the image grows again.
func testCut(t *testing.T, s Subject) {
	u := s.open(t, s.Create(t, Size), false)
	u.write(Size-page, backstoretest.Pattern(page, 10))
	for _, size := range []int64{Size / 2, Size} {
		if err := u.image.Resize(size); err != nil {
			t.Fatal(err)
		}
	}
	u.expect(Size-page, make([]byte, page))
}

// testReadOnly: what one writes another reads at once. Nobody writes to an image that is
// open read-only: librbd 16 never ends that.
func testReadOnly(t *testing.T, s Subject) {
	name := s.Create(t, Size)
	a, b := s.open(t, name, false), s.open(t, name, true)
	data := backstoretest.Pattern(page, 11)
	a.write(0, data)
	b.expect(0, data)
}

// testSettings: librbd keeps nothing that it has acknowledged.
func testSettings(t *testing.T, s Subject) {
	u := s.open(t, s.Create(t, Size), false)
	if value, known, err := u.image.Setting("rbd_cache"); err != nil || known && value != "false" {
		t.Errorf("found rbd_cache %q, known %v, %v", value, known, err)
	}
	if _, known, err := u.image.Setting("no_such_option"); err != nil || known {
		t.Errorf("found an option that there is not, %v", err)
	}
}

func testMissing(t *testing.T, s Subject) {
	name := s.Create(t, Size)
	client := must[rbd.Client](t)(s.Library.Connect(s.Account))
	defer client.Close()
	name.Image += "-missing"
	if _, err := client.Open(name, false); !errors.Is(err, unix.ENOENT) {
		t.Errorf("found %v, expected ENOENT", err)
	}
}
