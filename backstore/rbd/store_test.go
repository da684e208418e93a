package rbd_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/rbd"
	"lunar/backstore/rbd/fake"
	"lunar/internal/eventually"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	image = "rbd/disk"
	page  = 4096
)

// site is a cluster with the image, and servers that use it.
type site struct {
	*fake.Cluster
	log eventually.Output
}

func newSite(t testing.TB, rule func(rbd.IO) unix.Errno) *site {
	s := &site{Cluster: fake.New(rule)}
	s.Create(image, backstoretest.Size)
	t.Cleanup(s.Close)
	return s
}

func (s *site) logger() *slog.Logger { return slog.New(slog.NewTextHandler(&s.log, nil)) }

// server is one of the site's, by name.
func (s *site) server(name string) rbd.Config {
	n, _ := rbd.ParseName(image)
	return rbd.Config{
		Clients: rbd.NewClients(s.Library, s.logger()), Account: rbd.Account{Config: "ceph.conf", User: "lunar"},
		Image: n, Server: name, Logger: s.logger(), Patience: time.Minute,
	}
}

func open(t testing.TB, c rbd.Config) *rbd.Store {
	t.Helper()
	store, err := rbd.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func client(t testing.TB, s backstore.Store) *backstoretest.Client {
	return backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
}

func TestConformance(t *testing.T) {
	for _, block := range []int{512, 4096} {
		t.Run(fmt.Sprint(block), func(t *testing.T) {
			backstoretest.Run(t, backstoretest.Subject{BlockSize: block, Open: func(t *testing.T) backstore.Store {
				c := newSite(t, nil).server("a")
				c.BlockSize = block
				store, err := rbd.Open(c)
				if err != nil {
					t.Fatal(err)
				}
				return store
			}})
		})
	}
}

// TestAnotherOwner: a second server is told who has the image, and gets it when that has
// closed it.
func TestAnotherOwner(t *testing.T) {
	s := newSite(t, nil)
	first, err := rbd.Open(s.server("a"))
	if err != nil {
		t.Fatal(err)
	}
	if store, err := rbd.Open(s.server("b")); err == nil || !strings.Contains(err.Error(), "the Lunar server a has it open at 192.0.2.1:0/1, and its exclusive lock") {
		t.Fatalf("found %v, %v", store, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if noted := s.Noted(image); len(noted) != 0 || s.Owner(image) != "" {
		t.Errorf("found notes %v, owner %q after an orderly end", noted, s.Owner(image))
	}
	second := open(t, s.server("b"))
	if _, known := second.Opened(); known {
		t.Error("found a stamp, although nothing tells who wrote when the lock was free")
	}
}

// crash leaves the image as a server does that is killed, and returns its address.
func (s *site) crash(t *testing.T, server string, data []byte) string {
	t.Helper()
	store := open(t, s.server(server)) // closed when the test ends: it must do no harm then
	client(t, store).Write(t, 0, data)
	return s.Owner(image)
}

// TestAfterCrash: a server has its image back at once, its last process can write no more,
// and the image is known to be as that has left it.
func TestAfterCrash(t *testing.T) {
	s := newSite(t, nil)
	old := open(t, s.server("a"))
	writer := client(t, old)
	writer.Write(t, 0, backstoretest.Pattern(page, 1))
	was, err := old.Stamp()
	if err != nil {
		t.Fatal(err)
	}
	again := open(t, s.server("a"))
	if found, known := again.Opened(); !known || found != was {
		t.Errorf("found stamp %x, %v, expected %x", found, known, was)
	}
	if now, err := again.Stamp(); err != nil || now.Medium != was.Medium || now.State == was.State {
		t.Errorf("found stamp %x, %v, expected another state than %x", now, err, was)
	}
	err = writer.Do(backstore.Op{Kind: backstore.Write, Data: backstoretest.Pattern(page, 2)})
	if !errors.Is(err, backstore.ErrFenced) || !errors.Is(err, backstore.ErrGone) {
		t.Errorf("a write of the last process: found %v, expected ErrFenced", err)
	}
	if got := client(t, again).Read(t, 0, page); !bytes.Equal(got, backstoretest.Pattern(page, 1)) {
		t.Error("found other data than were written before the crash")
	}
	if troubles := old.Troubles(); len(troubles) != 1 || !troubles[0].Failed || !strings.Contains(troubles[0].What, "blocklisted") {
		t.Errorf("found troubles %v", troubles)
	}
	if _, err := old.Stamp(); !errors.Is(err, backstore.ErrFenced) {
		t.Errorf("the stamp of a fenced store: found %v", err)
	}
}

// TestSomebodyBetween: when somebody else has had the image after a crash, its stamp says
// so, and which image it is.
func TestSomebodyBetween(t *testing.T) {
	s := newSite(t, nil)
	was := s.crash(t, "a", backstoretest.Pattern(page, 1))
	s.Die(was)
	between, err := rbd.Open(s.server("b"))
	if err != nil {
		t.Fatalf("the dead owner's lock was not taken: %v", err)
	}
	s.Block(s.Owner(image)) // so that it does not take its note back
	medium, _ := between.Stamp()
	if err := between.Close(); err != nil || !strings.HasPrefix(s.Noted(image)["lunar-owner"], "b ") {
		t.Errorf("found %v and notes %v after the end of a blocked instance, expected its note", err, s.Noted(image))
	}
	s.With(image, true, nil, map[string]string{"lunar-owner": "a " + was})
	before := time.Now()
	again := open(t, s.server("a"))
	found, known := again.Opened()
	if !known || found.Medium != medium.Medium || time.Unix(0, int64(found.State[2])).Before(before) {
		t.Errorf("found %x, %v, expected the medium %x and a time", found, known, medium.Medium)
	}
}

// TestBefore: who judges the image before its lock is taken can refuse it, and it is left
// as it was.
func TestBefore(t *testing.T) {
	s := newSite(t, nil)
	c, no := s.server("a"), errors.New("no")
	c.Before = func(w backstore.Watched) error {
		if !w.Exact() || s.Owner(image) != "" {
			t.Errorf("found owner %q, exact %v", s.Owner(image), w.Exact())
		}
		return no
	}
	if _, err := rbd.Open(c); !errors.Is(err, no) {
		t.Errorf("found %v", err)
	}
	if s.Owner(image) != "" || len(s.Noted(image)) != 0 {
		t.Error("the image was taken all the same")
	}
}

// TestBlocked: all volumes of a server share an instance; when it is blocked they fail, and
// what is opened anew has another one.
func TestBlocked(t *testing.T) {
	s := newSite(t, nil)
	s.Create("rbd/other", backstoretest.Size)
	c := s.server("a")
	first := open(t, c)
	c.Image.Image = "other"
	second := open(t, c)
	address := s.Owner(image)
	if o := s.Owner("rbd/other"); o != address {
		t.Fatalf("found instances %s and %s", address, o)
	}
	for _, store := range []*rbd.Store{first, second} {
		client(t, store).Write(t, 0, backstoretest.Pattern(page, 1))
	}
	s.Block(address)
	for _, store := range []*rbd.Store{first, second} {
		for _, op := range []backstore.Op{
			{Kind: backstore.Read, Data: backstoretest.Buffer(page)}, {Kind: backstore.Write, Data: backstoretest.Buffer(page)},
			{Kind: backstore.WriteZeroes, Len: page}, {Kind: backstore.Map, Len: page},
		} {
			if err := client(t, store).Do(op); !errors.Is(err, backstore.ErrFenced) {
				t.Errorf("%v: found %v, expected ErrFenced", op.Kind, err)
			}
		}
	}
	c.Image.Image = "disk"
	again := open(t, c)
	if o := s.Owner(image); o == address {
		t.Errorf("the blocked instance %s was used again", o)
	}
	client(t, again).Write(t, 0, backstoretest.Pattern(page, 2))
	if n := s.log.Count("an image is lost to somebody else"); n != 2 {
		t.Errorf("found %d lines, expected one for each image:\n%s", n, &s.log)
	}
}

// TestLockTaken: a lock that is gone is found out by looking, before anything is written.
func TestLockTaken(t *testing.T) {
	s := newSite(t, nil)
	store := open(t, s.server("a"))
	if troubles := store.Examine(); len(troubles) != 0 {
		t.Fatalf("found troubles %v", troubles)
	}
	s.Die(s.Owner(image))
	thief := open(t, s.server("b"))
	if troubles := store.Examine(); len(troubles) != 1 || !troubles[0].Failed {
		t.Errorf("found troubles %v", troubles)
	}
	client(t, thief).Write(t, 0, backstoretest.Pattern(page, 1))
}

// TestRefused: what could not be served safely is not, and the message says what to do.
func TestRefused(t *testing.T) {
	for want, c := range map[string]struct {
		lockable bool
		settings map[string]string
		change   func(*rbd.Config)
	}{
		"rbd feature enable rbd/disk exclusive-lock":            {},
		"rbd config image set rbd/disk rbd_cache false":         {lockable: true, settings: map[string]string{"rbd_cache": "true"}},
		"rbd_persistent_cache_mode disabled":                    {lockable: true, settings: map[string]string{"rbd_persistent_cache_mode": "rwl"}},
		"rbd_blocklist_on_break_lock true":                      {lockable: true, settings: map[string]string{"rbd_blocklist_on_break_lock": "false"}},
		"rbd create --size SIZE rbd/none":                       {lockable: true, change: func(c *rbd.Config) { c.Image.Image = "none" }},
		"expected a positive multiple of the block size 524289": {lockable: true, change: func(c *rbd.Config) { c.BlockSize = 524289 }},
	} {
		s := newSite(t, nil)
		s.With(image, c.lockable, c.settings, nil)
		config := s.server("a")
		if c.change != nil {
			c.change(&config)
		}
		if _, err := rbd.Open(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("found %v, expected %q", err, want)
		}
	}
}

// clusters are two, of which the one of away.conf is told when it is asked.
type clusters struct {
	rbd.Library
	away  rbd.Library
	asked chan struct{}
}

func (c *clusters) Connect(a rbd.Account) (rbd.Client, error) {
	if a.Config != "away.conf" {
		return c.Library.Connect(a)
	}
	close(c.asked)
	return c.away.Connect(a)
}

// TestAnotherClusterIsAway: while a cluster is waited for, lanes to another one begin and end.
func TestAnotherClusterIsAway(t *testing.T) {
	s, away := newSite(t, nil), newSite(t, nil)
	away.Away(true)
	near, _ := s.Library()
	far, _ := away.Library()
	both := &clusters{near, far, make(chan struct{})}
	c := s.server("a")
	c.Clients = rbd.NewClients(func() (rbd.Library, error) { return both, nil }, s.logger())
	store, distant := open(t, c), c
	distant.Account.Config = "away.conf"
	opened := make(chan *rbd.Store)
	go func() {
		other, err := rbd.Open(distant)
		if err != nil {
			t.Error(err)
		}
		opened <- other
	}()
	<-both.asked
	client(t, store).Write(t, 0, backstoretest.Pattern(page, 1))
	away.Away(false)
	if other := <-opened; other != nil {
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNoLibrary: what is missing is named, and asked for again the next time.
func TestNoLibrary(t *testing.T) {
	s := newSite(t, nil)
	c, missing := s.server("a"), errors.New("librbd.so.1: cannot open shared object file (install Ceph's client library: package librbd1)")
	c.Clients = rbd.NewClients(func() (rbd.Library, error) {
		if missing != nil {
			return nil, missing
		}
		return s.Library()
	}, s.logger())
	if _, err := rbd.Open(c); !errors.Is(err, missing) || !strings.Contains(err.Error(), "rbd image rbd/disk: ") {
		t.Errorf("found %v", err)
	}
	missing = nil
	open(t, c)
}

// TestAway: opening gives up on a cluster that does not answer, and what comes later is
// closed; operations wait as long as it takes.
func TestAway(t *testing.T) {
	s := newSite(t, nil)
	store := open(t, s.server("a"))
	c := client(t, store)
	c.Write(t, 0, backstoretest.Pattern(page, 1))
	s.Away(true)
	other := s.server("b")
	other.Patience = time.Millisecond
	if _, err := rbd.Open(other); err == nil || !strings.Contains(err.Error(), "the cluster does not answer within 1ms") {
		t.Errorf("found %v", err)
	}
	op := &backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(page)}
	ended := c.Go(op)
	select {
	case <-ended:
		t.Error("a read has ended without the cluster")
	default:
	}
	s.Away(false)
	if <-ended; op.Err != nil || !bytes.Equal(op.Data, backstoretest.Pattern(page, 1)) {
		t.Errorf("found %v, or other data", op.Err)
	}
}

// TestLateInstance: an instance ends with its last user, also with one whose opening or closing
// nobody waits for any more.
func TestLateInstance(t *testing.T) {
	s := newSite(t, nil)
	c := s.server("a")
	first, err := rbd.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	late, again := c, make(chan struct{})
	late.Patience, late.ReadOnly = time.Millisecond, true
	late.Before = func(backstore.Watched) error { <-again; return nil }
	if _, err := rbd.Open(late); err == nil || !strings.Contains(err.Error(), "the cluster does not answer within 1ms") {
		t.Errorf("found %v", err)
	}
	close(again)
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	eventually.Finds(t, "instances", 0, s.Connected)

	c.Patience = 100 * time.Millisecond
	second, err := rbd.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Away(true)
	if err := second.Close(); err == nil || !strings.Contains(err.Error(), "the cluster does not answer within 100ms") {
		t.Errorf("found %v", err)
	}
	s.Away(false)
	eventually.Finds(t, "instances", 0, s.Connected)
}

// TestResizedOutside: the server hears of a size that the image has got in the cluster,
// and follows it.
func TestResizedOutside(t *testing.T) {
	s := newSite(t, nil)
	c, heard := s.server("a"), make(chan struct{}, 8)
	c.Resized = func() { heard <- struct{}{} }
	store := open(t, c)
	user := client(t, store)
	for _, size := range []int64{2 * backstoretest.Size, backstoretest.Size / 2} {
		s.Resize(image, size)
		<-heard
		found, differs := store.SizeOutside()
		if !differs || found != size {
			t.Fatalf("found %d bytes, differs %v, expected %d", found, differs, size)
		}
		if err := store.Resize(found); err != nil || store.Info().Size != size {
			t.Fatalf("found %d bytes, %v", store.Info().Size, err)
		}
		user.Write(t, size-page, backstoretest.Pattern(page, uint64(size)))
	}
	if _, differs := store.SizeOutside(); differs {
		t.Error("the size differs still")
	}
}

// TestReadBehindCut: bytes that are not there are no zeroes.
func TestReadBehindCut(t *testing.T) {
	s := newSite(t, nil)
	store := open(t, s.server("a"))
	s.Resize(image, page)
	err := client(t, store).Do(backstore.Op{Kind: backstore.Read, Data: backstoretest.Buffer(2 * page)})
	if !errors.Is(err, backstore.ErrOutOfRange) {
		t.Errorf("found %v, expected ErrOutOfRange", err)
	}
}

// TestErrors: errnos mean what they mean for other stores.
func TestErrors(t *testing.T) {
	var errno atomic.Uint32
	s := newSite(t, func(rbd.IO) unix.Errno { return unix.Errno(errno.Load()) })
	c := client(t, open(t, s.server("a")))
	for code, want := range map[unix.Errno]error{unix.ENOSPC: backstore.ErrNoSpace, unix.EDQUOT: backstore.ErrNoSpace, unix.EROFS: backstore.ErrFenced, unix.EIO: unix.EIO} {
		errno.Store(uint32(code))
		if err := c.Do(backstore.Op{Kind: backstore.Write, Data: backstoretest.Buffer(page)}); !errors.Is(err, want) || errors.Is(err, backstore.ErrReadOnly) {
			t.Errorf("%v: found %v, expected %v", code, err, want)
		}
	}
	errno.Store(0)
}

// TestZeroesInParts: a long range is not given to the cluster at once.
func TestZeroesInParts(t *testing.T) {
	var most, parts atomic.Int64
	s := newSite(t, func(io rbd.IO) unix.Errno {
		if io.Kind == rbd.ZeroIO {
			most.Store(max(most.Load(), io.Len))
			parts.Add(1)
		}
		return 0
	})
	s.Resize(image, 200<<20)
	c := client(t, open(t, s.server("a")))
	c.Must(t, backstore.Op{Kind: backstore.Discard, Off: page, Len: 200<<20 - page})
	if most.Load() > 64<<20 || parts.Load() != 4 {
		t.Errorf("found %d parts of at most %d bytes, expected 4 of at most 64 MiB", parts.Load(), most.Load())
	}
}

func TestParseName(t *testing.T) {
	for text, want := range map[string]rbd.Name{
		"rbd/db": {Pool: "rbd", Image: "db"}, "rbd/ns/db": {Pool: "rbd", Namespace: "ns", Image: "db"},
		"": {}, "db": {}, "/db": {}, "rbd/": {}, "a/b/c/d": {}, "rbd/db@snap": {}, "rbd//db": {}, "rbd/a b": {},
	} {
		got, err := rbd.ParseName(text)
		if got != want || (err == nil) != (want.Pool != "") {
			t.Errorf("%q: found %+v, %v", text, got, err)
		}
		if err == nil && got.String() != text {
			t.Errorf("%q: found %q", text, got)
		}
	}
}

// TestNoAllocations: in the long run, on the loop's side; the fake's own are few and known.
func TestNoAllocations(t *testing.T) {
	c := client(t, open(t, newSite(t, nil).server("a")))
	for _, kind := range []backstore.Kind{backstore.Read, backstore.Write, backstore.Flush, backstore.WriteZeroes} {
		r := backstoretest.NewRoundTrip(c, kind, page)
		r.Do()
		if n := testing.AllocsPerRun(50, r.Do); n != 0 || r.Op.Err != nil {
			t.Errorf("%v: %v allocations, error %v", kind, n, r.Op.Err)
		}
	}
}

// TestAbandoned: an opening that was given up before it could take the lock takes it never, and
// no second one begins beside it.
func TestAbandoned(t *testing.T) {
	s := newSite(t, nil)
	c := s.server("a")
	other := c
	other.Image.Image += "-other"
	s.Create(other.Image.String(), 1<<20)
	open(t, other) // the instance is there
	s.Away(true)
	c.Patience = 10 * time.Millisecond
	if _, err := rbd.Open(c); err == nil || errors.Is(err, rbd.ErrLate) || !strings.Contains(err.Error(), "its opening was given up") {
		t.Errorf("found %v", err)
	}
	if _, err := rbd.Open(c); err == nil || !strings.Contains(err.Error(), "an earlier opening has not ended within 10ms") {
		t.Errorf("found %v", err)
	}
	s.Away(false)
	eventually.Holds(t, "the opening has ended", func() bool {
		again, err := rbd.Open(c)
		if err == nil {
			err = again.Close()
		}
		return err == nil
	})
}
