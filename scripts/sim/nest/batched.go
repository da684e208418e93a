package nest

import (
	"lunar/scheduler/batch"
	"lunar/scripts/sim/gather"
	"lunar/scripts/sim/kernel"
	"lunar/scripts/sim/net"
)

// batched gathers the responses of a thread by Tyche's level.
type batched struct {
	kernel  *kernel.Kernel
	point   gather.Point
	waiting []*Request
	planned int64 // ns: the deadline that is planned
	posts   int64
	sent    int64
}

func newBatched(k *kernel.Kernel) *batched {
	return &batched{kernel: k, point: gather.New(batch.Config{Mode: batch.Adaptive, Interval: 16e6, Delay: batch.ServerDelay}, 0)}
}

func (b *batched) now() int64 { return b.kernel.Now() / net.Nanosecond }

// add has a response wait for others. Urgent and large ones do not.
func (b *batched) add(r *Request) {
	b.point.Completed(int(r.Bytes), b.now())
	if !b.point.Gathers(int(r.Bytes), r.Tag == Urgent) {
		r.answer()
		return
	}
	b.waiting = append(b.waiting, r)
	b.point.Add(true, b.now())
	b.post()
}

// post sends what has to leave, and plans when the rest has to.
func (b *batched) post() {
	if b.point.Ready(b.now()) > 0 {
		b.posts++
		b.sent += int64(len(b.waiting))
		b.point.Sent(len(b.waiting), 0, b.now())
		for _, r := range b.waiting {
			r.answer()
		}
		b.waiting = b.waiting[:0]
		return
	}
	if at, ok := b.point.Deadline(); ok && at != b.planned {
		b.planned = at
		b.kernel.At(max(b.kernel.Now(), at*net.Nanosecond), kernel.BatchTimer, kernel.Call(b.post), 0)
	}
}
