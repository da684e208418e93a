package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/internal/cli"
)

// childVariable makes the test binary be lunar, so that a test can kill it.
const childVariable = "LUNAR_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(Run(context.Background(), os.Args[1:], cli.Console{Out: os.Stdout, Err: os.Stderr}))
	}
	os.Exit(m.Run())
}

// enciphering is a volume whose file is encrypted by processes of their own.
type enciphering struct {
	*testing.T
	dir  string
	data []byte
}

const encipheredBlocks = 40 // of 1 MiB, all with data

func newEnciphering(t *testing.T, data []byte) *enciphering {
	t.Helper()
	e := &enciphering{t, t.TempDir(), data}
	e.write("disk.img", data)
	e.write("key", bytes.Repeat([]byte("0123456789abcdef"), 4))
	e.encrypted(true)
	return e
}

func (e *enciphering) path(name string) string { return filepath.Join(e.dir, name) }

func (e *enciphering) write(name string, b []byte) {
	e.Helper()
	if err := os.WriteFile(e.path(name), b, 0o600); err != nil {
		e.Fatal(err)
	}
}

// encrypted has the configuration say that the volume is.
func (e *enciphering) encrypted(is bool) {
	e.Helper()
	key := ""
	if is {
		key = fmt.Sprintf(", encryption: {key-file: %s}", e.path("key"))
	}
	e.write("tgtd.yaml", fmt.Appendf(nil, "portal-groups: {a: {listen: [\"127.0.0.1:0\"]}}\nvolumes: {disk: {type: file, path: %s%s}}\n", e.path("disk.img"), key))
}

// command is lunar in a process of its own.
func (e *enciphering) command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	c, said := exec.CommandContext(e.Context(), os.Args[0], append(args, e.path("tgtd.yaml"), "disk", "--state-dir", e.dir)...), &bytes.Buffer{}
	c.Env = append(os.Environ(), childVariable+"=1", "GORACE=atexit_sleep_ms=0")
	c.Stdout, c.Stderr = said, said
	return c, said
}

// there reports whether a file is.
func (e *enciphering) there(name string) bool {
	_, err := os.Lstat(e.path(name))
	return err == nil
}

// noted counts the blocks that the journal has.
func (e *enciphering) noted() (n int) {
	b, err := os.ReadFile(e.path("disk.img.rewriting.journal"))
	if err != nil {
		return 0
	}
	for at := 4096; at+32 <= len(b); at += 32 {
		if !bytes.Equal(b[at:at+32], make([]byte, 32)) {
			n++
		}
	}
	return n
}

// killed begins to encrypt and kills that as soon as it has come to a point. False: it had
// ended before.
func (e *enciphering) killed(reached func() bool) bool {
	e.Helper()
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		e.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, e.dir, unix.IN_CREATE|unix.IN_MODIFY|unix.IN_MOVED_TO|unix.IN_DELETE); err != nil {
		e.Fatal(err)
	}
	c, said := e.command("encrypt", "--keep-data")
	if err := c.Start(); err != nil {
		e.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for events := make([]byte, 1<<16); !reached(); {
		select {
		case err := <-ended:
			if err != nil && !reached() {
				e.Fatalf("%v: %s", err, said)
			}
			return false
		default:
		}
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(watch), Events: unix.POLLIN}}, 20); err != nil && !errors.Is(err, unix.EINTR) {
			e.Fatal(err)
		}
		_, _ = unix.Read(watch, events) // EAGAIN: nothing has happened
	}
	_ = c.Process.Kill() // SIGKILL; it may have ended
	err = <-ended
	return err != nil
}

var storedLine = regexp.MustCompile(`stored (\d+), there before (\d+)`)

// ends has it go on to its end, and returns the blocks that were stored now and before.
func (e *enciphering) ends() (stored, kept int) {
	e.Helper()
	c, said := e.command("encrypt", "--keep-data")
	if err := c.Run(); err != nil {
		e.Fatalf("%v: %s", err, said)
	}
	m := storedLine.FindStringSubmatch(said.String())
	if m == nil {
		e.Fatalf("found %s", said)
	}
	stored, _ = strconv.Atoi(m[1]) // digits
	kept, _ = strconv.Atoi(m[2])
	return stored, kept
}

// TestEncryptKilled: wherever a process that encrypts a volume is killed, the path has the old
// data or the new ones whole, the same command goes on where it was, and the data come back
// as they were.
func TestEncryptKilled(t *testing.T) {
	data := make([]byte, encipheredBlocks<<20)
	_, _ = rand.NewChaCha8([32]byte{9}).Read(data) // never fails
	for _, c := range []struct {
		name    string
		reached func(*enciphering) bool
	}{
		{"the header is made", func(e *enciphering) bool { return e.there("disk.img.header.rewriting") }},
		{"some blocks are stored", func(e *enciphering) bool { return e.noted() >= 5 }},
		{"half of them are", func(e *enciphering) bool { return e.noted() >= encipheredBlocks/2 }},
		{"all are stored and are read again", func(e *enciphering) bool { return e.noted() == encipheredBlocks }},
		{"the old file has its second name", func(e *enciphering) bool { return e.there("disk.img.before") }},
		{"the new file has its name", func(e *enciphering) bool { return !e.there("disk.img.rewriting") && e.there("disk.img.before") }},
		{"the header has its name", func(e *enciphering) bool { return e.there("disk.img.header") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEnciphering(t, data)
			if e.killed(func() bool { return c.reached(e) }) {
				e.afterKill()
			} else {
				t.Log("it had ended before")
			}
			e.comesBack()
		})
	}
}

// afterKill looks at what a kill has left, and has it go on.
func (e *enciphering) afterKill() {
	e.Helper()
	noted, placed := e.noted(), !e.there("disk.img.rewriting")
	now, err := os.ReadFile(e.path("disk.img"))
	if err != nil || bytes.Equal(now, e.data) == placed || len(now) != len(e.data) {
		e.Fatalf("found neither the old data nor the new ones whole: %v", err)
	}
	if !e.there("disk.img.rewriting.journal") { // it was killed at its very end
		return
	}
	if stored, kept := e.ends(); !placed && (stored > encipheredBlocks-noted || stored+kept != encipheredBlocks) {
		e.Errorf("stored %d blocks and found %d, expected to go on behind %d", stored, kept, noted)
	}
}

// comesBack deciphers the volume.
func (e *enciphering) comesBack() {
	e.Helper()
	before, err := os.ReadFile(e.path("disk.img.before"))
	if err != nil || !bytes.Equal(before, e.data) {
		e.Errorf("what the volume was is not kept: %v", err)
	}
	if err := os.Remove(e.path("disk.img.before")); err != nil {
		e.Fatal(err)
	}
	e.encrypted(false)
	c, said := e.command("decrypt", "--key-file", e.path("key"))
	if err := c.Run(); err != nil {
		e.Fatalf("%v: %s", err, said)
	}
	if now, err := os.ReadFile(e.path("disk.img")); err != nil || !bytes.Equal(now, e.data) {
		e.Errorf("found other data than before: %v", err)
	}
}
