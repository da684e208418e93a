package server

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
	"lunar/internal/places"
)

// seats are the places of answers that go on until their reader has seen enough. Nobody is
// turned away while there is room. Then who has more than a share of them loses the newest
// of his to who has less, and others lose theirs to administrators.
type seats struct {
	bounds places.Bounds

	mu    sync.Mutex
	table places.Table[*seat]
}

// seat is one of the places. It is to be left once.
type seat struct {
	of   *seats
	lost chan struct{}            // closed when it is somebody else's
	left chan struct{}            // closed when its holder has left
	to   *http.ResponseController // under seats.mu; nil: nothing is sent yet
}

func newSeats(all, share int) *seats {
	return &seats{bounds: places.Bounds{Places: all, PerHolder: share}}
}

// take gives somebody a place; nil: there is none. Who loses it has left when take returns.
func (s *seats) take(c Caller) *seat {
	t := &seat{of: s, lost: make(chan struct{}), left: make(chan struct{})}
	s.mu.Lock()
	gone, displaced, ok := s.table.Take(t, c.seated(), s.bounds, 0, time.Now())
	s.mu.Unlock()
	if !ok {
		return nil
	}
	if displaced {
		gone.end()
	}
	return t
}

// yields ends what is told to somebody, if it was an administrator's no more than the
// caller is, and waits until it has ended.
func (t *seat) yields(c Caller) {
	t.of.mu.Lock()
	h, held := t.of.table.Holder(t)
	yes := held && h.Class < c.seated().Class
	if yes {
		t.of.table.Release(t)
	}
	t.of.mu.Unlock()
	if yes {
		t.end()
	}
}

// documents describes an answer that goes on with one document after the other.
func documents[T any](api huma.API, mediaType, what string) map[string]*huma.Response {
	t := reflect.TypeFor[T]()
	schema := api.OpenAPI().Components.Schemas.Schema(t, true, t.Name())
	return map[string]*huma.Response{"200": {Description: what, Content: map[string]*huma.MediaType{mediaType: {Schema: schema}}}}
}

// lostTime is how long who loses a place may take to say so to his reader.
const lostTime = time.Second

// end ends what is sent to who has lost the place, and waits until it has.
func (t *seat) end() {
	close(t.lost)
	late := time.AfterFunc(lostTime, func() {
		t.of.mu.Lock()
		defer t.of.mu.Unlock()
		if t.to != nil {
			_ = t.to.SetWriteDeadline(time.Now()) // it may have ended meanwhile
		}
	})
	defer late.Stop()
	<-t.left
}

// over says why whoever has the place is told nothing more; empty: it goes on.
func (t *seat) over(ctx context.Context) string {
	select {
	case <-t.lost:
		return "the place is somebody else's now, who has fewer or is an administrator"
	default:
	}
	if err := standingOf(ctx).revoked(); err != nil {
		return err.Error()
	}
	return ""
}

// sends says to whom something is sent from now on.
func (t *seat) sends(to *http.ResponseController) {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.to = to
}

func (t *seat) leave() {
	t.of.mu.Lock()
	t.of.table.Release(t)
	t.of.mu.Unlock()
	close(t.left)
}

// seated is whose places a caller has: his, wherever he asks from.
func (c Caller) seated() places.Holder {
	h := places.Holder{Class: places.Proven, Name: c.identity()}
	if c.Role == control.Admin {
		h.Class = places.Known
	}
	return h
}
