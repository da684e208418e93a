package daemon

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"lunar/control"
	"lunar/control/token"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// generation is a block of 64 KiB that tells of each of its bytes by which write they
// came.
func generation(g uint64) []byte {
	block := make([]byte, 64<<10)
	for at := 0; at < len(block); at += 8 {
		binary.BigEndian.PutUint64(block[at:], g)
	}
	return block
}

// generationOf fails if the block is of more than one.
func generationOf(t *testing.T, where string, block []byte) uint64 {
	t.Helper()
	g := binary.BigEndian.Uint64(block)
	for at := 0; at < len(block); at += 8 {
		if of := binary.BigEndian.Uint64(block[at:]); of != g {
			t.Fatalf("%s: found data of generation %d and %d in one block", where, g, of)
		}
	}
	return g
}

// TestFreezeForCopies: what is copied of two frozen volumes has everything that was
// acknowledged before, nothing torn, and no write to one volume without the write to the
// other that it followed.
func TestFreezeForCopies(t *testing.T) {
	const blocks, rounds = 16, 4
	l := serveVolumes(t)
	c := dial(t, l.portal, initiator.Options{Target: volumesTarget})
	for lun := range uint64(2) {
		settle(t, c, lun)
	}
	var acknowledged atomic.Uint64 // the last generation that both volumes have
	stop, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		for g := uint64(1); ; g++ {
			for lun := range uint64(2) {
				r, err := c.Command(cdb10(0x2a, uint32(g%blocks)*128), lun, generation(g), 0)
				if err != nil || r.Status != 0 {
					stopped <- fmt.Errorf("generation %d: %v, status %v", g, err, r)
					return
				}
			}
			acknowledged.Store(g)
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
		}
	}()
	for round := range rounds {
		before := acknowledged.Load()
		eventually.Holds(t, "more is written", func() bool { return acknowledged.Load() > before+blocks })
		before = acknowledged.Load()
		script := fmt.Sprintf("cp --reflink=auto back.img copy0.img && cp --reflink=auto plain.img copy%d.img", 1)
		l.has(l.tgtd(cli.ExitOK, "volume", "freeze", "back", "plain", "--exec", "cd "+l.dir+" && "+script), "Thawed: back, plain.")
		var newest [2]uint64
		for lun := range 2 {
			copied, err := os.ReadFile(filepath.Join(l.dir, fmt.Sprintf("copy%d.img", lun)))
			if err != nil {
				t.Fatal(err)
			}
			for at := range blocks {
				where := fmt.Sprintf("round %d, copy %d, block %d", round, lun, at)
				g := generationOf(t, where, copied[at<<16:(at+1)<<16])
				newest[lun] = max(newest[lun], g)
				// The last generation of this block that was acknowledged before.
				if due := before - (before+blocks-uint64(at))%blocks; g < due {
					t.Errorf("%s: found generation %d, expected at least %d, which was acknowledged before", where, g, due)
				}
			}
		}
		if newest[0] < newest[1] || newest[0] > newest[1]+1 {
			t.Errorf("round %d: the first volume has generation %d, and the second %d", round, newest[0], newest[1])
		}
	}
	close(stop)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// TestFrozenAnswers: while a volume is frozen, its initiators are answered whatever is
// not about its data, and can take commands back; nothing of it changes.
func TestFrozenAnswers(t *testing.T) {
	l := serveVolumes(t)
	c := dial(t, l.portal, initiator.Options{Target: volumesTarget})
	for lun := range uint64(2) {
		settle(t, c, lun)
	}
	l.has(l.tgtd(cli.ExitOK, "volume", "freeze", "plain", "--deadline", "5m"), "Frozen: plain.")
	start := func(cdb []byte, out []byte, in int) *initiator.Task {
		task, err := c.Start(initiator.Command{CDB: cdb, LUN: 1, Out: out, InLen: in})
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	writes := []*initiator.Task{start(cdb10(0x2a, 0), generation(1), 0), start(cdb10(0x2a, 0), generation(2), 0), start(cdb10(0x2a, 256), generation(3), 0)}
	read := start(cdb10(0x28, 512), nil, 64<<10)
	if err := c.Ping([]byte("there")); err != nil {
		t.Error(err)
	}
	l.sense(c, 1, 0, 0)
	list := append(make([]byte, 8), make([]byte, 16)...)
	list[15] = 7
	if r, err := c.Command([]byte{0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0}, 1, list, 0); err != nil || r.Status != 0 {
		t.Errorf("found %v, %v, expected that a reservation key is registered", r, err)
	}
	transfer(t, c, cdb10(0x2a, 0), 0, generation(9), 0) // another volume
	if code, err := c.TaskManagement(initiator.TaskRequest{Function: 1, LUN: 1, Referenced: writes[1]}); err != nil || code != 0 {
		t.Errorf("ABORT TASK: found %d, %v", code, err)
	}
	c.Forget(writes[1])

	l.has(l.tgtd(cli.ExitOK, "status"), "freeze: volume plain is frozen")
	var v struct {
		Volumes []struct {
			Name   string
			Frozen *struct{ Until string }
		}
	}
	api := dialControl(t, l.dir)
	if err := api.Get(t.Context(), "/v1/volumes", &v); err != nil {
		t.Fatal(err)
	}
	for _, one := range v.Volumes {
		if frozen := one.Frozen != nil; frozen != (one.Name == "plain") {
			t.Errorf("volume %s: found frozen %t", one.Name, frozen)
		}
	}
	l.has(l.tgtd(cli.ExitFailure, "volume", "freeze", "back", "plain"), "volume plain is frozen already")
	l.has(l.tgtd(cli.ExitFailure, "volume", "freeze", "nothing"), "found no volume nothing")
	if said := l.tgtd(cli.ExitFailure, "volume", "thaw", "nothing"); strings.Contains(said, "could not be frozen") {
		t.Errorf("found %q: a name that no volume has is remembered", said)
	}
	l.has(l.tgtd(cli.ExitFailure, "volume", "freeze", "back", "--deadline", "1h"), "expected a time from 1s to 5m0s")
	writeFile(t, l.file, strings.Replace(l.text, "size: 4MiB}", "size: 8MiB}", 1))
	l.has(l.tgtd(cli.ExitFailure, "apply", l.file), "volume plain is frozen until")

	l.has(l.tgtd(cli.ExitOK, "volume", "thaw", "plain"), "Thawed: plain.")
	for _, task := range []*initiator.Task{writes[0], writes[2], read} {
		if r, err := c.Wait(task); err != nil || r.Status != 0 {
			t.Errorf("found %v, %v of a command that was held", r, err)
		}
	}
	if got := transfer(t, c, cdb10(0x28, 0), 1, nil, 64<<10); generationOf(t, "block 0", got) != 1 {
		t.Error("a write that was taken back is on the volume")
	}
	l.has(l.tgtd(cli.ExitFailure, "volume", "thaw", "plain"), "it is not frozen", "it was asked for")
	l.has(l.tgtd(cli.ExitOK, "apply", l.file), "volumes.plain.size: 8MiB")

	// A reset ends what is held, and so does the end of the session.
	l.has(l.tgtd(cli.ExitOK, "volume", "freeze", "plain", "back"), "Frozen: back, plain.")
	held := start(cdb10(0x2a, 0), generation(4), 0)
	if code, err := c.TaskManagement(initiator.TaskRequest{Function: 5, LUN: 1}); err != nil || code != 0 {
		t.Errorf("LOGICAL UNIT RESET: found %d, %v", code, err)
	}
	c.Forget(held)
	start(cdb10(0x2a, 0), generation(5), 0)
	c.Close()
	dial(t, l.portal, initiator.Options{Target: volumesTarget}).Close() // the same initiator port
	l.has(l.tgtd(cli.ExitOK, "volume", "thaw", "back"), "Thawed: back, plain.")
}

func dialControl(t *testing.T, dir string) *control.Client {
	t.Helper()
	api, err := control.Dial(filepath.Join(dir, "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	return api
}

// TestFreezeOfWhoIsRevoked: a freeze that needs its client ends when the client may not
// hold it any more, for it could not thaw it either.
func TestFreezeOfWhoIsRevoked(t *testing.T) {
	l := serveVolumes(t)
	in := func(name string) string { return filepath.Join(l.dir, name) }
	selfSigned(t, in("pem"), in("key"))
	text, e, err := token.New(control.Operate, "ops")
	if err == nil {
		err = token.Add(in("tokens"), e)
	}
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, in("token"), text)
	section := control.Object{"listen": "127.0.0.1:0", "certificate-file": in("pem"), "key-file": in("key"), "token-file": in("tokens")}
	if _, err := dialControl(t, l.dir).Patch(t.Context(), control.SettingsAt("server"), control.Object{"control": section}, control.Permissions{}, control.Condition{}); err != nil {
		t.Fatal(err)
	}
	eventually.Says(t, l.log.String, `control API over TLS" address=`)
	_, at, _ := strings.Cut(l.log.String(), `control API over TLS" address=`)
	api, err := control.DialRemote(control.Remote{URL: "https://" + strings.Fields(at)[0], Token: in("token"), CA: in("pem")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	if _, err := api.Freeze(t.Context(), "plain", control.Freeze{Deadline: "5m", Attended: true}); err != nil {
		t.Fatal(err)
	}
	if err := token.Remove(in("tokens"), "ops"); err != nil {
		t.Fatal(err)
	}
	eventually.Says(t, l.log.String, "the client that asked for it may not any more")
}

// TestFreezeEnds: a volume thaws by itself, and who thaws it too late is told.
func TestFreezeEnds(t *testing.T) {
	l := serveVolumes(t)
	c := dial(t, l.portal, initiator.Options{Target: volumesTarget})
	settle(t, c, 1)
	wait := func() {
		t.Helper()
		transfer(t, c, cdb10(0x2a, 0), 1, generation(1), 0)
	}
	l.has(l.tgtd(cli.ExitOK, "volume", "freeze", "plain", "--deadline", "1s"), "Frozen")
	wait()
	eventually.Holds(t, "it is thawed", func() bool {
		return strings.Contains(l.tgtd(cli.ExitFailure, "volume", "thaw", "plain"), "its deadline has passed")
	})
	l.has(l.tgtd(cli.ExitFailure, "volume", "freeze", "plain", "--exec", "exit 3"), "the command failed")
	wait()
	l.has(l.tgtd(cli.ExitFailure, "volume", "freeze", "plain", "--deadline", "1s", "--exec", "sleep 60"), "not of one moment")
	wait()

	api := dialControl(t, l.dir)
	if _, err := api.Freeze(t.Context(), "plain", control.Freeze{Deadline: "5m", Attended: true}); err != nil {
		t.Fatal(err)
	}
	api.Close()
	wait()
	eventually.Says(t, l.log.String, "the client that asked for it was gone")

	l.has(l.tgtd(cli.ExitOK, "volume", "freeze", "back", "--deadline", "5m"), "Frozen")
	c.Close()
	if status := l.stop(); status != cli.ExitOK {
		t.Errorf("found exit status %d of a server that stopped with a frozen volume\n%s", status, l.log)
	}
	eventually.Says(t, l.log.String, "the server stops")
}
