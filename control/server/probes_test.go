package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"lunar/control"
)

// ailing is what is wrong.
type ailing struct{ alive, ready error }

func (a *ailing) Alive(context.Context) error { return a.alive }
func (a *ailing) Ready() error                { return a.ready }

// TestProbes: they tell how the server is at every port; why, only to who may ask.
func TestProbes(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	writeFile(t, token, goodToken)
	state := &ailing{}
	s := start(t, Config{Socket: filepath.Join(dir, control.SocketName), Source: fixed(sample()), Metrics: MetricsPort{Address: "127.0.0.1:0", Token: token}, Vitals: state})
	url := "http://" + s.MetricsAddr().String()
	probe := func(path string, code int, text string, authorization ...string) {
		t.Helper()
		r, err := http.NewRequest("GET", url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header["Authorization"] = authorization
		rsp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer rsp.Body.Close()
		body, err := io.ReadAll(rsp.Body)
		if err != nil || rsp.StatusCode != code || !strings.HasSuffix(strings.TrimSpace(string(body)), text) {
			t.Errorf("%s: found %d %q, %v, expected %d %q", path, rsp.StatusCode, body, err, code, text)
		}
	}
	defer http.DefaultClient.CloseIdleConnections()
	probe(alivePath, http.StatusOK, "ok")
	probe(readyPath, http.StatusOK, "ok")
	state.alive, state.ready = errors.New("event0 hangs"), errors.New("all drained")
	probe(alivePath, http.StatusServiceUnavailable, "not ok")
	probe(alivePath, http.StatusServiceUnavailable, "event0 hangs", "Bearer "+goodToken)
	probe(readyPath, http.StatusServiceUnavailable, "all drained", "Bearer "+goodToken)
	probe("/healthz/x", http.StatusUnauthorized, "server.metrics-token-file")
}
