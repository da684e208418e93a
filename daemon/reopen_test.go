package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lunar/backstore"
	"lunar/internal/cli"
	"lunar/internal/initiator"
)

// serveVolumes serves volumesConfig, with the cache in a segment.
func serveVolumes(t *testing.T) *live {
	t.Helper()
	l := &live{&controlled{t: t, dir: t.TempDir()}, fmt.Sprintf(volumesConfig, fmt.Sprintf(", segment: %s/lunar", memoryDir(t))), nil}
	l.file = filepath.Join(l.dir, "tgtd.yaml")
	writeFile(t, l.file, l.text)
	writeFile(t, filepath.Join(l.dir, "fixed.img"), string(make([]byte, 1<<20)))
	l.serving = serve(t, "-c", l.file, "--state-dir", l.dir)
	return l
}

// attentions are the unit attentions that a LUN's initiator has not been told yet.
func attentions(t *testing.T, c *initiator.Conn, lun uint64) (all string) {
	t.Helper()
	for told := senseOf(t, c, lun); told != [2]byte{}; told = senseOf(t, c, lun) {
		all += fmt.Sprintf("%02x/%02x ", told[0], told[1])
	}
	return strings.TrimSpace(all)
}

// TestApplyReopened: keys that an open volume cannot follow are changed by opening it
// anew. What was acknowledged is there, its initiators hear of what concerns them, and
// those of other volumes of nothing.
func TestApplyReopened(t *testing.T) {
	l := serveVolumes(t)
	c := dial(t, l.portal, initiator.Options{Target: volumesTarget})
	for lun := range uint64(3) {
		settle(t, c, lun)
	}
	const plain, fixed, back = "plain: {type: file, path: plain.img, size: 4MiB", "fixed: {type: file, path: fixed.img", "back: {type: file, path: back.img, size: 4MiB"
	for round, test := range []struct {
		lun     uint64
		replace []string
		want    []string
		told    string // unit attentions
		dirty   bool   // what is written then is in the cache alone
	}{
		{2, []string{fixed + ", read-only: true", fixed}, []string{"volumes.fixed.read-only: false, was true"}, "2a/01 2a/09 3f/03", false},
		{1, []string{plain, plain + ", cache: true"}, []string{"volumes.plain.cache: new", "volumes.plain.direct: true, was false"}, "", false},
		{1, []string{plain + ", cache: true", plain + ", write: back, cache: {flush-age: 1h}"}, []string{`volumes.plain.write: "back", was "through"`}, "", true},
		{1, []string{plain + ", write: back, cache: {flush-age: 1h}", plain + ", write: back, cache: {flush-age: 1h, admission: fussy, read-ahead: 128KiB, min: 1MiB}"},
			[]string{`volumes.plain.cache.admission: "fussy", was "lru"`, "volumes.plain.cache.read-ahead: 128KiB"}, "", true},
		{1, []string{plain + ", write: back, cache: {flush-age: 1h, admission: fussy, read-ahead: 128KiB, min: 1MiB}", plain + ", write: sync, physical-block-size: 4096"},
			[]string{"volumes.plain.cache: removed", `volumes.plain.write: "sync", was "back"`}, "2a/01", false},
		{1, []string{plain + ", write: sync, physical-block-size: 4096", plain + ", physical-block-size: 512"}, []string{"volumes.plain.physical-block-size: 512, was 4096"}, "2a/01 2a/09 3f/03", false},
		{0, []string{back + ", write: back, cache: {flush-age: 1h}", back + ", direct: false"}, []string{"volumes.back.cache: removed"}, "", false},
		{0, []string{back + ", direct: false", back + ", direct: true"}, []string{"volumes.back.direct: true, was false"}, "", false},
	} {
		if test.lun != 2 {
			transfer(t, c, cdb10(0x2a, 1), test.lun, pattern(1, round), 0)
		}
		name := []string{"back", "plain", "fixed"}[test.lun]
		writeFile(t, l.file, strings.NewReplacer(test.replace...).Replace(l.text))
		if physical := strings.Contains(test.want[0], "physical"); !physical {
			l.has(l.tgtd(cli.ExitOK, "apply", "--dry-run", l.file), "volumes."+name+": to be opened anew", "Nothing was changed")
			test.want = append(test.want, "volumes."+name+": opened anew, commands waited for ")
		}
		l.apply(cli.ExitOK, test.replace, test.want...)
		for lun := range uint64(3) {
			want := ""
			if lun == test.lun {
				want = test.told
			}
			if told := attentions(t, c, lun); told != want {
				t.Errorf("%q: LUN %d: found unit attentions %q, expected %q", test.replace, lun, told, want)
			}
		}
		if got := transfer(t, c, cdb10(0x28, 1), test.lun, nil, 64<<10); test.lun != 2 && !bytes.Equal(got, pattern(1, round)) {
			t.Errorf("%q: what was written before is not there", test.replace)
		}
		transfer(t, c, cdb10(0x2a, 200), test.lun, pattern(2, round), 0)
		data, err := os.ReadFile(filepath.Join(l.dir, name+".img"))
		if err != nil {
			t.Fatal(err)
		}
		if dirty := !bytes.Equal(data[200*512:200*512+64<<10], pattern(2, round)); dirty != test.dirty {
			t.Errorf("%q: found that the file has what is written %t, expected %t", test.replace, !dirty, !test.dirty)
		}
	}
	note, err := os.ReadFile(filepath.Join(l.dir, "segment.note"))
	if err == nil {
		t.Errorf("found the note %q, expected none: no volume writes back any more", note)
	}
	logout(t, c)
}

// TestApplyReopenRefused: a volume that cannot be opened as it should be stays as it
// is, and so does another one that was opened anew before.
func TestApplyReopenRefused(t *testing.T) {
	l := serveVolumes(t)
	c := dial(t, l.portal, initiator.Options{Target: volumesTarget})
	for lun := range uint64(3) {
		settle(t, c, lun)
	}
	const plain, back = "plain: {type: file, path: plain.img, size: 4MiB", "back: {type: file, path: back.img, size: 4MiB"
	transfer(t, c, cdb10(0x2a, 1), 0, pattern(0, 1), 0)
	transfer(t, c, cdb10(0x2a, 1), 1, pattern(1, 1), 0)
	before := l.tgtd(cli.ExitOK, "config")
	path := filepath.Join(l.dir, "plain.img")
	change := []string{plain, plain + ", cache: true", back + ", write: back, cache: {flush-age: 1h}", back + ", write: through, cache: {admission: fussy}"}
	stays := func(want ...string) {
		t.Helper()
		l.apply(cli.ExitFailure, change, append(want, "was not applied, and nothing was changed")...)
		if after := l.tgtd(cli.ExitOK, "config"); after != before {
			t.Errorf("found\n%s, expected\n%s", after, before)
		}
		for lun := range uint64(3) {
			if told := attentions(t, c, lun); told != "" {
				t.Errorf("LUN %d: found unit attentions %s", lun, told)
			}
		}
		for lun := range uint64(2) {
			if got := transfer(t, c, cdb10(0x28, 1), lun, nil, 64<<10); !bytes.Equal(got, pattern(int(lun), 1)) {
				t.Errorf("LUN %d: what was written is not there", lun)
			}
		}
	}

	if err := os.Truncate(path, 5<<20); err != nil {
		t.Fatal(err)
	}
	stays("volume plain", "found 5242880 bytes, expected the 4194304 that the volume has")
	if err := os.Truncate(path, 4<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".moved"); err != nil {
		t.Fatal(err)
	}
	stays("volume plain", "no such file")
	writeFile(t, path, string(make([]byte, 4<<20)))
	stays("volume plain", "found another file than the one that is open")
	if err := os.Rename(path+".moved", path); err != nil {
		t.Fatal(err)
	}
	all, atomic := change, filepath.Join(l.dir, "atomic")
	change = []string{"fixed.img, read-only: true", "fixed.img", plain, plain + ", cache: true"}
	if err := os.Rename(atomic, atomic+".moved"); err != nil {
		t.Fatal(err)
	}
	writeFile(t, atomic, "in the way of what the state directory is to keep")
	stays("volume fixed", "not a directory")
	change = change[2:]
	stays("volume plain", "not a directory")
	if err := errors.Join(os.Remove(atomic), os.Rename(atomic+".moved", atomic)); err != nil {
		t.Fatal(err)
	}
	change = all
	transfer(t, c, cdb10(0x2a, 1), 0, pattern(0, 1), 0) // the cache still writes back
	data, err := os.ReadFile(filepath.Join(l.dir, "back.img"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data[512:512+64<<10], pattern(0, 1)) {
		t.Error("what was dirty before the volume was opened anew has not been written")
	}
	l.apply(cli.ExitOK, change, "volumes.plain.cache: new", `volumes.back.write: "through", was "back"`)
	logout(t, c)
}

// TestApplyServesAgain: a volume that could not be opened again fails all that uses its
// medium, and the next change that finds it serves it again.
func TestApplyServesAgain(t *testing.T) {
	l := serveChurned(t, churnConfig(rand.New(rand.NewPCG(1, 1))))
	text := `
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
server: {limits: {sessions: 20}}
cache: {size: 16MiB, block-size: 16KiB, segment: SEGMENT}
volumes: {zero: {type: file, path: zero, size: 4MiB, write: back, cache: true}}
targets: {"iqn.2026-11.test:t": {luns: {0: zero}}}
`
	l.to(text)
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	transfer(t, c, cdb10(0x2a, 1), 0, pattern(0, 1), 0)
	slot, vanished := l.daemon.assembly.Open["zero"].Slot, errors.New("the disk has vanished")
	if err := slot.Exchange(t.Context(), func(old backstore.Store) (backstore.Store, error) { return nil, errors.Join(vanished, old.Close()) }); err == nil {
		t.Fatal("found a store in the slot")
	}
	if r, err := c.Command(cdb10(0x28, 1), 0, nil, 64<<10); err != nil || r.Status != initiator.StatusCheckCondition {
		t.Errorf("found status %#x, %v, expected that there is no medium", r.Status, err)
	}
	applied, err := l.apply(request{name: "chance"}, l.parse(text, l.dir))
	if err != nil || !slices.Contains(applied.Changes, "volumes.zero: it is served again") {
		t.Fatalf("found %v, %v, expected that the volume is served again", applied.Changes, err)
	}
	if got := transfer(t, c, cdb10(0x28, 1), 0, nil, 64<<10); !bytes.Equal(got, pattern(0, 1)) {
		t.Error("what was written is not there")
	}
	logout(t, c)
}

// TestApplyReopenLayers: with encryption and protection information around its file a
// volume is opened anew like any other.
func TestApplyReopenLayers(t *testing.T) {
	l := serveLive(t, `
cache: {size: 16MiB, block-size: 64KiB}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes: {v: {type: ram, size: 1MiB}}
targets: {"iqn.2026-11.test:t": {luns: {0: v}}}
`)
	writeFile(t, filepath.Join(l.dir, "key"), strings.Repeat("9f", 32))
	const layers = "{type: file, path: v, size: 4MiB, encryption: {key-file: key}, protection: 1}}"
	l.allow = []string{"--yes"}
	l.apply(cli.ExitOK, []string{"{v: {type: ram, size: 1MiB}", "{w: " + strings.TrimSuffix(layers, "}"), "0: v", "0: w"}, "volumes.w: new")
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:t"})
	settle(t, c, 0)
	const bare = "protection: 1}"
	keys := bare
	for round, next := range []string{"protection: 1, cache: true}", "protection: 1, cache: {read-ahead: 1MiB}, direct: false}", bare, "protection: 1, direct: true}"} {
		transfer(t, c, cdb10(0x2a, 1), 0, pattern(1, round), 0)
		l.apply(cli.ExitOK, []string{keys, next}, "volumes.w: opened anew")
		keys = next
		if told := attentions(t, c, 0); told != "" {
			t.Errorf("%s: found unit attentions %s", next, told)
		}
		if got := transfer(t, c, cdb10(0x28, 1), 0, nil, 64<<10); !bytes.Equal(got, pattern(1, round)) {
			t.Errorf("%s: what was written before is not there", next)
		}
	}
	logout(t, c)
}
