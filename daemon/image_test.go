package daemon

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"lunar/backstore/rbd"
	"lunar/backstore/rbd/fake"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

const imageConfig = `
server: {buffers-per-thread: 8MiB}
cache: {size: 16MiB, block-size: 64KiB, segment: none}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
ceph: {main: {config: /etc/ceph/ceph.conf, user: lunar}}
volumes:
  db: {type: rbd, ceph: main, image: rbd/db}
  cached: {type: rbd, ceph: main, image: rbd/cached, cache: true}
  ram: {type: ram, size: 1MiB}
targets: {"iqn.2026-11.test:t": {luns: {0: db, 1: cached, 2: ram}}}
`

// clusterOf is a cluster with images, which servers use from now on.
func clusterOf(t *testing.T, names ...string) *fake.Cluster {
	t.Helper()
	cluster, open := fake.New(nil), openRBD
	for _, name := range names {
		cluster.Create(name, 1<<20)
	}
	openRBD = cluster.Library
	t.Cleanup(func() { openRBD = open; cluster.Close() })
	return cluster
}

func serveImages(t *testing.T) (*live, *fake.Cluster) {
	t.Helper()
	cluster := clusterOf(t, "rbd/db", "rbd/cached", "rbd/more")
	l := &live{&controlled{t: t, dir: t.TempDir()}, imageConfig, nil}
	l.file = filepath.Join(l.dir, "tgtd.yaml")
	writeFile(t, l.file, l.text)
	l.serving = serve(t, "-c", l.file, "--state-dir", l.dir)
	return l, cluster
}

// TestImages: what initiators write to volumes of type rbd is in the cluster's images, whose
// pool is their device; images come and go while the server runs.
func TestImages(t *testing.T) {
	l, cluster := serveImages(t)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	for lun := range uint64(2) {
		settle(t, c, lun)
		want := pattern(1, int(lun))
		transfer(t, c, cdb10(0x2a, 8), lun, want, 0)
		if got := transfer(t, c, cdb10(0x28, 8), lun, nil, 64<<10); !bytes.Equal(got, want) {
			t.Errorf("LUN %d: what was written is not read", lun)
		}
	}
	if mode := transfer(t, c, []byte{0x1a, 0, 8, 0, 64, 0}, 0, nil, 64); mode[4+2]&4 != 0 {
		t.Error("found a volatile write cache: acknowledged writes are on all replicas")
	}
	transfer(t, c, []byte{0x42, 8: 24, 9: 0}, 0, append([]byte{0, 22, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0, 0, 0, 0), 0) // UNMAP of nothing
	l.device("rbd/main/rbd")
	if v := l.volume(t, "db"); v.Type != "rbd" || v.Health.State != control.HealthOK {
		t.Errorf("found %s, %+v", v.Type, v.Health)
	}
	l.apply(cli.ExitOK, []string{"ceph: {main:", "ceph: {other: {}, main:", "  ram:", "  more: {type: rbd, ceph: other, image: rbd/more}\n  ram:", "2: ram", "2: ram, 3: more"}, "volumes.more: new", "ceph.other: new")
	if cluster.Owner("rbd/more") == "" {
		t.Error("the image that was added is not locked")
	}
	l.apply(cli.ExitFailure, []string{"image: rbd/db}", "image: rbd/none}"}, "volumes.db.image", "restart")
	l.apply(cli.ExitFailure, []string{"user: lunar", "user: other"}, "ceph.main.user", "restart")
	l.allow = []string{"--yes"}
	l.apply(cli.ExitOK, []string{"  more: {type: rbd, ceph: other, image: rbd/more}\n", "", ", 3: more", "", "other: {}, ", ""}, "volumes.more: removed")
	eventually.Holds(t, "the image that was removed is free", func() bool { return cluster.Owner("rbd/more") == "" })
	l.stop()
	if cluster.Owner("rbd/db") != "" || len(cluster.Noted("rbd/db")) != 0 {
		t.Errorf("found owner %q and notes %v after a stop", cluster.Owner("rbd/db"), cluster.Noted("rbd/db"))
	}
}

// TestImageResized: initiators see the size that an image gets in the cluster.
func TestImageResized(t *testing.T) {
	l, cluster := serveImages(t)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	for lun, name := range []string{"rbd/db", "rbd/cached"} {
		lun := uint64(lun)
		settle(t, c, lun)
		for _, size := range []int64{2 << 20, 1 << 19} {
			cluster.Resize(name, size)
			eventually.Holds(t, "the initiator is told of the size", func() bool { return senseOf(t, c, lun) == [2]byte{0x2a, 0x09} })
			if block, blocks, err := c.Capacity(lun); err != nil || uint64(block)*blocks != uint64(size) {
				t.Errorf("found %d blocks of %d, %v, expected %d bytes", blocks, block, err, size)
			}
		}
		transfer(t, c, cdb10(0x2a, 8), lun, pattern(1, 5), 0)
	}
	l.has(l.tgtd(cli.ExitOK, "rescan", "db"), "524288")
}

// TestImageFenced: a volume whose server was fenced says so, fails its commands as a disk that
// is gone, and is served by a new instance once the volume is there anew. Others go on.
func TestImageFenced(t *testing.T) {
	l, cluster := serveImages(t)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	for lun := range uint64(3) {
		settle(t, c, lun)
	}
	cluster.Block(cluster.Owner("rbd/db"))
	if r, err := c.Command(cdb10(0x2a, 8), 0, pattern(1, 1), 0); err != nil || r.Status != 2 {
		t.Fatalf("found %+v, %v, expected CHECK CONDITION", r, err)
	} else if key, asc, _ := r.SenseKey(); key != 2 || asc != 4 {
		t.Errorf("found sense %x/%02x, expected NOT READY", key, asc)
	}
	if h := l.volume(t, "db").Health; h.State != control.HealthFailed || !strings.Contains(h.Troubles[0].What, "blocklisted") {
		t.Errorf("found health %+v", h)
	}
	transfer(t, c, cdb10(0x2a, 8), 2, pattern(1, 1), 0)
	l.apply(cli.ExitOK, nil, "volumes.db: opened anew")
	transfer(t, c, cdb10(0x2a, 8), 0, pattern(1, 2), 0)
	if h := l.volume(t, "db").Health; h.State != control.HealthOK {
		t.Errorf("found health %+v", h)
	}
}

// TestNoLibrbd: a server without Ceph's library serves what needs none, and refuses an image
// with the name of the package.
func TestNoLibrbd(t *testing.T) {
	clusterOf(t)
	openRBD = func() (rbd.Library, error) {
		return nil, errors.New("librbd.so.1: cannot open shared object file: No such file or directory (install Ceph's client library: package librbd1)")
	}
	text := strings.NewReplacer("  db: {type: rbd, ceph: main, image: rbd/db}\n  cached: {type: rbd, ceph: main, image: rbd/cached, cache: true}\n", "", "0: db, 1: cached, 2: ram", "2: ram").Replace(imageConfig)
	l := serveLive(t, text)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 2)
	l.apply(cli.ExitFailure, []string{"  ram:", "  db: {type: rbd, ceph: main, image: rbd/db}\n  ram:"}, "volume db: rbd image rbd/db: librbd.so.1: cannot open shared object file", "package librbd1")
	transfer(t, c, cdb10(0x2a, 8), 2, pattern(1, 1), 0)
}
