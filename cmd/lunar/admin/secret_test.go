package admin

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// terminals are both ends of a terminal.
func terminals(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("needs /dev/ptmx: ", err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// TestEntered: a secret is asked for twice and shown by no terminal, which is as it was
// afterwards.
func TestEntered(t *testing.T) {
	for _, test := range []struct{ first, again, secret, err string }{
		{"the new secret", "the new secret", "the new secret", ""},
		{"the new secret", "another secret", "", "found two different secrets"},
		{"", "", "", "found no secret"},
	} {
		master, slave := terminals(t)
		before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		var shown, said eventually.Output
		go func() {
			buf := make([]byte, 256)
			for {
				n, err := master.Read(buf)
				if err != nil {
					return
				}
				shown.Write(buf[:n])
			}
		}()
		go func() {
			eventually.Says(t, shown.String, "Secret of host: ")
			fmt.Fprintln(master, test.first)
			eventually.Says(t, shown.String, "The same again: ")
			fmt.Fprintln(master, test.again)
		}()
		secret, err := entered(t.Context(), cli.Console{Out: &said, Err: &said}, slave, "host")
		if secret != test.secret || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%+v: found %q, %v", test, secret, err)
		}
		after, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
		if err != nil || *after != *before {
			t.Errorf("found %+v, %v, expected %+v", after, err, before)
		}
		if text := shown.String() + said.String(); strings.Contains(text, "secret of") || strings.Contains(text, "new secret") || strings.Contains(text, "another") {
			t.Errorf("%+v: shown %q", test, text)
		}
	}
}

// TestMadeWithoutJobs: on a terminal a change is a job for the sake of its progress; where
// there cannot be one, it is made all the same.
func TestMadeWithoutJobs(t *testing.T) {
	_, slave := terminals(t)
	busy := func() (control.Job, error) { return control.Job{}, &control.Refusal{What: "found 8 jobs", Busy: true} }
	made7 := func(async bool) (int, bool, error) {
		return made(t.Context(), asynchronous{async}, nil, cli.Console{Out: slave, Err: slave}, func() (int, error) { return 7, nil }, busy)
	}
	if n, finished, err := made7(false); n != 7 || !finished || err != nil {
		t.Errorf("found %d, %v, %v", n, finished, err)
	}
	if n, finished, err := made7(true); n != 0 || finished || err == nil {
		t.Errorf("found %d, %v, %v, expected that --async is refused", n, finished, err)
	}
}

// TestHasSecret: wherever on a command line a secret stands, it is found; taking one away
// is none.
func TestHasSecret(t *testing.T) {
	for text, want := range map[string]bool{
		"secret=x": true, "mutual.secret=x": true, "chap=[{user: u, secret: x}]": true, "mutual={user: u, secret: x}": true, "secret=12": true,
		"secret=": false, "secret-file=/x": false, "user=secret": false, "chap=[{user: secret}]": false,
	} {
		_, err := (&keyed{Keys: []string{text}}).object()
		if got := err != nil; got != want || got && strings.Contains(err.Error(), "x}") {
			t.Errorf("%s: found %v", text, err)
		}
	}
}
