package server

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lunar/control"
	"lunar/control/events"
)

// growing is a Source whose volume serves 100 reads each time that it is asked.
type growing struct {
	fixed
	asked *atomic.Uint64
}

func (g growing) Status() control.Status {
	s := sample()
	s.Volumes[0].IO = control.IO{Reads: 100 * g.asked.Add(1)}
	return s
}

// watched is a lookout with a clock that the test, and sleeping, moves.
func watched(s Source) (*lookout, *time.Time) {
	now := time.Unix(1e9, 0)
	l := newLookout(s, events.New(now))
	l.now = func() time.Time { return now }
	l.sleep = func(_ context.Context, d time.Duration) bool { now = now.Add(d); return true }
	return l, &now
}

// TestOverviewIsShared: one is made in a second, whoever asks; the first after a pause has
// its rates from a second of its own.
func TestOverviewIsShared(t *testing.T) {
	g := growing{fixed(sample()), &atomic.Uint64{}}
	l, now := watched(g)
	look := func() control.Overview {
		t.Helper()
		text, err := l.look(t.Context())
		var o control.Overview
		if err == nil {
			err = json.Unmarshal(text, &o)
		}
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := look(); o.Total.Reads != 100 || o.Interval != 1 || g.asked.Load() != 2 {
		t.Errorf("first: found %v reads in %v s, asked %d times", o.Total.Reads, o.Interval, g.asked.Load())
	}
	*now = now.Add(overviewTime - time.Nanosecond)
	var together sync.WaitGroup
	for range 20 {
		together.Go(func() { _, _ = l.look(context.Background()) })
	}
	together.Wait()
	if look(); g.asked.Load() != 2 {
		t.Errorf("within a second: the source was asked %d times, expected 2", g.asked.Load())
	}
	*now = now.Add(time.Second)
	for range 20 {
		together.Go(func() { _, _ = l.look(context.Background()) })
	}
	together.Wait()
	if o := look(); g.asked.Load() != 3 || o.Total.Reads < 50 || o.Total.Reads > 51 {
		t.Errorf("the next second: asked %d times, %v reads/s", g.asked.Load(), o.Total.Reads)
	}
	*now = now.Add(time.Hour)
	if o := look(); o.Interval != 1 || o.Total.Reads != 100 || g.asked.Load() != 5 {
		t.Errorf("after a pause: found %v reads in %v s, asked %d times", o.Total.Reads, o.Interval, g.asked.Load())
	}
}

// TestOverviewGoes: who goes while the first one is made takes nobody's.
func TestOverviewGoes(t *testing.T) {
	l, _ := watched(growing{fixed(sample()), &atomic.Uint64{}})
	sleep := l.sleep
	l.sleep = func(context.Context, time.Duration) bool { return false }
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.look(gone); err == nil {
		t.Error("found an overview, expected that who has gone gets none")
	}
	l.sleep = sleep
	text, err := l.look(t.Context())
	var o control.Overview
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil || o.Interval != 1 {
		t.Errorf("the next one: found rates of %v s, %v, expected those of a second", o.Interval, err)
	}
}

// TestOverviewIsServed: the answer fits its description, and tells what events there were.
func TestOverviewIsServed(t *testing.T) {
	stream := events.New(time.Now())
	stream.Publish(control.Event{Kind: "login", Text: "session opened"})
	socket := t.TempDir() + "/" + control.SocketName
	start(t, Config{Socket: socket, Source: fixed(sample()), Events: stream})
	c, err := control.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	o, err := c.Overview(t.Context())
	if err != nil || len(o.Events) != 1 || o.Events[0].Text != "session opened" || len(o.Volumes) != 1 || len(o.Initiators) != 1 {
		t.Errorf("found %+v, %v", o, err)
	}
	raw, err := c.Raw(t.Context(), control.OverviewPath)
	registry := described(t)
	if err != nil {
		t.Fatal(err)
	}
	if problems := against(t, registry, registry.Map()["Overview"], raw); len(problems) > 0 {
		t.Errorf("%v in\n%s", problems, raw)
	}
	if needs, known := roleOf("get-overview"); !known || needs != control.Read {
		t.Errorf("found role %v", needs)
	}
}

// TestPage: the web page's files are served to whoever comes over TLS, if they are to be,
// with headers that keep it to itself; all else still wants a token.
func TestPage(t *testing.T) {
	r := serveRemote(t)
	if got := r.ask(t, http.MethodGet, "/page/", "", ""); got != http.StatusUnauthorized {
		t.Errorf("off: found %d", got)
	}
	r.access.Port.Page = true
	if err := r.SetAccess(r.access); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/": http.StatusOK, "/page/": http.StatusOK, "/page/page.js": http.StatusOK, "/page/lit-html.js": http.StatusOK, "/page/none.js": http.StatusUnauthorized, "/page": http.StatusUnauthorized, "/v1/overview": http.StatusUnauthorized} {
		if got := r.ask(t, http.MethodGet, path, "", ""); got != want {
			t.Errorf("%s: found %d, expected %d", path, got, want)
		}
	}
	if got := r.ask(t, http.MethodPost, "/page/", "", ""); got != http.StatusUnauthorized {
		t.Errorf("POST: found %d", got)
	}
	if got := r.ask(t, http.MethodGet, control.OverviewPath, "", r.tokens[control.Read]); got != http.StatusOK {
		t.Errorf("with a token to read: found %d", got)
	}
}
