package server

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"lunar/control"
	"lunar/control/events"
	"lunar/control/token"
	"lunar/internal/eventually"
)

// TestStreamsEndWithTheRole: what is told without an end is told no more to whose token was
// removed or has a lesser role, and nothing that happens afterwards is.
func TestStreamsEndWithTheRole(t *testing.T) {
	stream := events.New(time.Now())
	r := serveRemoteOf(t, Config{Source: traceSource{fixed(sample()), newRecording(pdu(0))}, Events: stream})
	api := r.dial(t, control.Operate)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	told, ended := make(chan control.Event, 9), make(chan error)
	stream.Publish(control.Event{Kind: "login", Text: "first"})
	go func() {
		ended <- api.Events(ctx, nil, "", true, func(e control.Event) error { told <- e; return nil })
	}()
	if e := <-told; e.Text != "first" {
		t.Errorf("found %+v", e)
	}
	trace := make(chan *control.TraceEnd, 1)
	seen := make(chan struct{}, 1)
	go func() {
		var end *control.TraceEnd
		ended <- api.Trace(ctx, 7, 3600, 0, func(l *control.TraceLine) error {
			if end = l.End; l.PDU != nil {
				seen <- struct{}{}
			} else if end != nil {
				trace <- end
			}
			return nil
		})
	}()
	<-seen
	text, err := os.ReadFile(r.access.Port.Tokens)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, r.access.Port.Tokens, strings.Replace(string(text), "\noperate operate ", "\nread operate ", 1))
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if end := <-trace; !strings.Contains(end.Reason, "with role read by now, expected role operate") {
		t.Errorf("found %+v", end)
	}
	stream.Publish(control.Event{Kind: "login", Text: "second"})
	if e := <-told; e.Text != "second" { // a reader may still
		t.Errorf("found %+v", e)
	}
	if err := token.Remove(r.access.Port.Tokens, "operate"); err != nil {
		t.Fatal(err)
	}
	stream.Publish(control.Event{Kind: "login", Text: "third"})
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "with role none by now, expected role read") {
		t.Errorf("found %v", err)
	}
	if len(told) > 0 {
		t.Errorf("found %+v, expected nothing after the token was removed", <-told)
	}
}

// TestStreamsEndWithTheirCertificate: the same with a certificate whose name or authority is
// trusted no more, and without anything that happens.
func TestStreamsEndWithTheirCertificate(t *testing.T) {
	for what, end := range map[string]func(r *remote) error{
		"name": func(r *remote) error { r.access.Port.Clients = nil; return r.SetAccess(r.access) },
		"authority": func(r *remote) error {
			writeFile(t, r.access.Port.ClientCA, string(newAuthority(t).pem))
			return nil
		},
		"all authorities": func(r *remote) error { r.access.Port.ClientCA = ""; return r.SetAccess(r.access) },
	} {
		t.Run(what, func(t *testing.T) {
			r := serveRemoteOf(t, Config{Source: fixed(sample()), Events: events.New(time.Now())})
			own := authority(t).issue(t, x509.Certificate{Subject: pkix.Name{CommonName: "ops"}})
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: r.trusted, Certificates: []tls.Certificate{own}}}
			defer transport.CloseIdleConnections()
			c := &http.Client{Transport: transport}
			if code, _, _ := request(t, c, "GET", r.url+"/v1/cache"); code != http.StatusOK { // leaves a connection that is idle
				t.Errorf("found %d", code)
			}
			answer, err := c.Get(r.url + control.EventsPath)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			other, err := c.Get(r.url + control.EventsPath + "?follow=false")
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, other.Body)
			other.Body.Close()
			if err := end(r); err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(answer.Body)
			if err != nil || !strings.Contains(string(text), "by now, expected role read") {
				t.Errorf("found %v: %s", err, text)
			}
			if code, _, _ := request(t, c, "GET", r.url+"/v1/cache"); code != http.StatusUnauthorized { // on the connections of before
				t.Errorf("found %d", code)
			}
		})
	}
}

// TestRevokedWhileItWaits: a change that waits for others is not made any more for somebody
// whose token was removed meanwhile, be it a job or not.
func TestRevokedWhileItWaits(t *testing.T) {
	for _, asJob := range []bool{false, true} {
		h := &held{fixed(sample()), make(chan struct{}, 1), make(chan struct{}), make(chan struct{}, 1), make(chan struct{})}
		r := serveRemoteOf(t, Config{Source: h})
		query := ""
		if asJob {
			query = "?async=true"
		}
		code := make(chan int, 1)
		go func() {
			code <- r.ask(t, http.MethodPost, control.ApplyPath+query, `{"name":"f","text":"x"}`, r.tokens[control.Admin])
		}()
		<-h.asked
		if err := token.Remove(r.access.Port.Tokens, "admin"); err != nil {
			t.Fatal(err)
		}
		close(h.begin)
		if asJob {
			if got := <-code; got != http.StatusAccepted {
				t.Errorf("found %d", got)
			}
			eventually.Holds(t, "the job has failed", func() bool {
				all := r.jobs.list()
				return len(all) == 1 && all[0].Status == http.StatusForbidden
			})
		} else if got := <-code; got != http.StatusForbidden {
			t.Errorf("found %d", got)
		}
		select {
		case <-h.begun:
			t.Error("it has begun")
		default:
		}
	}
}

// TestSeatsAreShared: one reader may have all places of events while nobody else wants
// one; then others get a share, and an administrator comes before all of them.
func TestSeatsAreShared(t *testing.T) {
	stream := events.New(time.Now())
	r := serveRemoteOf(t, Config{Source: fixed(sample()), Events: stream})
	stream.Publish(control.Event{Kind: "login", Text: "x"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := func(role control.Role) <-chan error {
		told, ended := make(chan struct{}, 1), make(chan error, 1)
		api := r.dial(t, role)
		go func() {
			ended <- api.Events(ctx, nil, "", true, func(control.Event) error { told <- struct{}{}; return nil })
		}()
		select {
		case <-told:
		case err := <-ended:
			t.Fatalf("as %v: %v", role, err)
		}
		return ended
	}
	count := func(all []<-chan error) (ended int) {
		for _, e := range all {
			ended += len(e)
		}
		return ended
	}
	var reader, operator []<-chan error
	for range maxStreams {
		reader = append(reader, open(control.Read))
	}
	for range 3 {
		operator = append(operator, open(control.Operate))
	}
	eventually.Holds(t, "three of the reader's have ended", func() bool { return count(reader) == 3 })
	for range 2 {
		open(control.Admin)
	}
	eventually.Holds(t, "the largest has lost two more", func() bool { return count(reader) == 5 })
	if n := count(operator); n > 0 {
		t.Errorf("the operator has lost %d", n)
	}
	for _, e := range reader {
		if len(e) == 1 {
			if err := <-e; err == nil || !strings.Contains(err.Error(), "somebody else's now") {
				t.Errorf("found %v", err)
			}
		}
	}
}

// TestGuessersTakeNoPlaces: guesses that wait for their answers, from as many addresses as
// somebody has, keep nobody away who has a token, and be it for the first time.
func TestGuessersTakeNoPlaces(t *testing.T) {
	r := serveRemote(t)
	guess := "GET /v1/cache HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\n\r\n"
	asked := 0
	for i := range maxConnections + maxConnections/4 {
		c, err := r.dialFrom(fmt.Sprintf("127.%d.0.%d", 1+i%8, 1+i/8%4))
		if err != nil {
			continue // it has lost its place to a later one already
		}
		defer c.Close()
		if _, err := io.WriteString(c, guess); err == nil {
			asked++
		}
	}
	if asked < maxConnections/4 {
		t.Errorf("%d have asked, expected most", asked)
	}
	ask := func() int { return r.ask(t, "GET", "/v1/cache", "", r.tokens[control.Read]) }
	eventually.Holds(t, "the guesses have been read, and wait", func() bool { return ask() == http.StatusOK })
	for range 10 {
		if code := ask(); code != http.StatusOK {
			t.Errorf("found %d", code)
		}
	}
}

// TestAnsweredGuessersTakeNoPlaces: the same with guesses that have had their answers, and
// whose connections their clients keep.
func TestAnsweredGuessersTakeNoPlaces(t *testing.T) {
	r := serveRemote(t)
	const networks, together = 8, maxConnections / 4
	for begun := 0; begun < maxConnections; begun += together {
		var answered [together]net.Conn
		for i := range answered {
			c, err := r.dialFrom(fmt.Sprintf("127.%d.0.%d", 1+i%networks, 1+(begun+i)/networks))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, "GET /v1/cache HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			answered[i] = c
		}
		for _, c := range answered {
			answer, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || answer.StatusCode != http.StatusUnauthorized {
				t.Fatalf("found %v, %v", answer, err)
			}
		}
	}
	eventually.Holds(t, "somebody with a token is answered", func() bool {
		return r.ask(t, "GET", "/v1/cache", "", r.tokens[control.Read]) == http.StatusOK
	})
}

// TestSilenceTakesNoPlaces: the same with connections that say nothing, as soon as somebody
// has shown at his address that he may ask.
func TestSilenceTakesNoPlaces(t *testing.T) {
	r := serveRemote(t)
	ask := func() int { return r.ask(t, "GET", "/v1/cache", "", r.tokens[control.Read]) }
	if code := ask(); code != http.StatusOK {
		t.Errorf("found %d", code)
	}
	for i := range maxConnections + 8 {
		c, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(fmt.Sprintf("127.%d.0.%d", 1+i%8, 1+i/8%4))}}).Dial("tcp", r.ControlAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	for range 10 {
		if code := ask(); code != http.StatusOK {
			t.Errorf("found %d", code)
		}
	}
}

func (r *remote) dialFrom(address string) (net.Conn, error) {
	d := &tls.Dialer{NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}, Config: &tls.Config{RootCAs: r.trusted, ServerName: "127.0.0.1"}}
	return d.Dial("tcp", r.ControlAddr().String())
}

func portOf(a net.Addr) string { return fmt.Sprint(a.(*net.TCPAddr).Port) }

// moving is a Source whose changes change who may ask.
type moving struct {
	fixed
	server **Server
	to     *Access
}

// Change implements Source.
func (m moving) Change(_ Asker, c control.Changes) (control.Changed, error) {
	out, _ := m.fixed.Change(Asker{}, c)
	return out, (*m.server).SetAccess(*m.to)
}

// TestAccessChangesUnderItsAsker: who changes over TCP how the API is asked over TCP gets
// an answer, also where he may not ask any more.
func TestAccessChangesUnderItsAsker(t *testing.T) {
	for what, change := range map[string]func(*Access){
		"clients":   func(a *Access) { a.Port.Clients = nil },
		"tokens":    func(a *Access) { a.Port.Tokens = "" },
		"elsewhere": func(a *Access) { a.Port.Address = "127.0.0.2:0" },
		"narrower":  func(a *Access) { a.Port.Address = strings.Replace(a.Port.Address, "0.0.0.0", "127.0.0.1", 1) },
		"nowhere":   func(a *Access) { *a = Access{} },
	} {
		t.Run(what, func(t *testing.T) {
			var s *Server
			to := &Access{}
			r := serveRemoteOf(t, Config{Source: moving{fixed(sample()), &s, to}})
			s = r.Server
			for _, at := range []string{"0.0.0.0:0", ""} { // then by its number
				r.access.Port.Address = cmp.Or(at, "0.0.0.0:"+portOf(r.ControlAddr()))
				if err := s.SetAccess(r.access); err != nil {
					t.Fatal(err)
				}
			}
			r.url = "https://127.0.0.1:" + portOf(r.ControlAddr())
			*to = r.access
			change(to)
			if code := r.ask(t, "PUT", control.VolumesPath+"/v", `{"type":"null"}`, r.tokens[control.Admin]); code != http.StatusOK {
				t.Errorf("found %d", code)
			}
		})
	}
}
