package control

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// TestAwaitOutlastsBreaks: a change of the control port breaks off who waits for that very
// change, who then asks again; a server that has gone for good is an error.
func TestAwaitOutlastsBreaks(t *testing.T) {
	var asked atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		j := Job{ID: "x-1", State: JobRunning}
		switch asked.Add(1) {
		case 2, 3:
			panic(http.ErrAbortHandler)
		case 5:
			j.State, j.Ended = JobDone, &time.Time{}
		}
		if err := json.NewEncoder(w).Encode(&j); err != nil {
			t.Error(err)
		}
	}))
	defer s.Close()
	c := newClient("the test", s.URL, s.Client().Transport)
	told := 0
	if j, err := c.Await(t.Context(), "x-1", func(*Job) { told++ }); err != nil || j.State != JobDone || told != 2 {
		t.Errorf("found %+v, %v, told %d times", j, err, told)
	}
	s.Close()
	if _, err := c.Await(t.Context(), "x-1", func(*Job) {}); err == nil {
		t.Error("found no error without a server")
	}
}
