package daemon

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"lunar/control"
	"lunar/internal/bulk"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// mover is a server of its own process on one side of a move.
type mover struct {
	*endpoint
	child *child
}

func (m *mover) start() {
	m.Helper()
	m.child = serveChild(m.T, "-c", m.file, "--state-dir", m.dir)
	api, err := control.Dial(filepath.Join(m.dir, control.SocketName))
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(api.Close)
	m.api = api
}

func newMover(t *testing.T, text string) *mover {
	t.Helper()
	dir := t.TempDir()
	m := &mover{endpoint: &endpoint{&objects{T: t, dir: dir, file: filepath.Join(dir, "tgtd.yaml")}, freePort(t)}}
	writeFile(t, m.file, text)
	return m
}

// noted returns how many blocks the journal has.
func (m *mover) noted() int64 {
	b, err := os.ReadFile(filepath.Join(m.dir, "copy.img.receiving.journal"))
	if err != nil {
		return 0
	}
	n := int64(0)
	for at := 4096; at+32 <= len(b); at += 32 {
		if !bytes.Equal(b[at:at+32], make([]byte, 32)) {
			n++
		}
	}
	return n
}

// whole reports whether the volume has its name.
func (m *mover) whole() bool {
	_, err := os.Stat(filepath.Join(m.dir, "copy.img"))
	return err == nil
}

// TestMoveKilled: whichever side is killed, and when, the same commands go on at the last
// block that is stored, and none is stored twice.
func TestMoveKilled(t *testing.T) {
	const kills, blocks, seed = 6, 144, 3
	random := rand.New(rand.NewPCG(seed, 2))
	data := make([]byte, blocks*bulk.BlockSize)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	from := newMover(t, `{portal-groups: {a: {listen: ["127.0.0.1:0"]}}, volumes: {disk: {type: file, path: disk.img}}}`)
	to := newMover(t, `{portal-groups: {a: {listen: ["127.0.0.1:0"]}}}`)
	writeFile(t, filepath.Join(from.dir, "disk.img"), string(data))
	from.start()
	to.start()
	key := filepath.Join(from.dir, "key")
	job := to.receiving(key)
	for kill := range kills {
		until := to.noted() + random.Int64N(12)
		out, status := from.lunar("volume", "send", "disk", to.at, "--key-file", key, "--rate", "100", "--async")
		if status != cli.ExitOK {
			t.Fatalf("found %d, %q", status, out)
		}
		send := strings.Fields(out)[1]
		eventually.Holds(t, "blocks are stored", func() bool {
			if j, err := from.api.Job(t.Context(), send); err != nil || j.Ended != nil && !to.whole() {
				t.Fatalf("found %+v, %v, with %d blocks stored\n%s\n%s", j, err, to.noted(), from.child.log, to.child.log)
			}
			return to.whole() || to.noted() > until
		})
		if kill%2 == 0 {
			_ = to.child.end(t, syscall.SIGKILL)
			at := to.noted()
			to.start()
			if to.whole() {
				break // what a machine does that takes a break itself
			}
			from.waited(send, "failed")
			job = to.receiving(key)
			if now := to.noted(); now != at || now <= until {
				t.Errorf("seed %d: found %d blocks after the receiver was killed with %d", seed, now, at)
			}
			continue
		}
		_ = from.child.end(t, syscall.SIGKILL)
		to.awaits(job)
		from.start()
		if to.whole() {
			break
		}
	}
	if !to.whole() {
		to.completed(from, job, key)
	}
	if !bytes.Equal(to.bytes("copy.img"), data) {
		t.Error("what was received is not what was sent")
	}
	for _, m := range []*mover{from, to} {
		if err := m.child.end(t, syscall.SIGTERM); err != nil {
			t.Errorf("%v\n%s", err, m.child.log)
		}
	}
}

// completed sends what is missing, and no more.
func (m *mover) completed(from *mover, job, key string) {
	m.Helper()
	kept := m.noted()
	out, status := from.lunar("volume", "send", "disk", m.at, "--key-file", key)
	m.waited(job, "done")
	j, err := m.api.Job(m.Context(), job)
	var got control.ReceivedVolume
	if err == nil {
		err = j.Into(&got)
	}
	if want := fmt.Sprintf("there already %d,", kept); status != cli.ExitOK || kept == 0 || !strings.Contains(out, want) {
		m.Errorf("found %d, %q, expected %s", status, out, want)
	}
	if err != nil || !got.Served || got.Kept != kept || got.Stored+got.Kept != bulk.Blocks(got.Size) || got.Repeated != 0 {
		m.Errorf("found %+v, %v, with %d blocks before", got, err, kept)
	}
}
