package kernelqtcp

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// TestLoad: what is loaded serves connections that choose it by name, with or without a
// share, and is gone when it is unloaded. It needs a kernel and rights for that.
func TestLoad(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("loading a congestion control needs root")
	}
	if _, err := os.Stat(control); err == nil {
		t.Skip("it is loaded on this machine already, perhaps for a server")
	}
	if err := Load(0, 0); errors.Is(err, unix.EPERM) || errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, unix.EROFS) || errors.Is(err, os.ErrNotExist) {
		t.Skip("this machine cannot load it: ", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := Unload(); err != nil {
			t.Error(err)
		}
		if err := Unload(); err != nil {
			t.Errorf("unloading what is not loaded: %v", err)
		}
	})
	if err := Load(0, 0); err == nil || !strings.Contains(err.Error(), "loaded already") {
		t.Errorf("loading it twice: found %v", err)
	}
	shares, err := ebpf.LoadPinnedMap(Shares, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer shares.Close()
	for _, share := range []*Share{nil, {Target: 1 << 30, DelayUS: 1000}, {Target: 1 << 20, DelayUS: 100, Weight: Whole / 2}, {Hold: 1}} {
		carries(t, shares, share)
	}
}

// TestUnloadLeavesOthersMaps: what somebody else has pinned where the maps belong stays, and so
// does what is beside it; nor is anything left behind when loading fails because of it.
func TestUnloadLeavesOthersMaps(t *testing.T) {
	if _, err := os.Stat(Directory); err == nil {
		t.Skip("something is pinned on this machine already, perhaps for a server")
	}
	if err := os.Mkdir(Directory, 0o700); err != nil {
		t.Skip("the file system of BPF cannot be used: ", err)
	}
	t.Cleanup(func() { os.RemoveAll(Directory) })
	other, err := ebpf.NewMap(&ebpf.MapSpec{Name: "other", Type: ebpf.Hash, KeySize: 4, ValueSize: 16, MaxEntries: 1})
	if err != nil {
		t.Skip("a map cannot be made: ", err)
	}
	defer other.Close()
	for _, path := range []string{control, Shares} {
		if err := other.Pin(path); err != nil {
			t.Fatal(err)
		}
		if err := Unload(); err == nil || !strings.Contains(err.Error(), "nothing is removed") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: unloaded with %v, expected a refusal that names it", path, err)
		}
		if err := Load(0, 0); err == nil {
			t.Errorf("%s: it was loaded over what is somebody else's", path)
		}
		if left, err := os.ReadDir(Directory); err != nil || len(left) != 1 {
			t.Errorf("%s: found %v, %v, expected that alone", path, left, err)
		}
		if err := other.Unpin(); err != nil {
			t.Fatal(err)
		}
	}
	if err := Unload(); err != nil {
		t.Errorf("unloading what is not loaded: %v", err)
	}
}

// carries sends some data over a connection with the congestion control.
func carries(t *testing.T, shares *ebpf.Map, share *Share) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := conn.(syscall.Conn).SyscallConn()
	err = raw.Control(func(fd uintptr) {
		if err := unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, Name); err != nil {
			t.Error(err)
		}
		if share != nil {
			if err := shares.Put(int32(fd), share); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	sent := bytes.Repeat([]byte("lunar"), 1<<20)
	go func() {
		_, _ = conn.Write(sent) // the reader tells
		conn.Close()
	}()
	if got, err := io.ReadAll(peer); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes came: %v", len(got), len(sent), err)
	}
}
