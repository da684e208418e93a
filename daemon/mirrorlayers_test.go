package daemon

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// layeredConfig has both kinds of two stores as one below a cache that writes back, and
// encryption.
const layeredConfig = `
server: {buffers-per-thread: 8MiB}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
cache: {size: 16MiB, huge: off, segment: segment}
volumes:
  m: {type: mirror, members: [a.img, b.img], size: 4MiB, held: 8MiB, window: 20ms, write: back, cache: true, encryption: {key-file: key, header-file: m.header}}
  x: {type: file, path: slow.img, size: 4MiB, excess: fast.img, excess-size: 16MiB, excess-writes: 100, write: back, cache: true, encryption: {key-file: key}}
targets: {"iqn.2026-11.test:t": {luns: {0: m, 1: x}}}
`

// TestLayersAboveMirrorAndExcess: they are resized while they are used, keep what was
// written over a restart, have nothing in clear on their media, and take no other header.
func TestLayersAboveMirrorAndExcess(t *testing.T) {
	dir := t.TempDir()
	l := &live{&controlled{t: t, dir: dir}, strings.Replace(layeredConfig, "segment: segment", "segment: "+memoryDir(t), 1), nil}
	l.file = filepath.Join(dir, "tgtd.yaml")
	writeFile(t, l.file, l.text)
	writeFile(t, filepath.Join(dir, "key"), strings.Repeat("9f", 32))
	begin := func() *initiator.Conn {
		l.serving = serve(t, "-c", l.file, "--state-dir", dir)
		c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
		settle(t, c, 0)
		settle(t, c, 1)
		return c
	}
	check := func(c *initiator.Conn, lba uint32, want []byte) {
		t.Helper()
		for lun := range uint64(2) {
			if got := transfer(t, c, cdb10(0x28, lba), lun, nil, 64<<10); !bytes.Equal(got, want) {
				t.Errorf("LUN %d, block %d: what was written is not read", lun, lba)
			}
		}
	}
	const last = 8<<20/512 - 128
	first, grown := pattern(1, 1), pattern(2, 2)
	c := begin()
	for lun := range uint64(2) {
		transfer(t, c, cdb10(0x2a, 8), lun, first, 0)
	}
	l.apply(cli.ExitOK, []string{"size: 4MiB", "size: 8MiB"}, "volumes.m.size", "volumes.x.size")
	settle(t, c, 0) // the capacity has changed
	settle(t, c, 1)
	check(c, last, make([]byte, 64<<10))
	for lun := range uint64(2) {
		transfer(t, c, cdb10(0x2a, last), lun, grown, 0)
	}
	l.stop()
	image := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if a, b := image("a.img"), image("b.img"); len(a) != 8<<20 || !bytes.Equal(a, b) {
		t.Errorf("members of %d and %d bytes, expected two that are alike", len(a), len(b))
	}
	for _, name := range []string{"a.img", "slow.img", "fast.img"} {
		if b := image(name); bytes.Contains(b, first[:64]) || bytes.Contains(b, grown[:64]) {
			t.Errorf("%s has data in clear", name)
		}
	}

	c = begin()
	check(c, 8, first)
	check(c, last, grown)
	l.allow = []string{"--allow-shrink", "m", "--allow-shrink", "x"}
	l.apply(cli.ExitOK, []string{"size: 8MiB", "size: 4MiB"})
	settle(t, c, 0)
	settle(t, c, 1)
	check(c, 8, first)
	l.stop()

	own := image("m.header")
	writeFile(t, filepath.Join(dir, "m.header"), string(image("slow.img.header")))
	var log eventually.Output
	if status := run(t.Context(), []string{"serve", "-c", l.file, "--state-dir", dir}, cli.Console{Out: io.Discard, Err: &log}); status != cli.ExitFailure || !strings.Contains(log.String(), "m.header") {
		t.Errorf("found %d, %s, expected that another volume's header is refused", status, log.String())
	}
	writeFile(t, filepath.Join(dir, "m.header"), string(own))
	check(begin(), 8, first)
}
