package daemon

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/backstore/backstoretest"
	"lunar/internal/cli"
	"lunar/internal/initiator"
)

const encryptedSnapshots = `
server: {threads: 1, buffers-per-thread: 8MiB}
cache: {size: 32MiB, segment: %[2]s/lunar}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes:
  back: {type: file, path: %[1]s/back.img, size: 4MiB, write: back, cache: {flush-age: 1h}, encryption: {key-file: %[1]s/key, header-file: %[1]s/elsewhere.header}}
  plain: {type: file, path: %[1]s/plain.img, size: 4MiB}
targets: {"iqn.2026-11.test:t": {luns: {0: back, 1: plain}}}
`

// TestEncryptedSnapshots: a snapshot of an encrypted volume has cipher text alone, a clone of it
// a header of its own, and both end with the master key: after a cryptographic erase nothing is
// cloned or rolled back, however many snapshots there are, and the clone lives on.
func TestEncryptedSnapshots(t *testing.T) {
	disks := backstoretest.Reflink(t, "xfs")
	writeFile(t, filepath.Join(disks, "key"), strings.Repeat("\x90\xa1\xf2\x03", 8))
	l := serveLive(t, fmt.Sprintf(encryptedSnapshots, disks, memoryDir(t)))
	c := l.connect(t, "one")
	holds := func(c *initiator.Conn, lun uint64, round int) {
		t.Helper()
		if got := transfer(t, c, cdb10(0x28, 0), lun, nil, 64<<10); !bytes.Equal(got, pattern(0, round)) {
			t.Errorf("LUN %d: found %.40q, expected round %d", lun, got, round)
		}
	}
	write := func(round int) { transfer(t, c, cdb10(0x2a, 0), 0, pattern(0, round), 0) }
	write(1)
	l.tgtd(cli.ExitOK, "volume", "snapshot", "create", "back", "--name", "one")
	write(2)
	image, err := os.ReadFile(filepath.Join(disks, "back.img.snapshots", "one"))
	if err != nil || bytes.Contains(image, pattern(0, 1)[:32]) || bytes.Equal(image, make([]byte, len(image))) {
		t.Errorf("found %v, %.40q, expected cipher text", err, image)
	}
	l.tgtd(cli.ExitOK, "volume", "snapshot", "clone", "back", "one", "seen", "--read-only")
	l.tgtd(cli.ExitOK, "lun", "create", "iqn.2026-11.test:t", "3", "volume=seen")
	l.tgtd(cli.ExitOK, "volume", "snapshot", "clone", "back", "one", "copy")
	l.has(l.tgtd(cli.ExitFailure, "volume", "snapshot", "clone", "back", "one", "other", "--path", filepath.Join(disks, "copy.img")), "where nothing is")
	l.tgtd(cli.ExitOK, "lun", "create", "iqn.2026-11.test:t", "2", "volume=copy")
	other := l.connect(t, "other")
	for lun := range uint64(2) {
		settle(t, other, 2+lun)
		holds(other, 2+lun, 1)
	}
	if r, err := other.Command(cdb10(0x2a, 0), 3, pattern(0, 9), 0); err != nil || r.Status == 0 {
		t.Errorf("found %v, %v, expected that what is cloned to be read cannot be written to", r, err)
	}
	l.has(l.tgtd(cli.ExitOK, "volume", "snapshot", "rollback", "back", "one", "--force"), "What it held before is snapshot before-")
	attentions(t, c, 0)
	attentions(t, other, 0)
	holds(c, 0, 1)

	kept, err := filepath.Glob(filepath.Join(disks, "back.img.snapshots", "before-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("found %v, %v", kept, err)
	}
	l.tgtd(cli.ExitOK, "volume", "snapshot", "rollback", "back", filepath.Base(kept[0]), "--force", "--discard")
	attentions(t, c, 0)
	holds(c, 0, 2)

	transfer(t, c, []byte{0x48, 0x03, 0, 0, 0, 0, 0, 0, 0, 0}, 0, nil, 0)
	for _, args := range [][]string{{"rollback", "back", "one", "--force"}, {"clone", "back", "one", "late"}} {
		l.has(l.tgtd(cli.ExitFailure, append([]string{"volume", "snapshot"}, args...)...), "another master key since a cryptographic erase")
	}
	if names, err := filepath.Glob(filepath.Join(disks, "late*")); err != nil || len(names) > 0 {
		t.Errorf("found %v, %v, expected nothing of a clone that there is not", names, err)
	}
	holds(other, 2, 1)
	l.tgtd(cli.ExitOK, "volume", "snapshot", "delete", "back", "one")
	if code := l.stop(); code != 0 {
		t.Fatalf("exit status %d\n%s", code, l.log)
	}
	l.serving = serve(t, "-c", l.file, "--state-dir", l.dir)
	again := l.connect(t, "one")
	settle(t, again, 2)
	holds(again, 2, 1)
}

// TestSnapshotsStay: a snapshot that is served as it is cannot be made writable.
func TestSnapshotsStay(t *testing.T) {
	l, disks := serveSnapshots(t)
	l.tgtd(cli.ExitOK, "volume", "snapshot", "create", "plain", "--name", "one")
	l.tgtd(cli.ExitOK, "volume", "snapshot", "clone", "plain", "one", "seen", "--read-only")
	l.has(l.tgtd(cli.ExitFailure, "volume", "set", "seen", "read-only=false"), "is a snapshot, which must stay as it is")
	l.has(l.tgtd(cli.ExitFailure, "volume", "create", "more", "type=file", "path="+filepath.Join(disks, "back.img.snapshots", "..", "plain.img.snapshots", "one")), "")
	if v := l.volume(t, "seen"); v.Health.State != "ok" {
		t.Errorf("found %+v", v.Health)
	}
}

// TestCloneOfLink: a clone lies beside the file that a link leads to, in the file system whose
// blocks it shares.
func TestCloneOfLink(t *testing.T) {
	disks := backstoretest.Reflink(t, "xfs")
	link := filepath.Join(t.TempDir(), "link.img")
	writeFile(t, filepath.Join(disks, "real.img"), string(pattern(0, 1)))
	if err := os.Symlink(filepath.Join(disks, "real.img"), link); err != nil {
		t.Fatal(err)
	}
	l := serveLive(t, fmt.Sprintf(`
server: {threads: 1, buffers-per-thread: 8MiB}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {linked: {type: file, path: %s}}
targets: {"iqn.2026-11.test:t": {luns: {0: linked}}}
`, link))
	l.tgtd(cli.ExitOK, "volume", "snapshot", "create", "linked", "--name", "one")
	l.has(l.tgtd(cli.ExitOK, "volume", "snapshot", "clone", "linked", "one", "copy"), filepath.Join(disks, "copy.img"))
}

// TestProtectedSnapshots: a snapshot of a volume with protection information has that of the
// same moment, with which a clone is read, also when it is encrypted.
func TestProtectedSnapshots(t *testing.T) {
	disks := backstoretest.Reflink(t, "xfs")
	writeFile(t, filepath.Join(disks, "key"), strings.Repeat("\x90\xa1\xf2\x03", 8))
	l := serveLive(t, strings.ReplaceAll(fmt.Sprintf(encryptedSnapshots, disks, memoryDir(t)), "size: 4MiB", "size: 4MiB, protection: 1, snapshots: {every: 24h, keep: 3}"))
	c := l.connect(t, "one")
	writeBoth := func(round int) {
		for lun := range uint64(2) {
			for i := range 4 {
				transfer(t, c, cdb10(0x2a, uint32(i*512)), lun, pattern(i, round), 0)
			}
		}
	}
	writeBoth(1)
	l.tgtd(cli.ExitOK, "volume", "snapshot", "create", "back", "plain", "--name", "one")
	writeBoth(2)
	for lun, name := range []string{"back", "plain"} {
		l.tgtd(cli.ExitOK, "volume", "snapshot", "clone", name, "one", name+"-seen", "--read-only")
		l.tgtd(cli.ExitOK, "lun", "create", "iqn.2026-11.test:t", fmt.Sprint(lun+4), "volume="+name+"-seen")
		l.tgtd(cli.ExitOK, "volume", "snapshot", "clone", name, "one", name+"2")
		l.tgtd(cli.ExitOK, "lun", "create", "iqn.2026-11.test:t", fmt.Sprint(lun+2), "volume="+name+"2")
		l.tgtd(cli.ExitOK, "volume", "snapshot", "delete", name, "one")
	}
	holds := func() {
		t.Helper()
		c := l.connect(t, "other")
		for lun := range uint64(6) {
			settle(t, c, lun)
			for i := range 4 {
				if got := transfer(t, c, cdb10(0x28, uint32(i*512)), lun, nil, 64<<10); !bytes.Equal(got, pattern(i, 2-min(int(lun/2), 1))) {
					t.Errorf("LUN %d, part %d: found %.40q", lun, i, got)
				}
			}
		}
		for _, name := range []string{"back", "plain", "back2", "plain2", "back-seen", "plain-seen"} {
			if v := l.volume(t, name); v.Health.State != "ok" {
				t.Errorf("volume %s: found %+v", name, v.Health)
			}
		}
	}
	holds()
	if code := l.stop(); code != 0 {
		t.Fatalf("exit status %d\n%s", code, l.log)
	}
	l.serving = serve(t, "-c", l.file, "--state-dir", l.dir)
	holds()
	if left, err := filepath.Glob(filepath.Join(disks, "*.snapshots", "one")); err != nil || len(left) > 0 {
		t.Errorf("found %v, %v, expected that both files of a snapshot are deleted", left, err)
	}
}

// TestProtectedRollback: a volume with protection information is rolled back with it, also when
// it is encrypted, and what it held before can be rolled back to.
func TestProtectedRollback(t *testing.T) {
	disks := backstoretest.Reflink(t, "xfs")
	writeFile(t, filepath.Join(disks, "key"), strings.Repeat("\x90\xa1\xf2\x03", 8))
	l := serveLive(t, strings.ReplaceAll(fmt.Sprintf(encryptedSnapshots, disks, memoryDir(t)), "size: 4MiB", "size: 4MiB, protection: 1"))
	c := l.connect(t, "one")
	write := func(round int) {
		for lun := range uint64(2) {
			for i := range 4 {
				transfer(t, c, cdb10(0x2a, uint32(i*512)), lun, pattern(i, round), 0)
			}
		}
	}
	holds := func(round int) {
		t.Helper()
		c := l.connect(t, "other")
		for lun, name := range []string{"back", "plain"} {
			for i := range 4 {
				if got := transfer(t, c, cdb10(0x28, uint32(i*512)), uint64(lun), nil, 64<<10); !bytes.Equal(got, pattern(i, round)) {
					t.Errorf("%s, part %d: found %.40q", name, i, got)
				}
			}
			if v := l.volume(t, name); v.Health.State != "ok" {
				t.Errorf("volume %s: found %+v", name, v.Health)
			}
		}
	}
	write(1)
	l.tgtd(cli.ExitOK, "volume", "snapshot", "create", "back", "plain", "--name", "one")
	write(2)
	for lun, name := range []string{"back", "plain"} {
		l.has(l.tgtd(cli.ExitOK, "volume", "snapshot", "rollback", name, "one", "--force"), "What it held before is snapshot before-")
		attentions(t, c, uint64(lun))
	}
	holds(1)
	write(3)
	for lun, name := range []string{"back", "plain"} {
		glob(t, filepath.Join(disks, name+".img.pi.snapshots", "before-*"))
		before := filepath.Base(glob(t, filepath.Join(disks, name+".img.snapshots", "before-*")))
		l.tgtd(cli.ExitOK, "volume", "snapshot", "rollback", name, before, "--force", "--discard")
		attentions(t, c, uint64(lun))
	}
	holds(2)
	if code := l.stop(); code != 0 {
		t.Fatalf("exit status %d\n%s", code, l.log)
	}
	l.serving = serve(t, "-c", l.file, "--state-dir", l.dir)
	holds(2)
}

// glob is the only path that fits a pattern.
func glob(t *testing.T, pattern string) string {
	t.Helper()
	all, err := filepath.Glob(pattern)
	if err != nil || len(all) != 1 {
		t.Fatalf("%s: found %v, %v, expected one", pattern, all, err)
	}
	return all[0]
}
