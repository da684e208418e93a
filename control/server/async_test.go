package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lunar/control"
	"lunar/internal/eventually"
	"lunar/internal/loglimit"
)

// TestAsyncAsSync: each operation that changes something is refused to the same roles as a
// job as it is without, and a job ends as the request does.
func TestAsyncAsSync(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	a := &async{jobs: newJobs(time.Now), log: quiet, trail: NewTrail(quiet), journal: loglimit.New(quiet, time.Now)}
	mux := newAPI(Config{Source: fixed(sample()), MaxFile: 1 << 20}, http.NotFoundHandler(), &feed{}, a, newTurns())
	ask := func(role control.Role, method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey, Caller{Kind: "token", Name: role.String(), Address: "192.0.2.1:1", Role: role})))
		return w
	}
	tried := 0
	for _, o := range operations(t) {
		if o.method == http.MethodGet || neverJobs[o.id] {
			continue
		}
		for _, role := range append(control.Roles(), control.NoRole) {
			tried++
			want, got := ask(role, o.method, o.path, bodies[o.id]), ask(role, o.method, o.path+"?async=true", bodies[o.id])
			if want.Code == http.StatusForbidden {
				if got.Code != want.Code || got.Body.String() != want.Body.String() {
					t.Errorf("%s %s as %v: found %d %s, expected %d", o.method, o.path, role, got.Code, got.Body, want.Code)
				}
				continue
			}
			var j control.Job
			if err := json.Unmarshal(got.Body.Bytes(), &j); err != nil || got.Code != http.StatusAccepted || got.Header().Get("Location") != control.JobAt(j.ID) {
				t.Fatalf("%s %s as %v: found %d %s", o.method, o.path, role, got.Code, got.Body)
			}
			eventually.Holds(t, "the job has ended", func() bool {
				return json.Unmarshal(ask(role, http.MethodGet, control.JobAt(j.ID), "").Body.Bytes(), &j) == nil && j.Ended != nil
			})
			if j.Status != want.Code || strings.TrimSpace(want.Body.String()) != string(j.Result) || j.By != "token "+role.String()+" at 192.0.2.1:1" {
				t.Errorf("%s %s as %v: found %+v %s, expected %d %s", o.method, o.path, role, j.By, j.Result, want.Code, want.Body)
			}
		}
	}
	if tried < 100 {
		t.Errorf("found %d requests", tried)
	}
	for _, path := range []string{"/v1/status", control.EventsPath} {
		if got := ask(control.Read, http.MethodHead, path+"?async=true", ""); got.Code == http.StatusAccepted {
			t.Errorf("HEAD %s: found a job of what only reads", path)
		}
	}
	for path, body := range map[string]string{control.ApplyPath + "?async=yes": "{}", control.KickPath + "?async=true": strings.Repeat(" ", maxBody+1)} {
		if got := ask(control.Admin, http.MethodPost, path, body); got.Code != http.StatusUnprocessableEntity && got.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: found %d", path, got.Code)
		}
	}
}

// held is a Source whose changes are held before they begin, and then until they may end.
type held struct {
	fixed
	asked, begin, begun, end chan struct{}
}

func (h *held) Apply(by Asker, f control.File) (control.Applied, error) {
	if f.Text == "fault" {
		panic("fault of the test")
	}
	h.asked <- struct{}{}
	<-h.begin
	if err := by.Begin(); err != nil {
		return control.Applied{}, err
	}
	ended := by.Awaits(func() control.Progress { return control.Progress{What: "the test"} })
	defer ended()
	h.begun <- struct{}{}
	<-h.end
	return control.Applied{Changes: []string{"x: new"}, Warnings: []string{}, Impacts: []control.Impact{}}, nil
}

// heldServer serves one, and returns a client and the log.
func heldServer(t *testing.T) (*held, *Server, *control.Client, *eventually.Output) {
	t.Helper()
	h := &held{fixed(sample()), make(chan struct{}, 1), make(chan struct{}), make(chan struct{}, 1), make(chan struct{})}
	log := &eventually.Output{}
	socket := filepath.Join(t.TempDir(), control.SocketName)
	s := start(t, Config{Socket: socket, Source: h, MaxFile: 1 << 20, Logger: slog.New(slog.NewTextHandler(log, nil))})
	c, err := control.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return h, s, c, log
}

func startApply(t *testing.T, c *control.Client, text string) control.Job {
	t.Helper()
	j, err := c.StartApply(t.Context(), control.File{Name: "f", Text: text})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestJobOutlivesItsClient: it goes on without the client, tells how far it is, is noted
// when it ends, with who asked, and gives its result to another client.
func TestJobOutlivesItsClient(t *testing.T) {
	h, _, c, log := heldServer(t)
	j := startApply(t, c, "x")
	<-h.asked
	c.Close()
	close(h.begin)
	<-h.begun
	now, err := c.Job(t.Context(), j.ID)
	if err != nil || now.State != control.JobRunning || now.Progress == nil || now.Progress.What != "the test" {
		t.Errorf("found %+v, %v", now, err)
	}
	var r *control.Refusal
	if _, err := c.CancelJob(t.Context(), j.ID); !errors.As(err, &r) || !r.State {
		t.Errorf("found %v, expected that what has begun is not cancelled", err)
	}
	close(h.end)
	ended, err := c.Await(t.Context(), j.ID, func(*control.Job) {})
	var applied control.Applied
	if err != nil || ended.Into(&applied) != nil || len(applied.Changes) != 1 || ended.Progress != nil {
		t.Errorf("found %+v, %v", ended, err)
	}
	for _, line := range []string{`msg="job begun" job=` + j.ID, `what="POST /v1/apply as job ` + j.ID} {
		if !strings.Contains(log.String(), line) || !strings.Contains(log.String(), "outcome=done") {
			t.Errorf("found no %s in %s", line, log)
		}
	}
	if all, err := c.Jobs(t.Context()); err != nil || len(all) != 1 || all[0].Result != nil {
		t.Errorf("found %+v, %v", all, err)
	}
}

// TestJobCancelled: one that waits for others can be cancelled, and changes nothing.
func TestJobCancelled(t *testing.T) {
	h, _, c, log := heldServer(t)
	j := startApply(t, c, "x")
	<-h.asked
	if now, err := c.Job(t.Context(), j.ID); err != nil || now.State != control.JobWaiting {
		t.Errorf("found %+v, %v", now, err)
	}
	if now, err := c.CancelJob(t.Context(), j.ID); err != nil || now.State != control.JobCancelled {
		t.Errorf("found %+v, %v", now, err)
	}
	close(h.begin)
	eventually.Holds(t, "the job has ended", func() bool {
		now, err := c.Job(t.Context(), j.ID)
		return err == nil && now.Ended != nil && now.State == control.JobCancelled && now.Status == http.StatusConflict
	})
	select {
	case <-h.begun:
		t.Error("it has begun")
	default:
	}
	if !strings.Contains(log.String(), "it was cancelled by pid") {
		t.Errorf("found %s", log)
	}
}

// TestJobFault: a fault of the server ends the job, and not the server.
func TestJobFault(t *testing.T) {
	_, _, c, log := heldServer(t)
	j, err := c.Await(t.Context(), startApply(t, c, "fault").ID, func(*control.Job) {})
	if err != nil || j.State != control.JobFailed || j.Status != http.StatusInternalServerError {
		t.Errorf("found %+v, %v", j, err)
	}
	for _, line := range []string{"fault of the test", "broken off by a fault"} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("found no %q in %s", line, log)
		}
	}
}

// TestStopWaitsForJobs: an end in order waits for jobs, as long as it may, and lets none
// begin.
func TestStopWaitsForJobs(t *testing.T) {
	h, s, c, _ := heldServer(t)
	j := startApply(t, c, "x")
	<-h.asked
	over, cancel := context.WithCancel(t.Context())
	cancel()
	s.Stop(over) // waits for nobody
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.Stop(t.Context())
	}()
	if _, err := s.jobs.begin("POST", "/x", Caller{Kind: "user", Name: "me"}, control.Operate); err == nil {
		t.Error("one begins after the end")
	}
	select {
	case <-stopped:
		t.Error("the end did not wait")
	default:
	}
	close(h.begin)
	close(h.end)
	<-stopped
	if out, err := s.jobs.one(j.ID, control.Admin); err != nil || out.State != control.JobDone {
		t.Errorf("found %+v, %v", out, err)
	}
}
