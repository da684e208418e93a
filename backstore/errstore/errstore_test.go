package errstore_test

import (
	"bytes"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/errstore"
	"lunar/internal/evloop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	page = 4096
	size = 16 * page
)

var errTest = errors.New("as ordered")

func open(t *testing.T, rules ...errstore.Rule) (*errstore.Store, *backstoretest.Client) {
	t.Helper()
	ram, err := backstore.NewRAM(size, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ram.Close() })
	s := errstore.Wrap(ram, rules...)
	return s, backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false))
}

func read(off int64) backstore.Op {
	return backstore.Op{Kind: backstore.Read, Off: off, Data: make([]byte, page)}
}

// TestRules runs ops one after the other; bad holds the numbers of those that
// are to fail.
func TestRules(t *testing.T) {
	write := backstore.Op{Kind: backstore.Write, Data: make([]byte, page)}
	flush := backstore.Op{Kind: backstore.Flush}
	reads := []backstore.Kind{backstore.Read}
	for name, test := range map[string]struct {
		rules []errstore.Rule
		ops   []backstore.Op
		bad   []int
	}{
		"none":       {nil, []backstore.Op{read(0), write, flush}, nil},
		"all":        {[]errstore.Rule{{Err: errTest}}, []backstore.Op{read(0), write, flush}, []int{0, 1, 2}},
		"kind":       {[]errstore.Rule{{Kinds: reads, Err: errTest}}, []backstore.Op{read(0), write, flush}, []int{0}},
		"range":      {[]errstore.Rule{{Kinds: reads, Off: 2 * page, Len: 1, Err: errTest}}, []backstore.Op{read(page), read(page + 1), read(2 * page), read(3 * page)}, []int{1, 2}},
		"from":       {[]errstore.Rule{{Off: 2 * page, Err: errTest}}, []backstore.Op{read(page), read(5 * page), flush}, []int{1, 2}},
		"third":      {[]errstore.Rule{{After: 2, Times: 1, Err: errTest}}, []backstore.Op{read(0), read(0), read(0), read(0)}, []int{2}},
		"twice":      {[]errstore.Rule{{Times: 2, Err: errTest}}, []backstore.Op{read(0), read(0), read(0)}, []int{0, 1}},
		"first wins": {[]errstore.Rule{{Kinds: reads}, {Err: errTest}}, []backstore.Op{read(0), write}, []int{1}},
	} {
		for _, async := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				rules := append([]errstore.Rule(nil), test.rules...)
				for i := range rules {
					rules[i].Async = async
				}
				_, c := open(t, rules...)
				bad := map[int]bool{}
				for _, i := range test.bad {
					bad[i] = true
				}
				for i, op := range test.ops {
					if err := c.Do(op); errors.Is(err, errTest) != bad[i] {
						t.Errorf("op %d, %v: %v; expected it to fail: %v", i, op.Kind, err, bad[i])
					}
				}
			})
		}
	}
}

func TestSetRules(t *testing.T) {
	s, c := open(t, errstore.Rule{Err: errTest})
	s.SetRules()
	c.Must(t, read(0))
	s.SetRules(errstore.Rule{Err: errTest})
	if err := c.Do(read(0)); !errors.Is(err, errTest) {
		t.Errorf("read: %v, expected the error of the new rule", err)
	}
}

func TestShortTransfer(t *testing.T) {
	_, c := open(t, errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Done: 512, Err: errTest})
	data := bytes.Repeat([]byte{7}, page)
	if err := c.Do(backstore.Op{Kind: backstore.Write, Data: data}); !errors.Is(err, errTest) {
		t.Fatalf("write: %v", err)
	}
	want := append(bytes.Repeat([]byte{7}, 512), make([]byte, page-512)...)
	if !bytes.Equal(c.Read(t, 0, page), want) {
		t.Error("not exactly the first 512 bytes were written")
	}
}

func TestDelayAndAsyncEndLater(t *testing.T) {
	for name, rule := range map[string]errstore.Rule{
		"async": {Async: true}, "delay": {Delay: time.Microsecond}, "delayed error": {Delay: time.Microsecond, Err: errTest},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := open(t, rule)
			done := make(chan struct{})
			op := read(0)
			op.Done = func(*backstore.Op) { close(done) }
			now := true
			backstoretest.On(c.Loop, func() { now = c.Lane.TryNow(&op) || c.Lane.Submit(&op) })
			if now {
				t.Fatal("ended inside Submit")
			}
			if <-done; !errors.Is(op.Err, rule.Err) {
				t.Errorf("error %v, expected %v", op.Err, rule.Err)
			}
		})
	}
}

func TestHold(t *testing.T) {
	s, c := open(t, errstore.Rule{Hold: true})
	var ops [3]backstore.Op
	var running []<-chan struct{}
	for i := range ops {
		ops[i] = read(int64(i) * page)
		running = append(running, c.Go(&ops[i]))
	}
	backstoretest.On(c.Loop, func() {}) // all have been submitted
	if s.Held() != 3 {
		t.Fatalf("%d ops are held, expected 3", s.Held())
	}
	if n := s.Release(1); n != 1 {
		t.Fatalf("released %d, expected 1", n)
	}
	<-running[0]
	select {
	case <-running[1]:
		t.Fatal("an op ended that nobody released")
	default:
	}
	if n := s.Release(-1); n != 2 || s.Held() != 0 {
		t.Fatalf("released %d, %d are left; expected 2, 0", n, s.Held())
	}
	<-running[1]
	<-running[2]
}

// TestNothingIsHeldForEver: an op that comes while the rules are taken back is carried
// out, at once or by the Release that follows.
func TestNothingIsHeldForEver(t *testing.T) {
	s, c := open(t)
	for range 2000 {
		s.SetRules(errstore.Rule{Hold: true})
		ops := make([]backstore.Op, 100)
		var left sync.WaitGroup
		left.Add(len(ops))
		submitted := make(chan struct{})
		c.Loop.Post(evloop.Func(func() {
			defer close(submitted)
			for i := range ops {
				ops[i] = backstore.Op{Kind: backstore.Flush, Done: func(*backstore.Op) { left.Done() }}
				if c.Lane.Submit(&ops[i]) {
					left.Done()
				}
			}
		}))
		for s.Held() < 10 {
			runtime.Gosched()
		}
		s.SetRules()
		s.Release(-1)
		<-submitted
		if n := s.Held(); n > 0 {
			t.Fatalf("%d ops are held for ever", n)
		}
		left.Wait()
	}
}
