package member

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"lunar/internal/eventually"
)

// TestStartBesideAnother: at a boot the service starts the member, too. If that one comes first,
// what was started here ends, which is no failure.
func TestStartBesideAnother(t *testing.T) {
	d := Dir(t.TempDir())
	program, began := filepath.Join(string(d), "program"), filepath.Join(string(d), "began")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n>"+began+"\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() { started <- d.Start(program, os.Stderr) }()
	eventually.Holds(t, "the program has run", func() bool { _, err := os.Stat(began); return err == nil })
	l, err := net.Listen("unix", d.Socket())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := <-started; err != nil {
		t.Error(err)
	}
}
