package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lunar/cmd/lunar/admin"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/freeport"
	"lunar/internal/initiator"
	"lunar/internal/version"
)

const controlConfig = `
server: {metrics: METRICS}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
auth-groups: {g: {chap: [{user: host, secret: "never to be seen"}]}}
cache: {size: 16MiB, block-size: 64KiB, segment: none}
volumes:
  cached: {type: file, path: cached.img, size: 8MiB, cache: {admission: fussy}}
  plain: {type: file, path: plain.img, size: 1MiB, write: sync}
targets: {"iqn.2026-11.test:t": {alias: the alias, auth-group: g, luns: {0: cached, 1: plain}}}
`

// freePort returns an address that nobody listens on now.
func freePort(t *testing.T) string {
	t.Helper()
	hostPort, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	return hostPort
}

// TestControl: what sessions do to a served daemon is found in its status and
// metrics, and no secret is.
func TestControl(t *testing.T) {
	dir, metrics := t.TempDir(), freePort(t)
	file := filepath.Join(dir, "tgtd.yaml")
	writeFile(t, file, strings.Replace(controlConfig, "METRICS", metrics, 1))
	s := serve(t, "-c", file, "--state-dir", dir)
	socket := filepath.Join(dir, control.SocketName)
	api, err := control.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	before := statusFrom(t, api)

	c := dial(t, s.portal, initiator.Options{Target: "iqn.2026-11.test:t", Alias: "a host", CHAP: &initiator.CHAP{User: "host", Secret: []byte("never to be seen")}})
	settle(t, c, 0)
	settle(t, c, 1)
	for range 10 {
		transfer(t, c, write, 0, make([]byte, 512), 0)
		transfer(t, c, readOne, 0, nil, 512)
		transfer(t, c, readOne, 1, nil, 512)
	}
	during := statusFrom(t, api)
	checkStatus(t, &before, &during, s.portal)
	for _, text := range []string{checkMetrics(t, metrics), raw(t, api, "/v1/status"), raw(t, api, "/metrics"), raw(t, api, "/openapi.json"), printed(t, dir)} {
		if strings.Contains(text, "never to be seen") {
			t.Errorf("a secret is shown:\n%s", text)
		}
	}

	if _, err := c.Logout(0); err != nil {
		t.Fatal(err)
	}
	after := statusFrom(t, api)
	for len(after.Sessions) > 0 || after.Targets[0].Sessions > 0 { // which a status reads one after the other
		after = statusFrom(t, api)
	}
	if after.Volumes[0].IO != during.Volumes[0].IO {
		t.Errorf("after the session found %+v, before %+v", after.Volumes[0].IO, during.Volumes[0].IO)
	}
	var log eventually.Output
	if status := run(t.Context(), []string{"serve", "-c", file, "--state-dir", dir}, cli.Console{Out: io.Discard, Err: &log}); status != cli.ExitFailure {
		t.Errorf("a second server with the same state directory ended with %d", status)
	}
	if s.stop() != cli.ExitOK {
		t.Errorf("the server failed:\n%s", s.log)
	}
	if _, err := control.Dial(socket); err == nil {
		t.Error("the control socket outlived its server")
	}
}

func statusFrom(t *testing.T, api *control.Client) control.Status {
	t.Helper()
	s, err := api.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func raw(t *testing.T, api *control.Client, path string) string {
	t.Helper()
	text, err := api.Raw(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// checkStatus: ten writes, and ten reads of each LUN, lie between both statuses.
func checkStatus(t *testing.T, before, s *control.Status, portal string) {
	t.Helper()
	if text, err := json.Marshal(s); err != nil || bytes.Contains(text, []byte("null")) {
		t.Errorf("found null in %s, %v", text, err)
	}
	if s.Server.Version != version.Number || s.Server.PID == 0 || len(s.Server.Threads) == 0 || s.Server.UptimeSeconds < before.Server.UptimeSeconds {
		t.Errorf("found %+v", s.Server)
	}
	if len(s.Volumes) != 2 || len(s.Targets) != 1 || len(s.Sessions) != 1 || len(s.Sessions[0].LUNs) != 2 {
		t.Fatalf("found %+v", s)
	}
	v, p := s.Volumes[0], s.Volumes[1]
	if v.Name != "cached" || v.Type != "file" || v.SizeBytes != 8<<20 || v.Write != "through" || v.Cache == nil || v.Cache.Fussy == nil || v.Cache.FlushFailing {
		t.Errorf("found %+v", v)
	}
	if p.Name != "plain" || p.Write != "sync" || p.Cache != nil {
		t.Errorf("found %+v", p)
	}
	if v.IO.Writes != 10 || v.IO.WrittenBytes != 5120 || v.IO.Reads < 10 || v.IO.ReadBytes < 5120 || p.IO.Reads < 10 || p.IO.Writes != 0 {
		t.Errorf("found %+v and %+v", v.IO, p.IO)
	}
	n := s.Sessions[0]
	if n.Initiator != initiator.DefaultInitiator || n.Alias != "a host" || n.Target != "iqn.2026-11.test:t" || n.Portal != portal || n.InFlight != 0 || n.Window == 0 ||
		n.LUNs[0].IO != v.IO || n.LUNs[1].IO != p.IO || n.LUNs[1].Volume != "plain" || n.Connected.Before(s.Server.Started.Add(-time.Second)) {
		t.Errorf("found %+v", n)
	}
	if tg := s.Targets[0]; tg.Sessions != 1 || tg.Alias != "the alias" || len(tg.Portals) != 1 || tg.Portals[0] != portal || len(tg.Volumes) != 2 {
		t.Errorf("found %+v", tg)
	}
	c := s.Cache
	if c == nil || c.SizeBytes == 0 || c.SizeBytes > 16<<20 || c.BlockBytes != 64<<10 || c.Hits+c.Misses != v.Cache.Hits+v.Cache.Misses || c.Hits+c.Misses < 10 {
		t.Fatalf("found %+v, %+v", c, v.Cache)
	}
	if c.Attach == nil || c.Attach.Outcome != "private" || len(c.Nodes) == 0 || c.DirtyBytes != 0 {
		t.Errorf("found %+v", c)
	}
}

// checkMetrics returns what the TCP port serves.
func checkMetrics(t *testing.T, address string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	rsp, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	text, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`lunar_volume_written_bytes_total{volume="cached"} 5120`,
		`lunar_volume_writes_total{volume="cached"} 10`,
		`lunar_target_sessions{target="iqn.2026-11.test:t"} 1`,
		`lunar_cache_attach_info{outcome="private"} 1`,
		`lunar_cache_dirty_bytes 0`,
		`lunar_volume_fussy_fallen_back{volume="cached"} 0`,
	} {
		if !bytes.Contains(text, []byte("\n"+want+"\n")) {
			t.Errorf("found no %s in\n%s", want, text)
		}
	}
	return string(text)
}

// printed is what lunar status prints, as tables and as JSON.
func printed(t *testing.T, dir string) string {
	t.Helper()
	var table, text, messages eventually.Output
	if status := run(t.Context(), []string{"status", "--state-dir", dir}, cli.Console{Out: &table, Err: &messages}); status != cli.ExitOK {
		t.Fatalf("lunar status ended with %d: %s", status, messages.String())
	}
	for _, want := range []string{"VOLUME", "cached", "hit ratio", "evictions", "re-attach", "private memory", "SESSION", initiator.DefaultInitiator, "THREAD"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("found no %q in\n%s", want, table.String())
		}
	}
	if status := run(t.Context(), []string{"status", "--json", "--state-dir", dir}, cli.Console{Out: &text, Err: &messages}); status != cli.ExitOK {
		t.Fatalf("lunar status --json ended with %d: %s", status, messages.String())
	}
	var s control.Status
	if err := json.Unmarshal([]byte(text.String()), &s); err != nil || len(s.Volumes) != 2 {
		t.Errorf("found %s, %v", text.String(), err)
	}
	return table.String() + text.String()
}

// TestWatch: it prints until it is interrupted.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, "--state-dir", dir, "--listen", "127.0.0.1:0")
	ctx, interrupt := context.WithCancel(context.Background())
	var out, messages eventually.Output
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"status", "--watch", "--state-dir", dir}, cli.Console{Out: &out, Err: &messages})
	}()
	eventually.Holds(t, "the table is printed twice", func() bool {
		select {
		case status := <-ended:
			t.Fatalf("it ended with %d: %s", status, messages.String())
		default:
		}
		return strings.Count(out.String(), admin.ClearScreen) >= 2
	})
	interrupt()
	if status := <-ended; status != cli.ExitOK || !strings.Contains(out.String(), "READS/s") {
		t.Errorf("found exit status %d, %s\n%s", status, messages.String(), out.String())
	}
	if s.stop() != cli.ExitOK {
		t.Errorf("the server failed:\n%s", s.log)
	}
}
