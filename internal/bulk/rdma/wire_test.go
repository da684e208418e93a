package rdma

import (
	"runtime/debug"
	"testing"

	"lunar/iser/verbs/fake"
)

// writer is a user that writes a message when it hears of the end, as a stream may until then.
type writer struct {
	wire  *wire
	fault any // of that
}

func (u *writer) attach(w *wire) { u.wire = w }
func (u *writer) arrived([]byte) {}
func (u *writer) sent(uint64)    {}
func (u *writer) beat()          {}

func (u *writer) ended(error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { u.fault = recover() }()
	u.wire.place(0)[0] = 1
}

// TestMemoryUntilTheEndIsTold: who has not heard of a wire's end has memory for messages.
func TestMemoryUntilTheEndIsTold(t *testing.T) {
	h := newHosts(t, fake.Options{})
	e, err := start(h.from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.finish()
		<-e.ended
	})
	u := &writer{}
	if err := (&Source{engine: e, to: at}).connect(t.Context(), u, streamShape, controlChannel); err != nil {
		t.Fatal(err)
	}
	u.wire.finish()
	if err := e.do(func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if u.fault != nil {
		t.Errorf("found %v", u.fault)
	}
}

// TestBeatsLeaveTheLastCredit: when neither side reads, beats of both take no credit without
// which neither could give another one any more.
func TestBeatsLeaveTheLastCredit(t *testing.T) {
	_, client, _ := streams(t)
	client.mu.Lock()
	client.credits, client.owed = 1, 0
	client.mu.Unlock()
	client.beat()
	client.mu.Lock()
	defer client.mu.Unlock()
	if client.credits != 1 {
		t.Error("the last credit is spent for nothing")
	}
}
