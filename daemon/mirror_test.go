package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

const mirrorConfig = `
server: {buffers-per-thread: 8MiB}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes:
  m: {type: mirror, members: [a.img, b.img], size: 4MiB, held: 8MiB, window: 20ms}
  x: {type: file, path: slow.img, size: 4MiB, excess: fast.img, excess-size: 16MiB, excess-writes: 100}
targets: {"iqn.2026-11.test:t": {luns: {0: m, 1: x}}}
`

// api is the server's control API.
func (l *live) api(t *testing.T) *control.Client {
	t.Helper()
	api, err := control.Dial(filepath.Join(l.dir, control.SocketName))
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// volume is what is told of one.
func (l *live) volume(t *testing.T, name string) control.Volume {
	t.Helper()
	status, err := l.api(t).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range status.Volumes {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("no volume %s", name)
	return control.Volume{}
}

// TestMirrorAndExcess: data written to a mirror are on both members after a stop, those in
// excess on the slow device; a member that is missing at a start is told, and gets what it
// lacks when it is taken back.
func TestMirrorAndExcess(t *testing.T) {
	l := &live{&controlled{t: t, dir: t.TempDir()}, mirrorConfig, nil}
	l.file = filepath.Join(l.dir, "tgtd.yaml")
	writeFile(t, l.file, l.text)
	begin := func() *initiator.Conn {
		l.serving = serve(t, "-c", l.file, "--state-dir", l.dir)
		c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
		settle(t, c, 0)
		settle(t, c, 1)
		return c
	}
	image := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(l.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	c := begin()
	var want [2][]byte
	for lun := range uint64(2) {
		for i := range 20 {
			want[lun] = pattern(1, i)
			transfer(t, c, cdb10(0x2a, 8), lun, want[lun], 0)
		}
		if got := transfer(t, c, cdb10(0x28, 8), lun, nil, 64<<10); !bytes.Equal(got, want[lun]) {
			t.Errorf("LUN %d: what was written is not read", lun)
		}
	}
	if x := l.volume(t, "x").Excess; x == nil || x.Fast == 0 {
		t.Errorf("found %+v, expected writes in excess", x)
	}
	l.stop()
	a, b := image("a.img"), image("b.img")
	if !bytes.Equal(a, b) || !bytes.Equal(a[8*512:][:64<<10], want[0]) {
		t.Error("the members differ from what was written, or from each other")
	}
	if !bytes.Equal(image("slow.img")[8*512:][:64<<10], want[1]) {
		t.Error("writes in excess are not on the slow device after a stop")
	}

	if err := os.Rename(filepath.Join(l.dir, "b.img"), filepath.Join(l.dir, "away")); err != nil {
		t.Fatal(err)
	}
	c = begin()
	v := l.volume(t, "m")
	if v.Mirror == nil || !strings.HasSuffix(v.Mirror.Missing, "b.img") || v.Health.State != control.HealthDegraded {
		t.Errorf("found %+v and %+v, expected a mirror without a member", v.Mirror, v.Health)
	}
	want[0] = pattern(1, 77)
	transfer(t, c, cdb10(0x2a, 8), 0, want[0], 0)
	if _, err := l.api(t).Resync(t.Context(), "m"); err == nil {
		t.Error("a member was taken back that is not there")
	}
	if _, err := l.api(t).Resync(t.Context(), "x"); err == nil {
		t.Error("a volume without members was resynchronised")
	}
	if err := os.Rename(filepath.Join(l.dir, "away"), filepath.Join(l.dir, "b.img")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.api(t).Resync(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the mirror is well", func() bool { return l.volume(t, "m").Health.State == control.HealthOK })
	if out := l.tgtd(cli.ExitOK, "volume", "scrub", "m"); !strings.Contains(out, "alike") {
		t.Errorf("found %q, expected members that are alike", out)
	}
	l.tgtd(cli.ExitFailure, "volume", "scrub", "x")
	l.stop()
	if a, b := image("a.img"), image("b.img"); !bytes.Equal(a, b) || !bytes.Equal(a[8*512:][:64<<10], want[0]) {
		t.Error("the member that is back has other data")
	}
}
