package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"lunar/cluster"
)

// piped is how a made member is reached, in virtual time.
type piped struct {
	net.Listener
	conns  chan net.Conn
	closed chan struct{}
}

// Accept implements net.Listener.
func (p *piped) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *piped) Close() error { close(p.closed); return nil }

// members are made ones, of which each answers as it is told. They are for virtual time: a busy machine
// needs more for an answer than an attempt has.
func members(t *testing.T, answers ...http.HandlerFunc) *State {
	t.Helper()
	reached, urls := map[string]*piped{}, []string(nil)
	for i, answer := range answers {
		p, name := &piped{conns: make(chan net.Conn), closed: make(chan struct{})}, fmt.Sprint("member", i)
		server := &http.Server{Handler: answer}
		go server.Serve(p) //nolint:errcheck // it ends with the test
		t.Cleanup(func() { server.Close() })
		reached[name+":80"], urls = p, append(urls, "http://"+name)
	}
	s, err := Open(Options{Members: urls, Patience: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.c.http.Transport.(*http.Transport).DialContext = func(_ context.Context, _, at string) (net.Conn, error) {
		here, there := net.Pipe()
		reached[at].conns <- there
		return here, nil
	}
	return s
}

// says answers with a status and a text, and counts.
func says(asked *atomic.Int32, status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}
}

const committed = `{"header":{"revision":"7"},"succeeded":true}`

// hangs takes a request and never answers.
func hangs(asked *atomic.Int32) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then a server sees that its client is gone
		asked.Add(1)
		<-r.Context().Done()
	}
}

// TestOutcomes: a change is asked of another member only if nothing can have come of it,
// and what is known of it is what is said.
func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		text   string
		err    error // nil: the second member is asked, and does it
	}{
		"no leader":         {503, `{"code":14,"message":"etcdserver: no leader"}`, nil},
		"older gateway":     {503, `{"error":"etcdserver: no leader","code":14,"message":"etcdserver: no leader"}`, nil},
		"of a stream":       {503, `{"error":{"code":14,"message":"etcdserver: no leader"}}`, nil},
		"learner":           {400, `{"code":9,"message":"etcdserver: rpc not supported for learner"}`, nil},
		"full":              {429, `{"code":8,"message":"etcdserver: mvcc: database space exceeded"}`, cluster.ErrFull},
		"no lease":          {404, `{"code":5,"message":"etcdserver: requested lease not found"}`, cluster.ErrNoLease},
		"conflict":          {200, `{"header":{"revision":"7"}}`, cluster.ErrConflict},
		"timeout":           {503, `{"code":14,"message":"etcdserver: request timed out"}`, cluster.ErrUnknown},
		"leader changed":    {503, `{"code":14,"message":"etcdserver: leader changed"}`, cluster.ErrUnknown},
		"somebody between":  {502, `Bad Gateway`, cluster.ErrUnknown},
		"half of an answer": {200, `{"header":{"revi`, cluster.ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var first, second atomic.Int32
				s := members(t, says(&first, c.status, c.text), says(&second, 200, committed))
				at, err := s.Commit(t.Context(), nil, nil)
				if !errors.Is(err, c.err) || c.err == nil && at != 7 {
					t.Fatalf("found revision %d, error %v, expected %v", at, err, c.err)
				}
				if again := second.Load() == 1; first.Load() != 1 || again != (c.err == nil) {
					t.Fatalf("found %d and %d requests", first.Load(), second.Load())
				}
			})
		})
	}
}

// TestSentOnce: a change whose answer does not come is asked of nobody else; a question is.
func TestSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first, second atomic.Int32
		s := members(t, hangs(&first), says(&second, 200, committed))
		if _, err := s.Commit(t.Context(), nil, nil); !errors.Is(err, cluster.ErrUnknown) || second.Load() > 0 {
			t.Fatalf("found %v and %d more requests, expected ErrUnknown and none", err, second.Load())
		}
		first.Store(0)
		s = members(t, hangs(&first), says(&second, 200, `{"header":{"revision":"9"}}`))
		if _, at, err := s.Get(t.Context(), "k"); at != 9 || err != nil || first.Load() != 1 {
			t.Fatalf("found revision %d, error %v, %d requests to who hangs", at, err, first.Load())
		}
	})
}

// TestNobody: where nobody listens nothing was sent, which is no unknown outcome.
func TestNobody(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	s, err := Open(Options{Members: []string{closed.URL}, Patience: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Commit(t.Context(), nil, nil)
	if !errors.Is(err, cluster.ErrNoQuorum) || errors.Is(err, cluster.ErrUnknown) {
		t.Fatalf("found %v, expected ErrNoQuorum", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Get(ctx, "k"); !errors.Is(err, cluster.ErrNoQuorum) || !errors.Is(err, context.Canceled) {
		t.Fatalf("found %v, expected ErrNoQuorum and Canceled", err)
	}
}

// TestNoQuorumOnce: who has no leader says so, and it is told once.
func TestNoQuorumOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first atomic.Int32
		s := members(t, says(&first, 503, `{"code":14,"message":"etcdserver: no leader"}`))
		_, _, err := s.Get(t.Context(), "k")
		if !errors.Is(err, cluster.ErrNoQuorum) || strings.Count(err.Error(), cluster.ErrNoQuorum.Error()) != 1 {
			t.Errorf("found %v, expected ErrNoQuorum once", err)
		}
	})
}

// TestRanges: prefixes as etcd has them, also those whose last byte has no successor.
func TestRanges(t *testing.T) {
	for prefix, want := range map[string]string{"a": "a b", "": "\x00 \x00", "a\xff": "a\xff b", "\xff": "\xff \x00", "/x/": "/x/ /x0"} {
		if key, end := within(prefix); string(key)+" "+string(end) != want {
			t.Errorf("%q: found %q to %q, expected %q", prefix, key, end, want)
		}
	}
}

// TestOlderBackup: a Watch from a revision that the state does not have, since it was restored,
// ends: it would be silent until there is one.
func TestOlderBackup(t *testing.T) {
	for at, want := range map[int]error{6: cluster.ErrCompacted, 9: nil} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			s := members(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if r.URL.Path != "/v3/watch" {
					fmt.Fprintf(w, `{"header":{"revision":"%d"}}`, at)
					return
				}
				fmt.Fprint(w, `{"result":{"header":{"revision":"6"},"created":true}}`, "\n")
				if at > 6 { // the member was behind
					fmt.Fprint(w, `{"result":{"header":{"revision":"9"},"events":[{"kv":{"key":"aw==","mod_revision":"9"}}]}}`, "\n")
				}
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			})
			if b := <-s.Watch(ctx, "k", 8); !errors.Is(b.Err, want) || want == nil && b.Revision != 9 {
				t.Errorf("state at %d: found %+v, expected error %v", at, b, want)
			}
			cancel()
		})
	}
}
