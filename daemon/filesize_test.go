package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"lunar/conf"
	"lunar/control"
	"lunar/internal/cli"
)

// TestFileSize: a file of 17 MiB passes check, serve and apply, and one that is
// too long does not.
func TestFileSize(t *testing.T) {
	pad := func(size conf.Size) string { return "# " + strings.Repeat("x", int(size)) + "\n" }
	c := serveQoS(t, pad(17*conf.MiB))
	c.has(c.tgtd(cli.ExitOK, "check", c.file), "ok: ")
	c.has(c.tgtd(cli.ExitOK, "apply", c.file), "nothing to change")

	other := filepath.Join(c.dir, "other.yaml")
	writeFile(t, other, qosctlConfig+pad(conf.MaxFile))
	for _, command := range [][]string{{"check", other}, {"apply", other}} {
		c.has(c.tgtd(cli.ExitFailure, command...), "found more than 64MiB of text")
	}
}

// TestAPIQuotesNothing: a request that the API refuses is not in its answer.
func TestAPIQuotesNothing(t *testing.T) {
	c := serveQoS(t, "")
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(c.dir, control.SocketName))
	}}}
	defer client.CloseIdleConnections()
	const secret = "hunter2hunter2"
	for _, request := range []any{
		map[string]any{"name": "x", "text": "secret: " + secret, "extra": 1},
		map[string]any{"text": "secret: " + secret},
		map[string]any{"name": "", "text": "secret: " + secret, "dryRun": secret},
		[]string{secret}, secret,
	} {
		body, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		rsp, err := client.Post("http://control/v1/apply", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		var answer bytes.Buffer
		answer.ReadFrom(rsp.Body)
		rsp.Body.Close()
		if rsp.StatusCode == http.StatusOK || strings.Contains(answer.String(), "hunter") {
			t.Errorf("%s: %s: %s", body, rsp.Status, answer.String())
		}
	}
}
