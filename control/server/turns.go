package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"lunar/internal/places"
)

// turnTime is for how long a request has a turn: one that takes longer mostly waits.
const turnTime = 20 * time.Millisecond

// waitingTurns bound the requests that wait for a turn. Administrators displace others.
var waitingTurns = places.Bounds{Places: 64, PerHolder: 32}

// turns bound how many requests are worked on at a time, however many clients ask. An event
// thread that wakes up shares its CPU with each thread that works for the API, and the
// collector stops all of these. Administrators come first, then whoever was served least
// lately.
type turns struct {
	time   time.Duration
	bounds places.Bounds

	mu      sync.Mutex
	free    int
	queue   places.Table[*turn]
	waiting []*turn // oldest first
	served  uint64
	last    map[places.Holder]uint64 // when those who wait were served last
}

// newTurns has a quarter of the CPUs for requests.
func newTurns() *turns {
	return &turns{time: turnTime, bounds: waitingTurns, free: max(1, runtime.NumCPU()/4), last: map[places.Holder]uint64{}}
}

// turn is that of a request.
type turn struct {
	of      *turns
	holder  places.Holder
	job     bool          // it has its place among jobs, and was promised to be worked on
	begins  chan struct{} // closed when it does, or never will
	refused bool          // before begins is closed: others have its place
	over    sync.Once
}

// take waits for a turn, which is to be ended. It is nil if too many wait, or ctx has ended.
func (q *turns) take(ctx context.Context, h places.Holder) *turn {
	t := &turn{of: q, holder: h, job: jobOf(ctx) != nil, begins: make(chan struct{})}
	if !q.enter(t) {
		return nil
	}
	select {
	case <-t.begins:
	case <-ctx.Done():
		if q.leave(t) {
			return nil
		}
		<-t.begins
	}
	if t.refused {
		return nil
	}
	return t
}

// enter begins a turn, or puts it into the queue. It reports whether there was a place.
func (q *turns) enter(t *turn) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.free > 0 {
		q.free--
		q.begin(t)
		return true
	}
	if t.job {
		q.waiting = append(q.waiting, t)
		return true
	}
	lost, displaced, ok := q.queue.Take(t, t.holder, q.bounds, 0, time.Now())
	if displaced {
		q.remove(slices.Index(q.waiting, lost))
		lost.refused = true
		close(lost.begins)
	}
	if ok {
		q.waiting = append(q.waiting, t)
	}
	return ok
}

// leave reports whether the turn was waiting, which it is not any more.
func (q *turns) leave(t *turn) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, t)
	if i >= 0 {
		q.remove(i)
	}
	return i >= 0
}

// remove takes one out of the queue. The caller has q.mu.
func (q *turns) remove(i int) *turn {
	t := q.waiting[i]
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if q.queue.Release(t); q.queue.Count(t.holder) == 0 {
		delete(q.last, t.holder)
	}
	return t
}

// begin lets a turn begin. The caller has q.mu.
func (q *turns) begin(t *turn) {
	time.AfterFunc(q.time, t.end)
	close(t.begins)
}

// next is the index of who comes first of those who wait. The caller has q.mu.
func (q *turns) next() int {
	first := 0
	for i, t := range q.waiting {
		f := q.waiting[first].holder
		if t.holder.Class > f.Class || t.holder.Class == f.Class && q.last[t.holder] < q.last[f] {
			first = i
		}
	}
	return first
}

// end ends the turn, also before the request has ended: it waits for others. A nil turn
// has none.
func (t *turn) end() {
	if t == nil {
		return
	}
	t.over.Do(func() {
		q := t.of
		q.mu.Lock()
		defer q.mu.Unlock()
		if len(q.waiting) == 0 {
			q.free++
			return
		}
		begun := q.remove(q.next())
		q.served++
		if q.queue.Count(begun.holder) > 0 {
			q.last[begun.holder] = q.served
		}
		q.begin(begun)
	})
}

// turnOf is that of a request; nil: it has none.
func turnOf(ctx context.Context) *turn {
	t, _ := ctx.Value(turnKey).(*turn)
	return t
}

// middleware gives a request a turn once all of it has come, until its answer is made.
// Answers without an end, which mostly wait, have none.
func (q *turns) middleware(api huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		r, _ := humago.Unwrap(ctx)
		if endless(r) {
			next(ctx)
			return
		}
		if op := ctx.Operation(); op.RequestBody != nil {
			r.Body = arrived(r.Body, op.MaxBodyBytes)
		}
		t := q.take(r.Context(), callerOf(r.Context()).seated())
		if t == nil {
			ctx.SetHeader("Retry-After", "1")
			_ = huma.WriteErr(api, ctx, http.StatusServiceUnavailable, // the client may have gone
				fmt.Sprintf("found %d requests that wait, expected at most that, and at most %d of one client; ask again in a second", q.bounds.Places, q.bounds.PerHolder))
			return
		}
		defer t.end()
		next(huma.WithValue(ctx, turnKey, t))
	}
}

// arrived reads a body that has at most so many bytes, or fails as it does.
func arrived(body io.ReadCloser, most int64) io.ReadCloser {
	defer body.Close()
	text, err := io.ReadAll(io.LimitReader(body, most+1))
	if err != nil {
		return io.NopCloser(io.MultiReader(bytes.NewReader(text), broken{err}))
	}
	return io.NopCloser(bytes.NewReader(text))
}

// broken is what is left of a body that did not come.
type broken struct{ err error }

// Read implements io.Reader.
func (b broken) Read([]byte) (int, error) { return 0, b.err }
