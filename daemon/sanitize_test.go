package daemon

import (
	"path/filepath"
	"syscall"
	"testing"

	"lunar/internal/initiator"
)

// overwrite sends SANITIZE OVERWRITE with one pass of a pattern; flags are those of
// byte 1.
func overwrite(t *testing.T, c *initiator.Conn, flags byte) *initiator.Result {
	t.Helper()
	list := []byte{1, 0, 0, 1, 0xa5}
	res, err := c.Command([]byte{0x48, 0x01 | flags, 0, 0, 0, 0, 0, 0, byte(len(list)), 0}, 0, list, 0)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestSanitizeAndRestart: a medium that was sanitized in part only is not there after
// a restart, until an operation succeeds or the failure is given up where that was
// allowed.
func TestSanitizeAndRestart(t *testing.T) {
	const immediate, allowExit = 0x80, 0x20
	dir := t.TempDir()
	config := filepath.Join(dir, "tgtd.yaml")
	writeFile(t, config, `
server: {threads: 1, buffers-per-thread: 8MiB}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {v: {type: file, path: v, size: 1MiB, sanitize-rate: 1MiB}}
targets: {"iqn.2026-11.test:t": {luns: {0: v}}}
`)
	var s *child
	start := func() *initiator.Conn {
		s = serveChild(t, "-c", config, "--state-dir", dir)
		c := dial(t, s.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
		senseOf(t, c, 0) // that it is new
		return c
	}
	failed, ready := [2]byte{0x31, 0x03}, [2]byte{}
	for _, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		for _, exit := range []byte{0, allowExit} {
			c := start()
			if res := overwrite(t, c, immediate|exit); res.Status != initiator.StatusGood {
				t.Fatalf("%+v", res)
			}
			c.Close() // or a stop waits for its logout
			s.end(t, end)
			c = start()
			if got := senseOf(t, c, 0); got != failed {
				t.Fatalf("%v: sense %x after the restart, expected SANITIZE COMMAND FAILED", end, got)
			}
			exited, err := c.Command([]byte{0x48, 0x1f, 0, 0, 0, 0, 0, 0, 0, 0}, 0, nil, 0)
			if err != nil || (exited.Status == initiator.StatusGood) != (exit != 0) {
				t.Fatalf("EXIT FAILURE MODE with AUSE=%02x: %+v, %v", exit, exited, err)
			}
			if exit == 0 {
				if res := overwrite(t, c, 0); res.Status != initiator.StatusGood {
					t.Fatalf("%+v", res)
				}
			}
			s.end(t, syscall.SIGKILL)
			c = start()
			if got := senseOf(t, c, 0); got != ready {
				t.Fatalf("sense %x, expected that all is well", got)
			}
			c.Close()
			s.end(t, syscall.SIGTERM)
		}
	}
}
