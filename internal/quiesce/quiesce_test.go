package quiesce

import (
	"testing"

	"go.uber.org/goleak"

	"lunar/internal/evloop"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newLoop(t *testing.T) *evloop.Loop {
	t.Helper()
	loop, err := evloop.New(evloop.Config{Name: "test", CPU: -1, Node: -1})
	if err != nil {
		t.Fatal(err)
	}
	go loop.Run()
	t.Cleanup(loop.Stop)
	return loop
}

// on runs f on the loop's thread and waits for it.
func on(loop *evloop.Loop, f func()) {
	done := make(chan struct{})
	loop.Post(evloop.Func(func() { f(); close(done) }))
	<-done
}

// wait starts a Wait and returns when it has asked all counters.
func wait(s *Counters, loops ...*evloop.Loop) <-chan struct{} {
	ended := make(chan struct{})
	started := make(chan struct{})
	go func() {
		defer close(ended)
		s.turning.Lock()
		all := s.turn()
		s.turning.Unlock()
		close(started)
		for _, passed := range all {
			<-passed
		}
	}()
	<-started
	for _, l := range loops {
		on(l, func() {})
	}
	return ended
}

func over(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestOnlyWhatHadEnteredIsWaitedFor: what had entered is waited for, what comes later is not.
func TestOnlyWhatHadEnteredIsWaitedFor(t *testing.T) {
	var s Counters
	var counters [2]Counter
	loops := []*evloop.Loop{newLoop(t), newLoop(t)}
	for i := range counters {
		s.Add(&counters[i], loops[i])
	}
	s.Wait() // nothing inside

	for range 3 { // the eras take turns
		var old [2]Era
		for i := range counters {
			on(loops[i], func() { old[i] = counters[i].Enter(); counters[i].Exit(counters[i].Enter()) })
		}
		ended := wait(&s, loops...)
		var later Era
		on(loops[0], func() { later = counters[0].Enter() })
		on(loops[0], func() { counters[0].Exit(old[0]) })
		if over(ended) {
			t.Fatal("an operation on the other thread was not waited for")
		}
		on(loops[1], func() { counters[1].Exit(old[1]) })
		<-ended
		on(loops[0], func() { counters[0].Exit(later) })
	}
}

// TestRemove: a gate that goes is not waited for.
func TestRemove(t *testing.T) {
	var s Counters
	var c Counter
	loop := newLoop(t)
	s.Add(&c, loop)
	on(loop, func() { c.Enter() })
	ended := wait(&s, loop)
	s.Remove(&c)
	<-ended
	s.Wait()
}
