package daemon

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/initiator"
)

// registrant changes its key again and again, with APTPL.
type registrant struct {
	*initiator.Conn
	acknowledged uint64 // the last key that the server has taken
	sent         uint64 // the last key that the server was sent
}

// register sends REGISTER AND IGNORE EXISTING KEY.
func (r *registrant) register(key uint64) error {
	list := binary.BigEndian.AppendUint64(make([]byte, 8), key)
	list = append(list, 0, 0, 0, 0, 1, 0, 0, 0)
	r.sent = key
	result, err := r.Command([]byte{0x5f, 6, 0, 0, 0, 0, 0, 0, byte(len(list)), 0}, 0, list, 0)
	if err != nil {
		return err
	}
	if result.Status != initiator.StatusGood {
		return fmt.Errorf("status %02x, sense %x", result.Status, result.Sense)
	}
	r.acknowledged = key
	return nil
}

// keys sends READ KEYS.
func (r *registrant) keys(t *testing.T) (out []uint64) {
	t.Helper()
	result, err := r.Command([]byte{0x5e, 0, 0, 0, 0, 0, 0, 4, 0, 0}, 0, nil, 1024)
	if err != nil || result.Status != initiator.StatusGood {
		t.Fatalf("%+v, %v", result, err)
	}
	for rest := result.In[8:]; len(rest) > 0; rest = rest[8:] {
		out = append(out, binary.BigEndian.Uint64(rest))
	}
	return out
}

// TestReservationsSurviveKill: what was acknowledged is there after kill -9 at
// any moment; what was not may be.
func TestReservationsSurviveKill(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "tgtd.yaml")
	writeFile(t, config, `
server: {threads: 1, buffers-per-thread: 8MiB}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {v: {type: ram, size: 1MiB}}
targets: {"iqn.2026-11.test:t": {luns: {0: v}}}
`)
	r := &registrant{}
	for round := range 8 {
		s := serveChild(t, "-c", config, "--state-dir", dir)
		r.Conn = dial(t, s.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
		settle(t, r.Conn, 0)
		if found := r.keys(t); round > 0 && (len(found) != 1 || found[0] != r.acknowledged && found[0] != r.sent) {
			t.Fatalf("round %d: keys %d, expected %d or %d", round, found, r.acknowledged, r.sent)
		}
		first := make(chan error, 1)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			first <- r.register(r.sent + 1)
			for r.register(r.sent+1) == nil {
			}
		}()
		if err := <-first; err != nil {
			t.Fatalf("round %d: %v\n%s", round, err, s.log)
		}
		s.end(t, syscall.SIGKILL)
		<-ended
	}
	files, err := filepath.Glob(filepath.Join(dir, "reservations", "v-*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v: expected one file", files, err)
	}
	if err := os.Truncate(files[0], 20); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	status := run(t.Context(), []string{"serve", "-c", config, "--state-dir", dir}, cli.Console{Out: io.Discard, Err: &log})
	if status != cli.ExitFailure || !strings.Contains(log.String(), files[0]) || !strings.Contains(log.String(), "volume v: reservations") {
		t.Errorf("with a damaged file: status %d, %s", status, log.String())
	}
}
