package windows

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

// TestSlowDeviceBeforeItServes: who opens a volume with writes in excess, finds that
// something else is wrong and closes it again has not changed its slow device, and the log
// keeps what it has.
func TestSlowDeviceBeforeItServes(t *testing.T) {
	first, fast := logged(t, 1)
	t.Cleanup(func() {
		if err := first.Close(); err != nil {
			t.Error(err)
		}
	})
	left, slow := fast.CrashClone(1), mem(t, crashSize)
	for _, serves := range []bool{false, true} {
		x := openExcess(t, excessOf(slow, left))
		if serves {
			x.Serve()
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		if written := bytes.Equal(slow.Bytes()[:4096], backstoretest.Pattern(4096, 1)); written != serves || x.Empty() != serves {
			t.Errorf("serves %t: written back %t, the log empty %t", serves, written, x.Empty())
		}
	}
}

// TestStampOfAnExcess: it is that of the slow device once the log has nothing, and Close
// changes it no more.
func TestStampOfAnExcess(t *testing.T) {
	file := backstore.FileConfig{Path: filepath.Join(t.TempDir(), "slow"), Size: crashSize}
	open := func() backstore.Watched {
		s, err := backstore.OpenFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return s.(backstore.Watched)
	}
	slow := open()
	c := excessOf(mem(t, crashSize), mem(t, ExcessLeast))
	c.Slow, c.Large, c.Window = slow.(backstore.Store), 1<<40, time.Hour
	x := openExcess(t, c)
	t.Run("serving", func(t *testing.T) {
		k := backstoretest.NewClient(t, x, backstoretest.NewLoop(t, false))
		k.Write(t, 0, backstoretest.Pattern(4096, 1))
		if _, quiet := x.Quiet(); quiet {
			t.Error("it is quiet, and the log has a write")
		}
	})
	stamp, err := x.Stamp()
	if err != nil {
		t.Fatal(err)
	}
	if _, quiet := x.Quiet(); !quiet || !x.Empty() || !x.Exact() {
		t.Error("it is not quiet, or its log not empty")
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	again := open()
	defer again.(backstore.Store).Close()
	if found, ok := again.Opened(); !ok || found != stamp {
		t.Errorf("found %+v, expected %+v", found, stamp)
	}
	c = excessOf(mem(t, crashSize), mem(t, ExcessLeast))
	x = openExcess(t, c)
	defer x.Close()
	if _, ok := x.Opened(); ok || x.Exact() {
		t.Error("a stamp of a store that has none")
	}
	if _, err := x.Stamp(); err == nil {
		t.Error("a stamp of a store that has none")
	}
}

// TestCloseAgain: a volume that was removed and could not be closed is closed again.
func TestCloseAgain(t *testing.T) {
	m := openMirror(t, mirrorOf(mem(t, crashSize), mem(t, crashSize), mem(t, MapSize)))
	x := openExcess(t, excessOf(mem(t, crashSize), mem(t, ExcessLeast)))
	for range 2 {
		for _, s := range []backstore.Store{m, x} {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
