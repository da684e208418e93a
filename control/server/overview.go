package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"lunar/control"
	"lunar/control/events"
	"lunar/control/overview"
)

const (
	// overviewTime is how old an overview becomes before there is another one: what is
	// shown then are the rates of about that time.
	overviewTime = time.Second
	// overviewStale is how long ago the state may be that rates are taken of.
	overviewStale = 5 * time.Second
	// overviewEvents is how many of the last events an overview has.
	overviewEvents = 50
)

// lookout makes overviews for all who watch, one each overviewTime, however many ask: the
// first who comes then makes it, and whoever comes meanwhile gets the same. Nothing is done
// while nobody asks.
type lookout struct {
	source Source
	stream *events.Stream // nil: there are no events
	now    func() time.Time
	sleep  func(context.Context, time.Duration) bool // false: ctx has ended

	turn   chan struct{} // holds one while one is made
	before *overview.Snapshot
	made   time.Time
	text   []byte
}

func newLookout(s Source, stream *events.Stream) *lookout {
	return &lookout{source: s, stream: stream, now: time.Now, turn: make(chan struct{}, 1),
		sleep: func(ctx context.Context, d time.Duration) bool { return pause(ctx.Done(), d) }}
}

// OverviewAnswer is an overview as text, which is made once for all who ask. It is exported
// for the reflection of huma.
type OverviewAnswer struct {
	Type string `header:"Content-Type"`
	Body []byte
}

// add adds the operation to an API.
func (l *lookout) add(api huma.API) {
	op := huma.Operation{OperationID: "get-overview", Method: http.MethodGet, Path: control.OverviewPath, Summary: "What there is to see, as rates, with answers in words",
		Responses: documents[control.Overview](api, "application/json", "It is made once a second for all who ask; the first one after a pause takes a second.")}
	huma.Register(api, op, func(ctx context.Context, _ *struct{}) (*OverviewAnswer, error) {
		text, err := l.look(ctx)
		return &OverviewAnswer{"application/json", text}, err
	})
}

// look returns the overview of now.
func (l *lookout) look(ctx context.Context) ([]byte, error) {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l.text != nil && l.now().Sub(l.made) < overviewTime {
		return l.text, nil
	}
	if l.before == nil || l.now().Sub(l.before.At) > overviewStale {
		l.text, l.before = nil, l.snapshot()
	}
	if rest := overviewTime - l.now().Sub(l.before.At); rest > 0 && !l.sleep(ctx, rest) {
		return nil, ctx.Err()
	}
	now := l.snapshot()
	text, err := json.Marshal(overview.Of(now, l.before))
	if err != nil {
		return nil, err
	}
	l.text, l.before, l.made = text, now, now.At
	return text, nil
}

func (l *lookout) snapshot() *overview.Snapshot {
	s := &overview.Snapshot{At: l.now(), Status: l.source.Status(), Latencies: l.source.Latency(), QoS: l.source.Rules()}
	if l.stream != nil {
		s.Events = l.stream.Last(overviewEvents)
	}
	return s
}
