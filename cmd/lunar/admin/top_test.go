package admin

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lunar/cmd/lunar/top"
	"lunar/control"
	"lunar/internal/eventually"
)

// TestTop: keys at a terminal change the page, q ends it, and the terminal is as it was. It
// goes on when the server answers no more.
func TestTop(t *testing.T) {
	master, slave := terminals(t)
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100}); err != nil {
		t.Fatal(err)
	}
	before, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	var shown eventually.Output
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			if err != nil {
				return
			}
			shown.Write(buf[:n])
		}
	}()
	asked := 0
	ask := func(context.Context) (control.Overview, error) {
		if asked++; asked > 1 {
			return control.Overview{}, errors.New("it was stopped")
		}
		return control.Overview{At: time.Now(), State: "ok", Line: "ok: no volume, no session", Events: []control.Event{{Kind: "login", Text: "session opened"}}}, nil
	}
	ended := make(chan error, 1)
	go func() {
		ended <- top.Run(t.Context(), top.Terminal{In: slave, Out: slave, Environ: []string{"TERM=xterm-256color", "NO_COLOR=1"}}, ask)
	}()
	eventually.Says(t, shown.String, "ok: no volume, no session")
	eventually.Says(t, shown.String, "7 events")
	fmt.Fprint(master, "7")
	eventually.Says(t, shown.String, "session opened")
	eventually.Says(t, shown.String, "it was stopped")
	fmt.Fprint(master, "q")
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("q does not end it")
	}
	if after, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS); err != nil || *after != *before {
		t.Errorf("the terminal has %+v, %v, expected %+v", after, err, before)
	}
}
