package control

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestClientComesAgain: a request is made again, with its body, while the server asks for
// that, not without an end, and never when it does not ask.
func TestClientComesAgain(t *testing.T) {
	const body = "of a change"
	for _, c := range []struct {
		refusals int
		after    string
		status   int
		asked    int
	}{
		{0, "0", http.StatusOK, 1},
		{3, "0", http.StatusOK, 4},
		{maxRefusals, "0", http.StatusServiceUnavailable, maxRefusals},
		{3, "", http.StatusServiceUnavailable, 1},
	} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			if text, err := io.ReadAll(r.Body); err != nil || string(text) != body {
				t.Errorf("request %d has the body %q (%v)", asked, text, err)
			}
			if asked <= c.refusals {
				if c.after != "" {
					w.Header().Set("Retry-After", c.after)
				}
				w.WriteHeader(http.StatusServiceUnavailable)
				fmt.Fprint(w, "later")
			}
		}))
		rsp, err := newClient("a test", server.URL, http.DefaultTransport).http.Post(server.URL, "text/plain", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		rsp.Body.Close()
		server.Close()
		if rsp.StatusCode != c.status || asked != c.asked {
			t.Errorf("%d refusals, Retry-After %q: found status %d after %d requests, expected %d after %d", c.refusals, c.after, rsp.StatusCode, asked, c.status, c.asked)
		}
	}
}
