package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lunar/control"
	"lunar/internal/refusals"
)

// TestSlowClients: clients that never finish their request, or never read the answer,
// keep nobody else waiting, on the socket and at the metrics' port.
func TestSlowClients(t *testing.T) {
	status := sample()
	for n := range 3000 { // an answer that no socket buffer holds
		v := status.Volumes[0]
		v.Name = fmt.Sprint("volume", n)
		status.Volumes = append(status.Volumes, v)
	}
	socket := filepath.Join(t.TempDir(), control.SocketName)
	counts := &refusals.Counters{}
	s := start(t, Config{Socket: socket, Metrics: MetricsPort{Address: "127.0.0.1:0"}, Source: fixed(status), Refusals: counts})
	port := s.MetricsAddr().String()
	for _, ask := range []string{"GET /metrics HT", "POST /v1/apply HTTP/1.1\r\nHost: c\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
		"GET /metrics HTTP/1.1\r\nHost: c\r\n\r\n", "GET /v1/status HTTP/1.1\r\nHost: c\r\n\r\n"} {
		for range 40 {
			for network, address := range map[string]string{"unix": socket, "tcp": port} {
				c, err := net.Dial(network, address)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if _, err := io.WriteString(c, ask); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	api, err := control.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	for range 3 {
		if _, err := api.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		page, err := api.Raw(t.Context(), metricsPath)
		if err != nil || !strings.Contains(string(page), "lunar_volume") {
			t.Fatalf("metrics of %d bytes: %v", len(page), err)
		}
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		if code, _, body := request(t, c, "GET", "http://"+port+metricsPath); code != http.StatusOK || !strings.Contains(body, "lunar_volume") {
			t.Fatalf("found %d", code)
		}
	}
}

// TestAnswersAreBounded: of too many answers that nobody reads the oldest is broken
// off, once it has had its time.
func TestAnswersAreBounded(t *testing.T) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	s := answers{now: func() time.Time { return now }}
	stopped := make([]int, 0)
	begin := func(i int) { s.begin(&reply{stop: func() { stopped = append(stopped, i) }}) }
	for i := range maxAnswers + 1 {
		begin(i)
	}
	if len(stopped) > 0 {
		t.Errorf("%v were broken off although they are young", stopped)
	}
	now = now.Add(answerGrace)
	begin(maxAnswers + 1)
	begin(maxAnswers + 2)
	if fmt.Sprint(stopped) != "[0 1]" {
		t.Errorf("%v were broken off, expected the oldest two", stopped)
	}
}

// TestPagesAreShared: who asks while a page is being made gets the next one, with all
// who wait for it.
func TestPagesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		made, release := 0, make(chan struct{})
		s := newPages(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			made++ // one at a time
			<-release
			fmt.Fprint(w, "page ", made)
		}))
		ask := func(want string) {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, metricsPath, nil))
			if got := w.Body.String(); got != want {
				t.Errorf("found %q, expected %q", got, want)
			}
		}
		go ask("page 1")
		synctest.Wait()
		for range 50 {
			go ask("page 2")
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
	})
}
