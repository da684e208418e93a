package daemon

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// serving is a tgtd in this process.
type serving struct {
	portal string // of the first portal
	log    *eventually.Output
	stop   func() int // ends it as SIGTERM would and returns the exit status
}

// hangUp sends SIGHUP and waits until the log has all words since.
func (s *serving) hangUp(t *testing.T, words ...string) {
	t.Helper()
	news := s.log.Since()
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually.Says(t, news, words...)
}

var discoveryLine = regexp.MustCompile(`-t sendtargets -p (\S+)`)

// serve runs "tgtd serve" and returns when its portals are open.
func serve(t *testing.T, args ...string) *serving {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	s := &serving{log: &eventually.Output{}}
	status := make(chan int, 1)
	go func() {
		status <- run(ctx, append([]string{"serve"}, args...), cli.Console{Out: in, Err: s.log})
		in.Close()
	}()
	s.stop = sync.OnceValue(func() int { cancel(); return <-status })
	t.Cleanup(func() { s.stop() })
	lines := bufio.NewReader(out)
	for s.portal == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the server did not start: %v\n%s", err, s.log)
		}
		if m := discoveryLine.FindStringSubmatch(line); m != nil {
			s.portal = m[1]
		}
	}
	go io.Copy(io.Discard, lines)
	return s
}

func dial(t *testing.T, portal string, o initiator.Options) *initiator.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := initiator.Dial(ctx, portal, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// transfer runs a command that must end well, and returns what it read.
func transfer(t *testing.T, c *initiator.Conn, cdb []byte, lun uint64, out []byte, in int) []byte {
	t.Helper()
	r, err := c.Command(cdb, lun, out, in)
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != 0 {
		t.Fatalf("CDB % x: found status %#x, expected GOOD", cdb, r.Status)
	}
	return r.In
}

// settle takes the unit attention that a new session begins with.
func settle(t *testing.T, c *initiator.Conn, lun uint64) {
	t.Helper()
	if _, err := c.Command(make([]byte, 6), lun, nil, 0); err != nil {
		t.Fatal(err)
	}
}

var (
	inquiry = []byte{0x12, 0, 0, 0, 96, 0}
	serial  = []byte{0x12, 1, 0x80, 0, 96, 0}
	readOne = []byte{0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0}
	write   = []byte{0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0}
)

// TestServeDefault: without a file there is one volume, which keeps data and
// identity over a restart.
func TestServeDefault(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	block := bytes.Repeat([]byte("lunar..."), 64)
	const name = "iqn.2026-11.example.lunar:default"

	s := serve(t, "--state-dir", state, "--listen", "127.0.0.1:0")
	c := dial(t, s.portal, initiator.Options{Target: name})
	settle(t, c, 0)
	if data := transfer(t, c, inquiry, 0, nil, 96); !bytes.Contains(data, []byte("LUNAR   ")) {
		t.Errorf("INQUIRY: found %q", data)
	}
	first := transfer(t, c, serial, 0, nil, 96)
	transfer(t, c, write, 0, block, 0)
	if _, err := c.Logout(0); err != nil {
		t.Error(err)
	}
	if status := s.stop(); status != cli.ExitOK {
		t.Fatalf("found exit status %d\n%s", status, s.log)
	}

	s = serve(t, "--state-dir", state, "--listen", "127.0.0.1:0", "--log-level", "debug")
	c = dial(t, s.portal, initiator.Options{Target: name})
	settle(t, c, 0)
	if data := transfer(t, c, readOne, 0, nil, 512); !bytes.Equal(data, block) {
		t.Error("the block changed over a restart")
	}
	if again := transfer(t, c, serial, 0, nil, 96); !bytes.Equal(again, first) {
		t.Errorf("found serial number %q after a restart, before %q", again, first)
	}
	if mode := modeOf(t, state); mode != 0o700 {
		t.Errorf("found mode %o of the state directory, expected 700", mode)
	}
}

func modeOf(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

// TestServeFile: what a configuration says is what initiators find.
func TestServeFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "tgtd.yaml")
	writeFile(t, file, `
log: {format: json}
discovery: {auth: finders}
portal-groups:
  local: {tag: 7, listen: ["127.0.0.1:0"]}
auth-groups:
  finders: {chap: [{user: finder, secret: "secret of finders"}]}
  hosts:
    chap: [{user: host, secret: "secret of hosts"}]
    mutual: {user: lunar, secret: "secret of lunar"}
    algorithms: [sha1]
  named: {initiators: ["iqn.2026-11.test:named*"]}
volumes:
  a: {type: ram, size: 1MiB, serial: volume-a}
  b: {type: "null", size: 1MiB, block-size: 4096, serial: volume-b}
targets:
  iqn.2026-11.test:t:
    alias: the alias
    luns: {0: a}
    access:
      - {auth-group: named, luns: [{lun: 0, volume: b}, {lun: 3, volume: a, read-only: true}]}
      - {networks: [127.0.0.0/8], auth-group: hosts}
  iqn.2026-11.test:elsewhere: {access: [{networks: [192.0.2.0/24], luns: {0: a}}]}
`)
	s := serve(t, "-c", file, "--state-dir", dir)

	found := dial(t, s.portal, initiator.Options{CHAP: &initiator.CHAP{User: "finder", Secret: []byte("secret of finders")}})
	targets, err := found.SendTargets("All")
	want := fmt.Sprintf("[{iqn.2026-11.test:t [%s,7]}]", s.portal)
	if err != nil || fmt.Sprint(targets) != want {
		t.Errorf("found %v, %v, expected %s", targets, err, want)
	}

	named := dial(t, s.portal, initiator.Options{Target: "iqn.2026-11.test:t", Initiator: "iqn.2026-11.test:named-one"})
	settle(t, named, 0)
	settle(t, named, 3)
	for lun, want := range map[uint64]string{0: "volume-b", 3: "volume-a"} {
		if data := transfer(t, named, serial, lun, nil, 96); !strings.Contains(string(data), want) {
			t.Errorf("LUN %d: found serial %q, expected %s", lun, data, want)
		}
	}
	if r, err := named.Command(write, 3, make([]byte, 512), 0); err != nil || r.Status == 0 {
		t.Errorf("write to a read-only LUN: found %+v, %v", r, err)
	}

	host := dial(t, s.portal, initiator.Options{Target: "iqn.2026-11.test:t", CHAP: &initiator.CHAP{
		User: "host", Secret: []byte("secret of hosts"), MutualUser: "lunar", MutualSecret: []byte("secret of lunar"),
		Algorithms: []int{initiator.CHAPMD5, initiator.CHAPSHA1},
	}})
	settle(t, host, 0)
	transfer(t, host, write, 0, make([]byte, 512), 0)

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, o := range []initiator.Options{
		{Target: "iqn.2026-11.test:t"},
		{Target: "iqn.2026-11.test:elsewhere"},
		{},
	} {
		if c, err := initiator.Dial(ctx, s.portal, o); err == nil {
			c.Close()
			t.Errorf("%q without credentials: the login was accepted", o.Target)
		}
	}
	for _, c := range []*initiator.Conn{found, named, host} {
		c.Close()
	}
	if status := s.stop(); status != cli.ExitOK {
		t.Errorf("found exit status %d", status)
	}
	if log := s.log.String(); !strings.HasPrefix(log, "{") || strings.Contains(log, "secret of") {
		t.Errorf("the log is not JSON, or shows a secret:\n%s", log)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestServeFails: a server that cannot start says why and what to do.
func TestServeFails(t *testing.T) {
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	broken, missing := filepath.Join(dir, "broken.yaml"), filepath.Join(dir, "missing.yaml")
	writeFile(t, broken, "volumes: {v: {type: ram}}\n")
	writeFile(t, missing, "portal-groups: {a: {listen: [\"127.0.0.1:0\"]}}\n"+
		"volumes: {v: {type: file, path: no/such/dir/file, size: 1MiB}, w: {type: file, path: absent}}\n"+
		"targets: {\"iqn.2026-11.test:t\": {luns: {0: v, 1: w}}}\n")
	for name, test := range map[string]struct {
		args []string
		want []string
	}{
		"port in use":   {[]string{"--listen", taken.Addr().String()}, []string{taken.Addr().String(), "address already in use", "--listen"}},
		"bad address":   {[]string{"--listen", "localhost:3260"}, []string{`"localhost:3260"`, "literal address"}},
		"not ours":      {[]string{"--listen", "192.0.2.77:0"}, []string{"no network interface"}},
		"no such file":  {[]string{"-c", filepath.Join(dir, "nothing.yaml")}, []string{"nothing.yaml", "no such file"}},
		"broken file":   {[]string{"-c", broken}, []string{"1 error", "broken.yaml:1:14", "volumes.v.size"}},
		"volumes":       {[]string{"-c", missing}, []string{"volume v", "volume w", "no such file"}},
		"state dir":     {[]string{"--state-dir", "/proc/lunar"}, []string{"state directory", "--state-dir"}},
		"unknown level": {[]string{"--log-level", "loud"}, []string{"log-level"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out, log eventually.Output
			args := append([]string{"serve", "--state-dir", filepath.Join(dir, "state"), "--listen", "127.0.0.1:0"}, test.args...)
			if test.args[0] != "--state-dir" && test.args[0] != "--log-level" {
				args = append([]string{"serve", "--state-dir", filepath.Join(dir, "state")}, test.args...)
			}
			if status := run(context.Background(), args, cli.Console{Out: &out, Err: &log}); status == cli.ExitOK {
				t.Fatal("found exit status 0")
			}
			for _, want := range test.want {
				if !strings.Contains(log.String(), want) {
					t.Errorf("found no %q in\n%s", want, log.String())
				}
			}
		})
	}
}
