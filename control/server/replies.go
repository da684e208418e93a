package server

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"
)

// maxAnswers bounds the answers that are being sent at a time. Beyond it the oldest is
// broken off, unless it is young: its reader is slow.
const (
	maxAnswers  = 32
	answerGrace = time.Second
)

// answers has answers made before they are sent, so that who is slow to read one holds
// nothing but its text.
type answers struct {
	now func() time.Time

	mu      sync.Mutex
	sending []*reply // oldest first
}

// reply is a response that is made in memory.
type reply struct {
	header http.Header
	status int
	body   bytes.Buffer
	shared []byte    // goes behind body, and is not changed
	began  time.Time // to be sent
	stop   func()    // breaks it off
}

// Header implements http.ResponseWriter.
func (a *reply) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *reply) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write implements http.ResponseWriter.
func (a *reply) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// first makes next's answers before they are sent.
func (s *answers) first(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if endless(r) {
			next.ServeHTTP(w, r)
			return
		}
		a := &reply{header: w.Header()}
		if r.ContentLength == 0 {
			working(r, true)
		} else {
			r.Body = &awaitedBody{r.Body, r}
		}
		next.ServeHTTP(a, r)
		control := http.NewResponseController(w)
		a.stop = func() { control.SetWriteDeadline(time.Now()) } //nolint:errcheck // it may have ended meanwhile
		working(r, false)
		s.begin(a)
		defer s.end(a)
		if a.status != 0 {
			w.WriteHeader(a.status)
		}
		w.Write(a.body.Bytes()) //nolint:errcheck // the client has gone
		w.Write(a.shared)       //nolint:errcheck // the client has gone
		control.Flush()         //nolint:errcheck // the client has gone
	})
}

// awaitedBody says that the request is being worked on once all of it has come.
type awaitedBody struct {
	io.ReadCloser
	request *http.Request
}

// Read implements io.Reader.
func (b *awaitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		working(b.request, true)
	}
	return n, err
}

func (s *answers) begin(a *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.began = s.now()
	if len(s.sending) >= maxAnswers && a.began.Sub(s.sending[0].began) >= answerGrace {
		s.sending[0].stop()
		s.sending = s.sending[1:]
	}
	s.sending = append(s.sending, a)
}

func (s *answers) end(a *reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, o := range s.sending {
		if o == a {
			s.sending = append(s.sending[:i], s.sending[i+1:]...)
			return
		}
	}
}
