package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
	"lunar/backstore/crypt"
	"lunar/conf"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

const encryptedTarget = "iqn.2026-11.test:t"

// vault is a server with encrypted volumes in a directory of its own.
type vault struct {
	t      *testing.T
	dir    string
	config string
	child  *child
}

// vaultVolumes are one without a cache, and one that has all that there is.
const vaultVolumes = `
  plain: {type: file, path: plain.img, size: 2MiB, encryption: {key-file: %[1]s/key}}
  all: {type: file, path: all.img, size: 2MiB, block-size: 4096, write: back, cache: {flush-age: 1h}, protection: 1, encryption: {key-file: %[1]s/key}}
`

func newVault(t *testing.T) *vault {
	t.Helper()
	v := &vault{t: t, dir: t.TempDir()}
	v.config = filepath.Join(v.dir, "tgtd.yaml")
	v.key("key", 0x90)
	v.configure(fmt.Sprintf(vaultVolumes, v.dir))
	return v
}

func (v *vault) key(name string, first byte) {
	v.t.Helper()
	text := make([]byte, 32)
	for i := range text {
		text[i] = first + byte(i)
	}
	writeFile(v.t, filepath.Join(v.dir, name), string(text))
}

func (v *vault) configure(volumes string) {
	v.t.Helper()
	writeFile(v.t, v.config, fmt.Sprintf(`
server: {threads: 1, buffers-per-thread: 8MiB}
cache: {size: 16MiB, segment: %s}
portal-groups: {a: {listen: ["127.0.0.1:0"]}}
volumes:%s
targets: {"%s": {luns: {0: plain, 1: all}}}
`, memoryDir(v.t), volumes, encryptedTarget))
}

// serve starts the server and logs in.
func (v *vault) serve() *initiator.Conn {
	v.t.Helper()
	v.child = serveChild(v.t, "-c", v.config, "--state-dir", v.dir)
	c := dial(v.t, v.child.portal, initiator.Options{Target: encryptedTarget})
	for lun := range uint64(2) {
		senseOf(v.t, c, lun) // that it is new
	}
	return c
}

func (v *vault) stop(c *initiator.Conn) {
	v.t.Helper()
	c.Close()
	if err := v.child.end(v.t, syscall.SIGTERM); err != nil {
		v.t.Errorf("%v\n%s", err, v.child.log)
	}
}

// refused starts a server that must not start, and returns what it says.
func (v *vault) refused() string {
	v.t.Helper()
	out, err := &eventually.Output{}, &eventually.Output{}
	ended, end := context.WithCancel(v.t.Context())
	end()
	check := asTheyWere(v.t, v.dir)
	defer check()
	if status := run(ended, []string{"serve", "-c", v.config, "--state-dir", v.dir}, cli.Console{Out: out, Err: err}); status != cli.ExitFailure {
		v.t.Fatalf("status %d\n%s", status, err)
	}
	return err.String()
}

// vaultSecret is what must not be found on disk.
var vaultSecret = []byte("the secret of all.")

func vaultData(blocks, size int) []byte {
	return bytes.Repeat(append(vaultSecret, make([]byte, 64-len(vaultSecret))...), blocks*size/64)
}

// inClear returns the files of the directory that have the secret.
func (v *vault) inClear() (names []string) {
	v.t.Helper()
	err := filepath.WalkDir(v.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, vaultSecret) {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		v.t.Fatal(err)
	}
	return names
}

var vaultLUNs = []struct{ lun, size int }{{0, 512}, {1, 4096}}

// fill writes the secret by all ways that lead to disk.
func (v *vault) fill(c *initiator.Conn) {
	v.t.Helper()
	for _, u := range vaultLUNs {
		data := vaultData(64, u.size)
		transfer(v.t, c, cdb(0x8a, 0, 0, 64), uint64(u.lun), data, 0)
		atomic := []byte{0x9c, 0, 0, 0, 0, 0, 0, 0, 0, 128, 0, 0, 0, 16, 0, 0}
		transfer(v.t, c, atomic, uint64(u.lun), data[:16*u.size], 0)
		transfer(v.t, c, cdb(0x35, 0, 0, 0), uint64(u.lun), nil, 0)
	}
}

func (v *vault) has(c *initiator.Conn, what string) {
	v.t.Helper()
	for _, u := range vaultLUNs {
		if !bytes.Equal(transfer(v.t, c, cdb(0x88, 0, 0, 64), uint64(u.lun), nil, 64*u.size), vaultData(64, u.size)) {
			v.t.Errorf("LUN %d: other data %s", u.lun, what)
		}
	}
}

// TestEncryptedVolumes: nothing lies on disk in clear, a restart gives all back, and
// so does another key file that took over from the first; nothing else does.
func TestEncryptedVolumes(t *testing.T) {
	v := newVault(t)
	c := v.serve()
	v.fill(c)
	v.has(c, "at once")
	if names := v.inClear(); names != nil {
		t.Errorf("in clear: %v", names)
	}
	v.stop(c)
	if names := v.inClear(); names != nil {
		t.Errorf("in clear after the end: %v", names)
	}
	c = v.serve()
	v.has(c, "after a restart")
	v.stop(c)

	v.key("other", 0x91)
	volumes := fmt.Sprintf(vaultVolumes, v.dir)
	v.configure(strings.ReplaceAll(volumes, "/key", "/other"))
	for _, want := range []string{"volume plain", "volume all", "plain.img.header", "old-key-file"} {
		if text := v.refused(); !strings.Contains(text, want) {
			t.Errorf("another key: found\n%s\nwithout %q", text, want)
		}
	}
	v.configure(strings.ReplaceAll(volumes, v.dir+"/key", v.dir+"/other, old-key-file: "+v.dir+"/key"))
	for range 2 {
		c = v.serve()
		v.has(c, "with another key file")
		v.stop(c)
	}
	v.configure(volumes)
	v.refused()

	v.configure(strings.ReplaceAll(volumes, ", encryption: {key-file: "+v.dir+"/key}", ""))
	if text := v.refused(); !strings.Contains(text, "would be served as cipher text") {
		t.Errorf("without encryption: found\n%s", text)
	}
	v.configure(strings.ReplaceAll(volumes, "/key", "/other"))
	header := filepath.Join(v.dir, "plain.img.header")
	if err := os.Rename(header, header+".kept"); err != nil {
		t.Fatal(err)
	}
	if text := v.refused(); !strings.Contains(text, "found no header file "+header) || !strings.Contains(text, "give-up-data") || !strings.Contains(text, "encrypt --keep-data") {
		t.Errorf("without a header: found\n%s", text)
	}
	if err := os.Rename(header+".kept", header); err != nil {
		t.Fatal(err)
	}
	c = v.serve()
	v.has(c, "in the end")
	v.stop(c)
}

// TestCryptoEraseOverTheWire: what was written is gone from cache and disk, also after
// a kill; what is written later stays.
func TestCryptoEraseOverTheWire(t *testing.T) {
	v := newVault(t)
	c := v.serve()
	v.fill(c)
	for _, u := range vaultLUNs {
		transfer(t, c, cdb(0x8a, 0, 0, 64), uint64(u.lun), vaultData(64, u.size), 0) // dirty
		transfer(t, c, []byte{0x48, 0x03, 0, 0, 0, 0, 0, 0, 0, 0}, uint64(u.lun), nil, 0)
	}
	gone := func(what string) {
		t.Helper()
		for _, u := range vaultLUNs {
			for _, lba := range []int{0, 128} {
				if got := transfer(t, c, cdb(0x88, 0, lba, 16), uint64(u.lun), nil, 16*u.size); !bytes.Equal(got, make([]byte, len(got))) {
					t.Errorf("LUN %d, block %d: found % x %s, expected zeroes", u.lun, lba, got[:16], what)
				}
			}
		}
	}
	gone("at once")
	c.Close()
	_ = v.child.end(t, syscall.SIGKILL)
	c = v.serve()
	gone("after a kill")
	v.fill(c)
	v.stop(c)
	c = v.serve()
	v.has(c, "that were written later")
	v.stop(c)
}

// TestCryptoEraseAndKill: whenever the server dies after it has begun, the data are gone,
// or the volume says that they may not be, until an erasure succeeds.
func TestCryptoEraseAndKill(t *testing.T) {
	v := newVault(t)
	const lun, size = 1, 4096
	erase := []byte{0x48, 0x83, 0, 0, 0, 0, 0, 0, 0, 0} // IMMED
	for round := range 5 {
		c := v.serve()
		v.fill(c)
		if res, err := c.Command(erase, lun, nil, 0); err != nil || res.Status != initiator.StatusGood {
			t.Fatalf("%+v, %v", res, err)
		}
		time.Sleep(time.Duration(round) * 2 * time.Millisecond) // any moment will do
		_ = v.child.end(t, syscall.SIGKILL)
		c = v.serve()
		switch sense := senseOf(t, c, lun); sense {
		case [2]byte{0x31, 0x03}: // SANITIZE COMMAND FAILED
			transfer(t, c, []byte{0x48, 0x03, 0, 0, 0, 0, 0, 0, 0, 0}, lun, nil, 0)
		case [2]byte{}:
		default:
			t.Errorf("round %d: sense %x", round, sense)
		}
		if got := transfer(t, c, cdb(0x88, 0, 0, 64), lun, nil, 64*size); !bytes.Equal(got, make([]byte, 64*size)) {
			t.Errorf("round %d: found % x, expected zeroes", round, got[:32])
		}
		v.stop(c)
	}
	if names := v.inClear(); names != nil {
		t.Errorf("in clear: %v", names)
	}
}

// TestEncryptAndCheck: a file with something in it becomes an encrypted volume when
// that is given up, and check says what start would say.
func TestEncryptAndCheck(t *testing.T) {
	v := newVault(t)
	old := bytes.Repeat([]byte("old data"), 1<<18)
	writeFile(t, filepath.Join(v.dir, "plain.img"), string(old))
	command := func(args ...string) (int, string) {
		out := &eventually.Output{}
		status := run(context.Background(), append(args, "--state-dir", v.dir), cli.Console{Out: out, Err: out})
		return status, out.String()
	}
	if text := v.refused(); !strings.Contains(text, "may hold data") {
		t.Errorf("a file with data: found\n%s", text)
	}
	if got, err := os.ReadFile(filepath.Join(v.dir, "plain.img")); err != nil || !bytes.Equal(got, old) {
		t.Errorf("the data have changed: %v", err)
	}
	if status, text := command("check", v.config); status != cli.ExitOK || !strings.Contains(text, "no header file "+filepath.Join(v.dir, "plain.img.header")) {
		t.Errorf("check before: %d\n%s", status, text)
	}
	if status, text := command("encrypt", v.config, "plain"); status == cli.ExitOK {
		t.Errorf("encrypt without --give-up-data:\n%s", text)
	}
	if status, text := command("encrypt", v.config, "plain", "--give-up-data"); status != cli.ExitOK || !strings.Contains(text, "keep a copy") {
		t.Errorf("encrypt: %d\n%s", status, text)
	}
	if status, text := command("encrypt", v.config, "plain", "--give-up-data"); status == cli.ExitOK {
		t.Errorf("encrypt again:\n%s", text)
	}
	c := v.serve()
	v.fill(c)
	v.has(c, "at once")
	v.stop(c)
	if status, text := command("check", v.config); status != cli.ExitOK {
		t.Errorf("check after: %d\n%s", status, text)
	}
	if err := os.Chmod(filepath.Join(v.dir, "key"), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, text := command("check", v.config); status != cli.ExitFailure || !strings.Contains(text, "others must not read it") {
		t.Errorf("check of a key that everybody can read: %d\n%s", status, text)
	}
}

// TestApplyEncrypted: encrypted volumes come and go while the server runs; one that
// cannot be opened changes nothing.
func TestApplyEncrypted(t *testing.T) {
	l := serveLive(t, liveConfig)
	writeFile(t, filepath.Join(l.dir, "key"), strings.Repeat("9f", 32))
	writeFile(t, filepath.Join(l.dir, "other"), strings.Repeat("8f", 32))
	const (
		ram    = "  ram: {type: ram, size: 1MiB}\n"
		safe   = "  safe: {type: file, path: safe, size: 1MiB, encryption: {key-file: key}}\n"
		target = "iqn.2026-11.test:u: {luns: {0: ram"
	)
	l.apply(cli.ExitOK, []string{ram, ram + safe, target, target + ", 1: safe"}, "volumes.safe: new")
	c := dial(t, l.portal, initiator.Options{Target: "iqn.2026-11.test:u"})
	settle(t, c, 0)
	settle(t, c, 1)
	data := bytes.Repeat([]byte{7}, 512)
	transfer(t, c, write, 1, data, 0)
	moved := strings.Replace(safe, "key-file: key", "key-file: other", 1)
	l.apply(cli.ExitOK, []string{"key-file: key", "key-file: other"}, "volumes.safe.encryption.key-file", "copy it again")
	l.apply(cli.ExitFailure, []string{"key-file: other", "key-file: none"}, "none", "nothing was changed")
	l.apply(cli.ExitFailure, []string{"key-file: other", "key-file: key, header-file: x"}, "needs a restart", "volumes.safe.encryption.header-file")
	l.apply(cli.ExitFailure, []string{"key-file: other", "key-file: key", "file, size: 1MiB}", "file, size: 1MiB}\n  more: {type: file, path: none/none, size: 1MiB}"}, "none/none")
	l.apply(cli.ExitFailure, []string{"key-file: other}", "key-file: key}, direct: true"}, "one after the other")
	if got := transfer(t, c, readOne, 1, nil, 512); !bytes.Equal(got, data) {
		t.Error("other data with another key file")
	}
	l.allow = []string{"--yes"}
	l.apply(cli.ExitOK, []string{moved, "", ", 1: safe", ""}, "volumes.safe: removed")
	l.apply(cli.ExitFailure, []string{ram, ram + safe, target, target + ", 1: safe"}, "another one")
	l.apply(cli.ExitFailure, []string{ram, ram + strings.Replace(safe, ", encryption: {key-file: key}", "", 1), target, target + ", 1: safe"}, "cipher text")
	l.apply(cli.ExitOK, []string{ram, ram + moved, target, target + ", 1: safe"}, "volumes.safe: new")
	settle(t, c, 0)
	settle(t, c, 1)
	if got := transfer(t, c, readOne, 1, nil, 512); !bytes.Equal(got, data) {
		t.Error("the volume is another one")
	}
	logout(t, c)
}

// deciphered returns what an encrypted file holds, with the key that lies beside the
// state of the metamorphic test. It must not lie there in clear.
func deciphered(t *testing.T, path string, image []byte, block int) []byte {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	writeFile(t, key, strings.Repeat("9f", 32))
	k, err := crypt.ReadKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file, err := backstore.OpenFile(backstore.FileConfig{Path: path, ReadOnly: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := crypt.Open(crypt.Config{Data: file, Path: path + conf.HeaderSuffix, Key: k, Block: block})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	out := backstoretest.NewClient(t, s, backstoretest.NewLoop(t, false)).Read(t, 0, len(image))
	for at := 0; at < len(image); at += block {
		clear, cipher := out[at:at+block], image[at:at+block]
		if bytes.Equal(clear, cipher) != bytes.Equal(cipher, make([]byte, block)) {
			t.Errorf("%s: byte %d lies on disk in clear", path, at)
		}
	}
	return out
}

// TestHeadersSwapped: the header of another volume with the same key file is refused,
// and nothing is changed, unless somebody says that it is the right one.
func TestHeadersSwapped(t *testing.T) {
	v := newVault(t)
	command := func(args ...string) (int, string) {
		var text eventually.Output
		return run(context.Background(), args, cli.Console{Out: &text, Err: &text}), text.String()
	}
	v.configure(fmt.Sprintf(`
  plain: {type: file, path: plain.img, size: 2MiB, encryption: {key-file: %[1]s/key}}
  all: {type: file, path: all.img, size: 2MiB, encryption: {key-file: %[1]s/key}}
`, v.dir))
	c := v.serve()
	data := pattern(1, 1)
	transfer(t, c, cdb10(0x2a, 0), 0, data, 0)
	v.stop(c)
	at := func(name string) string { return filepath.Join(v.dir, name) }
	read := func(name string) string {
		b, err := os.ReadFile(at(name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	mine, other := read("plain.img.header"), read("all.img.header")
	writeFile(t, at("plain.img.header"), other)
	if text := v.refused(); !strings.Contains(text, "volume plain") || !strings.Contains(text, at("plain.img.header")) || !strings.Contains(text, "lunar adopt plain") {
		t.Errorf("found\n%s", text)
	}
	if read("plain.img.header") != other {
		t.Error("the header was changed")
	}
	writeFile(t, at("plain.img.header"), mine)
	c = v.serve()
	if got := transfer(t, c, cdb10(0x28, 0), 0, nil, len(data)); !bytes.Equal(got, data) {
		t.Error("the data are not what they were")
	}
	v.stop(c)

	writeFile(t, at("plain.img.header"), other)
	if status, text := command("adopt", "plain", "-c", v.config, "--state-dir", v.dir); status != cli.ExitOK {
		t.Fatalf("found status %d, %s", status, text)
	}
	for range 2 {
		v.stop(v.serve())
	}
	if err := os.Remove(at("plain.img.header")); err != nil {
		t.Fatal(err)
	}
	if status, text := command("encrypt", v.config, "plain", "--give-up-data", "--state-dir", v.dir); status != cli.ExitOK {
		t.Fatalf("found status %d, %s", status, text)
	}
	v.stop(v.serve())
}
