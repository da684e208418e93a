package admin

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lunar/control"
)

// TestAttended: while a command runs, the server is asked something on the connection by
// which it attends to its client, and on no other.
func TestAttended(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var connections atomic.Int32
	asked := make(chan struct{}, 100)
	s := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked <- struct{}{}; r.Method == http.MethodPost {
				fmt.Fprint(w, `{"volumes":["v"]}`)
				return
			}
			fmt.Fprintln(w, "ok")
		}),
	}
	var seen sync.Map
	s.ConnState = func(c net.Conn, state http.ConnState) {
		if state != http.StateActive {
			return
		}
		if _, known := seen.LoadOrStore(c, true); !known {
			connections.Add(1)
		}
	}
	go s.Serve(l) //nolint:errcheck // it ends with the test
	defer s.Close()
	api, err := control.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	if _, err := api.Freeze(t.Context(), "v", control.Freeze{Attended: true}); err != nil {
		t.Fatal(err)
	}
	ended := errors.New("ended")
	err = attended(time.Millisecond, func() { _, _ = api.Raw(t.Context(), "/healthz") }, func() error {
		for range 5 {
			<-asked
		}
		return ended
	})
	if !errors.Is(err, ended) || connections.Load() != 1 {
		t.Errorf("found %v and %d connections, expected one", err, connections.Load())
	}
}
