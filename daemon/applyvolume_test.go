package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/initiator"
)

const volumesTarget = "iqn.2026-11.test:t"

// volumesConfig has volumes whose keys are changed while they are open.
const volumesConfig = `
server: {threads: 2, buffers-per-thread: 8MiB}
cache: {size: 32MiB, block-size: 64KiB%s}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes:
  back: {type: file, path: back.img, size: 4MiB, write: back, cache: {flush-age: 1h}}
  plain: {type: file, path: plain.img, size: 4MiB}
  fixed: {type: file, path: fixed.img, read-only: true}
targets:
  iqn.2026-11.test:t: {luns: {0: back, 1: plain, 2: fixed}}
`

// TestApplyVolumes: what can change of an open volume does, its initiators are
// told, and nothing that was acknowledged is lost.
func TestApplyVolumes(t *testing.T) {
	l := serveVolumes(t)
	c := dial(t, l.portal, initiator.Options{Target: volumesTarget})
	for lun := range uint64(3) {
		settle(t, c, lun)
	}
	put := func(round int) {
		t.Helper()
		transfer(t, c, cdb10(0x2a, 1), 0, pattern(0, round), 0)
	}
	written := func(round int, want bool) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(l.dir, "back.img"))
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Equal(data[512:512+64<<10], pattern(0, round)); got != want {
			t.Errorf("round %d: found it in the file: %t, expected %t", round, got, want)
		}
	}
	writeCache := func(lun uint64, want bool) {
		t.Helper()
		if page := transfer(t, c, []byte{0x1a, 0x08, 0x08, 0, 0xff, 0}, lun, nil, 255); page[6]&0x04 != 0 != want {
			t.Errorf("LUN %d: found caching mode page % x, expected WCE %t", lun, page, want)
		}
	}
	const back, through, inSync = "write: back, cache: {flush-age: 1h}", "write: through, cache: {min: 1MiB, max: 8MiB}", "write: sync, cache: true"

	put(1)
	written(1, false)
	l.apply(cli.ExitOK, []string{back, through}, `volumes.back.write: "through", was "back"`, "volumes.back.cache.min: 1MiB, was 0B",
		"volumes.back.write: all that was in the cache has been written")
	written(1, true)
	put(2)
	written(2, true)
	l.sense(c, 0, 0, 0)
	writeCache(0, true)
	l.apply(cli.ExitOK, []string{through, inSync}, `volumes.back.write: "sync", was "through"`)
	l.sense(c, 0, 0x2a, 0x01)
	writeCache(0, false)
	put(3)
	written(3, true)
	l.apply(cli.ExitOK, []string{inSync, back}, `volumes.back.write: "back", was "sync"`)
	l.sense(c, 0, 0x2a, 0x01)
	writeCache(0, true)
	put(4)
	written(4, false)
	l.apply(cli.ExitOK, []string{"block-size: 64KiB", "block-size: 64KiB, dirty-limit: 1MiB"}, "cache.dirty-limit: 1MiB, was 50%")

	plain := "plain: {type: file, path: plain.img, size: 4MiB"
	l.apply(cli.ExitOK, []string{plain, plain + ", write: sync, threads: 2, soft-threshold: 1MiB, sanitize-rate: 10MiB"},
		`volumes.plain.write: "sync", was "through"`, "volumes.plain.soft-threshold", "volumes.plain.threads: 2, was auto", "volumes.plain.sanitize-rate")
	l.sense(c, 1, 0x2a, 0x01)
	writeCache(1, false)
	l.apply(cli.ExitOK, []string{"write: sync, threads: 2, soft-threshold: 1MiB, sanitize-rate: 10MiB", "read-only: true"}, "volumes.plain.read-only: true, was false")
	l.sense(c, 1, 0x2a, 0x01)
	if r, err := c.Command(write, 1, make([]byte, 512), 0); err != nil || r.Status != initiator.StatusCheckCondition {
		t.Errorf("found status %#x, %v, expected that nothing can be written", r.Status, err)
	}
	l.apply(cli.ExitOK, []string{plain + ", read-only: true", plain}, "volumes.plain.read-only: false, was true")
	l.sense(c, 1, 0x2a, 0x01)
	transfer(t, c, write, 1, make([]byte, 512), 0)

	for _, refused := range []struct {
		replace []string
		want    []string
	}{
		{[]string{plain, plain + ", block-size: 4096"}, []string{"needs a restart", "volumes.plain.block-size"}},
		{[]string{"  plain:", "  renamed:", "1: plain", "1: renamed"}, []string{"volume renamed: found the file or device of volume plain", "Apply the configuration without either first"}},
	} {
		l.allow = []string{"--yes"}
		l.apply(cli.ExitFailure, refused.replace, append(refused.want, "was not applied, and nothing was changed")...)
	}
	for lun := range uint64(3) {
		l.sense(c, lun, 0, 0)
	}
	if got := transfer(t, c, cdb10(0x28, 1), 0, nil, 64<<10); !bytes.Equal(got, pattern(0, 4)) {
		t.Error("what was written last is not there")
	}
	l.apply(cli.ExitOK, []string{back, "write: through, cache: true"}, "all that was in the cache has been written")
	written(4, true)
	logout(t, c)
}

// TestApplyRenamed: a target of another name serves the same volumes at once, and a
// volume has another name in two steps.
func TestApplyRenamed(t *testing.T) {
	l := serveLive(t, liveConfig)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:u"})
	settle(t, c, 0)
	transfer(t, c, write, 0, bytes.Repeat([]byte{7}, 512), 0)
	l.allow = []string{"--yes"}
	l.apply(cli.ExitOK, []string{"iqn.2026-11.test:u", "iqn.2026-11.test:w"}, "targets.iqn.2026-11.test:u: removed", "targets.iqn.2026-11.test:w: new", "targets.iqn.2026-11.test:u: sessions asked to log out: 1")
	l.asked(c)
	logout(t, c)
	c = dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:w"})
	settle(t, c, 0)
	if got := transfer(t, c, readOne, 0, nil, 512); got[0] != 7 {
		t.Error("the volume is another one")
	}

	const file, renamed = "  file: {type: file, path: file, size: 1MiB}\n", "  renamed: {type: file, path: file, size: 1MiB}\n"
	const target = "  iqn.2026-11.test:t: {luns: {0: file}, auth-group: hosts}\n"
	l.apply(cli.ExitFailure, []string{file, renamed, "{0: file}", "{0: renamed}"}, "volume renamed: found the file or device of volume file")
	l.apply(cli.ExitOK, []string{file, "", target, ""}, "volumes.file: removed")
	l.apply(cli.ExitOK, []string{"volumes:\n", "volumes:\n" + renamed, "targets:\n", "targets:\n" + strings.Replace(target, "file", "renamed", 1)}, "volumes.renamed: new")
	c = dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t", CHAP: chap("the first secret")})
	settle(t, c, 0)
}

// TestHangupObjects: SIGHUP changes volumes and targets as apply does, and what is
// wrong with a file leaves everything as it was.
func TestHangupObjects(t *testing.T) {
	l := serveLive(t, liveConfig)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:u"})
	settle(t, c, 0)
	hangUp := func(replace []string, want string) {
		t.Helper()
		writeFile(t, l.file, strings.NewReplacer(replace...).Replace(l.text))
		l.hangUp(t, want)
	}
	hangUp([]string{"ram, size: 1MiB", "ram, size: 2MiB", "{luns: {0: ram}}", "{luns: {0: rum}}"}, "nothing was changed")
	l.sense(c, 0, 0, 0)
	hangUp([]string{"ram, size: 1MiB", "ram, size: 2MiB", "{luns: {0: ram}}", "{luns: {0: ram, 1: file}}"}, "outcome=done")
	told := [][2]byte{senseOf(t, c, 0), senseOf(t, c, 0)}
	if !slices.Contains(told, [2]byte{0x2a, 0x09}) || !slices.Contains(told, [2]byte{0x3f, 0x0e}) {
		t.Errorf("found unit attentions %x, expected that capacity and LUNs have changed", told)
	}
	settle(t, c, 1)
	if _, blocks, err := c.Capacity(0); err != nil || blocks != 4096 {
		t.Errorf("found %d blocks, %v", blocks, err)
	}
	logout(t, c)
}
