package backstore_test

import (
	"bytes"
	"os"
	"testing"

	"lunar/backstore"
	"lunar/backstore/backstoretest"
)

// The stamp of a block device survives Close, and changes with what is written
// to it by others.
func TestStampOfBlock(t *testing.T) {
	device, _ := loopDevice(t, backstoretest.Size, 512, 0)
	visit := func(write bool) (opened, closed backstore.Stamp) {
		s := must[backstore.Store](t)(backstore.OpenBlock(backstore.BlockConfig{Path: device}))
		opened, ok := s.(backstore.Stamper).Opened()
		if !ok {
			t.Fatal("the device has no stamp")
		}
		if write {
			loop := backstoretest.NewLoop(t, false)
			c := backstoretest.Client{Loop: loop, Lane: must[backstore.Lane](t)(s.Lane(loop))}
			c.Write(t, 0, backstoretest.Pattern(4096, 1))
			backstoretest.On(loop, c.Lane.Close)
		}
		closed = must[backstore.Stamp](t)(s.(backstore.Stamper).Stamp())
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return opened, closed
	}
	before, written := visit(true)
	if before.Medium != written.Medium || before.State == written.State {
		t.Errorf("%v before a write, %v after", before, written)
	}
	if again, _ := visit(false); again != written {
		t.Errorf("nobody wrote: %v, then %v", written, again)
	}
	if err := os.WriteFile(device, bytes.Repeat([]byte{1}, 4096), 0); err != nil {
		t.Fatal(err)
	}
	if changed, _ := visit(false); changed.Medium != written.Medium || changed.State == written.State {
		t.Errorf("somebody wrote: %v, then %v", written, changed)
	}
}
