package scsi

import (
	"errors"
	"io"
	"testing"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// growing is a medium whose size can change.
type growing struct{ *medium }

func (g growing) Resize(size int64) error {
	g.info.Size = size
	g.mu.bytes = append(g.mu.bytes, make([]byte, max(0, size-int64(len(g.mu.bytes))))...)[:size]
	return nil
}

func newGrowing(t *testing.T) *deferral {
	d := newDeferral(t)
	lu, err := NewLogicalUnit(LUConfig{Store: growing{d.m}, BlockSize: 4096, Logger: testLogger(io.Discard)})
	if err != nil {
		t.Fatal(err)
	}
	d.m.fail = func(op *backstore.Op) error { return backstore.Check(op, &d.m.info) }
	d.a = &Nexus{LU: lu, Initiator: "a", Map: d.a.Map}
	lu.Attach(d.a)
	d.a.takeAttention()
	d.b = d.attach("b")
	return d
}

func TestResize(t *testing.T) {
	d := newGrowing(t)
	changed := &sense.Data{Key: sense.UnitAttention, ASC: sense.ASCCapacityChanged}
	for _, size := range []int64{2 * mib, mib, 3 * mib / 2, 4096} {
		if err := d.a.LU.Resize(size); err != nil {
			t.Fatal(err)
		}
		d.expect(d.a, changed)
		d.expect(d.b, changed)
		if blocks := d.a.LU.State().Blocks; blocks != uint64(size)/4096 {
			t.Errorf("%d blocks after a resize to %d bytes", blocks, size)
		}
		last := uint64(size)/4096 - 1
		d.good(d.a, cdb16(0x8a, 0, last, 1), make([]byte, 4096))
		if c := d.th.start(d.a, cdb16(0x88, 0, last, 2), nil, 8192).finish().c; c.Sense != sense.LBAOutOfRange {
			t.Errorf("read behind the end: %+v", c.Sense)
		}
	}
	if err := d.a.LU.Resize(4096); err != nil {
		t.Error(err)
	}
	d.expect(d.a, nil)
	for _, size := range []int64{0, -4096, 512, 8191, mib + 512} {
		if err := d.a.LU.Resize(size); err == nil || d.m.info.Size != 4096 {
			t.Errorf("resize to %d: %v, the store has %d bytes", size, err, d.m.info.Size)
		}
	}
	d.expect(d.a, nil)
}

// TestShrinkUnderCommand: a command that was let in is told of the new end.
func TestShrinkUnderCommand(t *testing.T) {
	d := newGrowing(t)
	for name, start := range map[string]func(*thread) *exchange{
		"READ":  func(th *thread) *exchange { return th.start(d.a, cdb16(0x88, 0, 200, 56), nil, 56*4096) },
		"WRITE": func(th *thread) *exchange { return th.start(d.a, cdb16(0x8a, 0, 200, 56), make([]byte, 56*4096), 0) },
	} {
		slow := newThread(t, d.m, 1)
		slow.defers = 100
		x := start(slow)
		if err := d.a.LU.Resize(mib / 2); err != nil {
			t.Fatal(err)
		}
		if c := x.finish().c; c.Status != CheckCondition || c.Sense.ASC != sense.ASCLBAOutOfRange {
			t.Errorf("%s: status %02x, sense %+v", name, c.Status, c.Sense)
		}
		if err := d.a.LU.Resize(mib); err != nil {
			t.Fatal(err)
		}
		d.a.takeAttention()
	}
}

func TestResizeUnsupported(t *testing.T) {
	d := newDeferral(t)
	if err := d.a.LU.Resize(2 * mib); !errors.Is(err, backstore.ErrUnsupported) {
		t.Errorf("error %v, expected ErrUnsupported", err)
	}
	if d.a.LU.State().Blocks != mib/512 {
		t.Errorf("%d blocks", d.a.LU.State().Blocks)
	}
	d.expect(d.a, nil)
}
