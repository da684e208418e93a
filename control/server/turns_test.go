package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lunar/control"
	"lunar/internal/places"
	"lunar/internal/refusals"
)

// TestTurns: one request is worked on at a time, administrators come before others, and
// who asks seldom before who asks without end.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTurns()
		q.free = 1
		var order []string
		ask := func(name string, class places.Class) {
			go func() {
				mine := q.take(t.Context(), places.Holder{Class: class, Name: name})
				order = append(order, name) // one at a time
				mine.end()
			}()
			synctest.Wait()
		}
		first := q.take(t.Context(), places.Holder{Name: "first"})
		for range 3 {
			ask("flood", places.Proven)
		}
		ask("seldom", places.Proven)
		ask("admin", places.Known)
		if len(order) > 0 {
			t.Errorf("%v were worked on beside the first", order)
		}
		first.end()
		synctest.Wait()
		if found := strings.Join(order, " "); found != "admin flood seldom flood flood" {
			t.Errorf("found the order %q", found)
		}
		if q.free != 1 || len(q.last) > 0 || q.queue.Len() > 0 {
			t.Errorf("left: %+v", q)
		}
	})
}

// TestTurnsEnd: a request that takes long does not keep its turn, and one whose client has
// gone does not get any.
func TestTurnsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTurns()
		q.free = 1
		long := q.take(t.Context(), places.Holder{Name: "long"})
		gone, cancel := context.WithCancel(t.Context())
		go func() {
			if q.take(gone, places.Holder{Name: "gone"}) != nil {
				t.Error("a client that has gone has a turn")
			}
		}()
		synctest.Wait()
		cancel()
		begin := time.Now()
		q.take(t.Context(), places.Holder{Name: "next"}).end()
		if waited := time.Since(begin); waited != turnTime {
			t.Errorf("waited for %v, expected %v", waited, turnTime)
		}
		if long.end(); q.free != 1 {
			t.Errorf("found %d free turns", q.free)
		}
	})
}

// TestTurnsAreBounded: who finds no place is refused, and so is who loses it to an
// administrator.
func TestTurnsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTurns()
		q.free, q.bounds, q.time = 1, places.Bounds{Places: 2, PerHolder: 1}, time.Hour
		first := q.take(t.Context(), places.Holder{Name: "first"})
		refused := make(map[string]bool)
		ask := func(name string, class places.Class) {
			go func() {
				mine := q.take(t.Context(), places.Holder{Class: class, Name: name})
				refused[name] = mine == nil // one at a time
				mine.end()
			}()
			synctest.Wait()
		}
		ask("a", places.Proven)
		ask("b", places.Proven)
		ask("c", places.Proven)
		ask("admin", places.Known)
		first.end()
		synctest.Wait()
		if !refused["c"] || refused["a"] == refused["b"] || refused["admin"] {
			t.Errorf("refused: %v", refused)
		}
	})
}

// TestJobsWaitForTurns: a job has its place, and is not refused when it was begun.
func TestJobsWaitForTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTurns()
		q.free, q.bounds, q.time = 1, places.Bounds{}, time.Hour
		first, worked := q.take(t.Context(), places.Holder{Name: "first"}), false
		go func() {
			mine := q.take(context.WithValue(t.Context(), jobKey, &job{}), places.Holder{Name: "job"})
			worked = mine != nil
			mine.end()
		}()
		synctest.Wait()
		first.end()
		if synctest.Wait(); !worked || q.free != 1 {
			t.Errorf("a job was worked on: %v, found %d free turns", worked, q.free)
		}
	})
}

// TestTurnsForget: of those who do not wait any more, nothing is kept, whatever has become
// of them.
func TestTurnsForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTurns()
		q.free, q.bounds, q.time = 1, places.Bounds{Places: 2, PerHolder: 2}, time.Hour
		first := q.take(t.Context(), places.Holder{Name: "first"})
		for range 2 {
			go func() { q.take(t.Context(), places.Holder{Name: "other"}) }() // which ends with an hour
		}
		synctest.Wait()
		first.end() // one of others begins
		for range 2 {
			go func() { q.take(t.Context(), places.Holder{Class: places.Known, Name: "admin"}) }()
		}
		if synctest.Wait(); len(q.last) > 0 {
			t.Errorf("found %v of those who wait no more", q.last)
		}
	})
}

// turnedAPI is an API for somebody with the role.
func turnedAPI(q *turns, s Source, as control.Role) http.Handler {
	c := Config{Source: s, Refusals: &refusals.Counters{}, MaxFile: 1 << 20}
	a := &async{jobs: newJobs(time.Now)}
	mux := newAPI(c, http.NotFoundHandler(), &feed{}, a, q)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey, Caller{Kind: "token", Name: as.String(), Role: as})))
	})
}

// TestTurnsOfRequests: a request that has not come whole has no turn, a stream has none,
// and who finds no place is told when to come again.
func TestTurnsOfRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newTurns()
		q.free, q.bounds = 1, places.Bounds{}
		api := turnedAPI(q, fixed(sample()), control.Admin)
		ask := func() *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/status", nil))
			return w
		}
		body, half := newHalf(`{"name":"x","dryRun":true,`)
		go api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, control.ApplyPath, body))
		synctest.Wait()
		if w := ask(); w.Code != http.StatusOK {
			t.Errorf("beside half of a request: found %d %s", w.Code, w.Body)
		}
		half()
		synctest.Wait()
		mine := q.take(t.Context(), places.Holder{})
		if w := ask(); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), "ask again") {
			t.Errorf("without a place: found %d, %v, %s", w.Code, w.Header(), w.Body)
		}
		w := httptest.NewRecorder()
		api.ServeHTTP(w, httptest.NewRequest(http.MethodGet, control.EventsPath, nil))
		if w.Code != http.StatusNotFound { // this server has none
			t.Errorf("a stream without a turn: found %d", w.Code)
		}
		mine.end()
		if w := ask(); w.Code != http.StatusOK {
			t.Errorf("after it: found %d", w.Code)
		}
	})
}

// halfBody is one whose end does not come until it breaks off.
type halfBody struct {
	strings.Reader
	end chan struct{}
}

func newHalf(text string) (b *halfBody, breaksOff func()) {
	b = &halfBody{*strings.NewReader(text), make(chan struct{})}
	return b, func() { close(b.end) }
}

// Read implements io.Reader.
func (b *halfBody) Read(p []byte) (int, error) {
	if b.Len() > 0 {
		return b.Reader.Read(p)
	}
	<-b.end
	return 0, fmt.Errorf("broken off")
}
