package daemon

import (
	"context"
	"strings"
	"testing"

	"lunar/internal/evloop"
)

// TestAlive: an event thread that does not turn is named, one that turns again is not, and
// however many ask meanwhile, the thread gets one task.
func TestAlive(t *testing.T) {
	var v vitals
	var loops []*evloop.Loop
	for _, name := range []string{"well", "hung"} {
		l, err := evloop.New(evloop.Config{Name: name, CPU: -1, Node: -1})
		if err != nil {
			t.Fatal(err)
		}
		go l.Run()
		defer l.Stop()
		loops = append(loops, l)
	}
	v.watch(loops)
	if err := v.Alive(t.Context()); err != nil {
		t.Errorf("found %v", err)
	}
	release, held := make(chan struct{}), make(chan struct{})
	loops[1].Post(evloop.Func(func() { close(held); <-release }))
	<-held
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	before := loops[1].Stats().Handovers
	for range 100 {
		err := v.Alive(gone)
		if err == nil || !strings.Contains(err.Error(), "event thread hung has not taken a turn") {
			t.Fatalf("found %v", err)
		}
	}
	v.ends()
	if err := v.Alive(gone); err != nil {
		t.Errorf("while it stops: %v", err)
	}
	v.ending = false
	close(release)
	if err := v.Alive(t.Context()); err != nil {
		t.Errorf("found %v", err)
	}
	if n := loops[1].Stats().Handovers - before; n > 3 { // with the one that held it
		t.Errorf("found %d tasks, expected one question, one more, and what held it", n)
	}
}
