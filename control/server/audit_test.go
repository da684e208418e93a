package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lunar/control"
)

// lines is a log, of which each line is taken once.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// bodies are requests that the sample takes, by operation.
var bodies = map[string]string{
	"put-qos": `{"rules":[]}`, "put-qos-rule": `{"name":"v","initiators":["*"]}`, "patch-qos-rule": `{"weight":2}`, "delete-qos-rule": "",
	"post-apply": `{"name":"f","text":"hunter2"}`, "patch-alua": `{"state":"standby"}`, "clear-reservations": "",
	"post-cluster-move": `{"volume":"v","node":"n"}`, "post-cluster-drain": `{"node":"n"}`, "post-cluster-fence": `{"node":"n"}`, "post-cluster-config": `{"name":"f","text":"hunter2"}`,
	"post-trace": "", "post-kick": `{"initiator":"iqn.x"}`, "post-drain": `{"portal":"a"}`, "post-rescan": "", "post-resync": "", "post-scrub": "", "post-detach": `{"discard":true}`, "post-freeze": `{"with":["w"],"deadline":"5s"}`, "post-thaw": "",
	"post-send":    `{"to":"h:3262","key":"hunter2hunter2hunter2hunter2hunter2hunter2h"}`,
	"post-receive": `{"path":"f","listen":":3262","key":"hunter2hunter2hunter2hunter2hunter2hunter2h","config":{"encryption":{"secret":"hunter2"}}}`, "post-checksum": "",
	"post-snapshot": `{"name":"s","with":["w"]}`, "delete-snapshot": "", "post-snapshot-clone": `{"volume":"n","configuration":{"secret":"hunter2"}}`, "post-snapshot-rollback": `{"force":true}`,

	"put-volume": `{"type":"ram","encryption":{"secret":"hunter2"}}`, "patch-volume": `{"size":"1MiB","secret":["hunter2"]}`, "delete-volume": "", "put-target": `{"luns":[]}`, "patch-target": `{"alias":"a"}`, "delete-target": "",
	"put-lun": `{"volume":"v"}`, "patch-lun": `{"read-only":true}`, "delete-lun": "",
	"put-auth-group": `{"chap":[{"user":"u","secret":"hunter2"}]}`, "patch-auth-group": `{"mutual":{"user":"hunter2"}}`, "delete-auth-group": "",
	"put-user": `{"secret":"hunter2"}`, "patch-user": `{"secret":"hunter2"}`, "delete-user": "",
	"put-portal-group": `{"tag":1}`, "patch-portal-group": `{"tag":2}`, "delete-portal-group": "",
	"put-rule-group": `{"initiators":["*"]}`, "patch-rule-group": `{"initiators":["*"]}`, "delete-rule-group": "",
	"put-settings": `{"level":"debug"}`, "patch-settings": `{"level":"debug"}`, "delete-settings": "",
	"delete-job":    "",
	"post-rollback": `{"generation":1}`, "post-save": `{}`,
	"post-changes": `{"edits":[{"path":["auth-groups","v","chap","u"],"set":{"secret":"hunter2"}}]}`,
}

// TestEveryChangeIsLogged: every operation of the API that may change something leaves one line that
// says what, by whom and what has come of it, also when it is refused or not understood.
func TestEveryChangeIsLogged(t *testing.T) {
	log := make(lines, 1024)
	socket := filepath.Join(t.TempDir(), control.SocketName)
	s := start(t, Config{Socket: socket, Source: fixed(sample()), MaxFile: 1 << 20, Logger: slog.New(slog.NewTextHandler(log, nil))})
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	_, _, text := request(t, client, http.MethodGet, "http://x/openapi.json")
	var document struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	send := func(method, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequest(method, "http://x"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		rsp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		rsp.Body.Close()
		return rsp.StatusCode, path
	}
	expect := func(method, path string, status int) {
		t.Helper()
		stop := fmt.Sprintf(`by="pid %d, uid %d (`, os.Getpid(), os.Getuid())
		outcome := "outcome=done"
		if status >= http.StatusMultipleChoices {
			outcome = "outcome=refused reason="
		}
		var got string
		select {
		case got = <-log: // the client may have its answer before
		case <-time.After(30 * time.Second):
			t.Fatalf("%s %s, status %d: found no line", method, path, status)
		}
		if strings.Count(got, "\n") != 1 || !strings.Contains(got, "msg=change") || !strings.Contains(got, method+" "+path) || !strings.Contains(got, stop) || !strings.Contains(got, outcome) {
			t.Errorf("%s %s, status %d: found %q, expected one line with %q, who asked and %q", method, path, status, got, method+" "+path, outcome)
		}
		if strings.Contains(got, "hunter2") {
			t.Errorf("the text of a file is logged: %q", got)
		}
	}
	seen := 0
	for path, methods := range document.Paths {
		for method, op := range methods {
			method = strings.ToUpper(method)
			if method == http.MethodGet {
				continue
			}
			body, known := bodies[op.OperationID]
			if !known {
				t.Errorf("%s %s: found operation %q, expected that this test has a request of it", method, path, op.OperationID)
			}
			seen++
			path = strings.NewReplacer("{name}", "v", "{group}", "a", "{user}", "u", "{lun}", "0", "{section}", "log", "{id}", "1", "{snapshot}", "s").Replace(path)
			status, at := send(method, path, body)
			expect(method, at, status)
			status, at = send(method, path, "[")
			expect(method, at, status)
		}
	}
	if seen != len(bodies) {
		t.Errorf("found %d operations that change something, expected %d", seen, len(bodies))
	}
	status, at := send(http.MethodDelete, "/v1/status", "")
	expect(http.MethodDelete, at, status)
	status, _ = send(http.MethodPost, "/v1//apply", "") // another address is told, and nothing is done
	expect(http.MethodPost, "/v1//apply", status)
	request(t, client, http.MethodGet, "http://x/v1/status")
	stop(s) // and all that it logs
	close(log)
	for got := range log {
		t.Errorf("found %q besides one line for each change", got)
	}
}
