package tcp

import (
	"testing"

	"lunar/internal/bulk/keyed"
)

// TestWaitClosesFirst: a channel that is coming in while somebody else closes is waited for,
// and none comes in behind.
func TestWaitClosesFirst(t *testing.T) {
	key := keyed.NewKey()
	l, err := Listen("127.0.0.1:0", key)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	source, err := Dial(t.Context(), l.Address(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	sink, err := l.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	sink.mu.Lock() // as join has it
	go func() {
		sink.Wait()
		close(ended)
	}()
	select {
	case <-sink.Closed():
	case <-ended:
		t.Error("it did not wait for who comes in")
	}
	sink.Users.Add(1)
	sink.mu.Unlock()
	sink.Users.Done()
	<-ended
}
