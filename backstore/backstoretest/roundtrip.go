package backstoretest

import "lunar/backstore"

// RoundTrip is an op that goes from the caller's goroutine through the client's loop
// and back without memory of its own: for counting allocations and for benchmarks.
type RoundTrip struct {
	Op     backstore.Op
	client *Client
	done   chan struct{}
}

// NewRoundTrip returns one for n bytes in memory of its own.
func NewRoundTrip(c *Client, kind backstore.Kind, n int) *RoundTrip {
	r := &RoundTrip{client: c, done: make(chan struct{}, 1)}
	r.Op = backstore.Op{Kind: kind, Len: int64(n), Data: Buffer(n)}
	r.Op.Done = func(*backstore.Op) { r.done <- struct{}{} }
	return r
}

// Run implements evloop.Task.
func (r *RoundTrip) Run() {
	if r.client.Lane.TryNow(&r.Op) || r.client.Lane.Submit(&r.Op) {
		r.done <- struct{}{}
	}
}

// Do sends the op and waits for its end.
func (r *RoundTrip) Do() {
	r.client.Loop.Post(r)
	<-r.done
}
