package member

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestStrangersInTheLog: who has no token writes as little in a member's log as other strangers,
// whatever it says and however often.
func TestStrangersInTheLog(t *testing.T) {
	var log bytes.Buffer
	g := newGatehouse(t, firstDir(t))
	m := g.member("n1", forever, false)
	d := newDoorman(m.dir, m.settings, m.state, slog.New(slog.NewTextHandler(&log, nil)))
	valid := g.applies("n2", "192.0.2.2")
	for _, name := range []string{strings.Repeat("x", 10<<10), "n2"} {
		a := application{Secret: []byte("guessed"), Node: Node{Name: name, Address: "192.0.2.2", Port: DefaultPort}, Public: valid.Public}
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		for range 1000 {
			w := httptest.NewRecorder()
			d.answer(w, httptest.NewRequest(http.MethodPost, joinPath, bytes.NewReader(text)))
			if w.Code != http.StatusForbidden {
				t.Fatalf("found %d", w.Code)
			}
		}
	}
	if n := log.Len(); n == 0 || n > 60<<10 {
		t.Errorf("found %d bytes of 2000 applications, expected some of the first ones", n)
	}
	if strings.Contains(log.String(), "guessed") {
		t.Error("the log has a token's secret")
	}
}
