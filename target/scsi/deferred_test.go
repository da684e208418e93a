package scsi

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

var (
	errOfTest = errors.New("medium error of the test")
	syncCDB   = cdb16(0x91, 0, 0, 0)
	deferred5 = sense.Data{Key: sense.MediumError, ASC: sense.ASCWriteError, Deferred: true, InfoValid: true, Info: 5}
)

// deferral is a unit with two nexuses.
type deferral struct {
	*testing.T
	m    *medium
	th   *thread // everything ends at once
	a, b *Nexus
}

func newDeferral(t *testing.T) *deferral {
	m := newMedium(mib)
	d := &deferral{T: t, m: m, th: prompt(t, m), a: newUnit(t, m, LUConfig{})}
	d.a.Initiator = "a"
	d.b = d.attach("b")
	return d
}

// attach makes another nexus, without the attention of its beginning.
func (d *deferral) attach(initiator string) *Nexus {
	n := &Nexus{LU: d.a.LU, Initiator: initiator, Map: d.a.Map}
	n.LU.Attach(n)
	n.takeAttention()
	return n
}

func (d *deferral) write(n *Nexus, flags byte) {
	d.Helper()
	d.good(n, cdb16(0x8a, flags, 9, 1), make([]byte, 512))
}

func (d *deferral) good(n *Nexus, cdb, out []byte) {
	d.Helper()
	if c := d.th.start(n, cdb, out, 0).finish().c; c.Status != Good {
		d.Fatalf("CDB %x: status %02x, sense %+v", cdb, c.Status, c.Sense)
	}
}

// fail is a failure to write dirty data from block 5 on.
func (d *deferral) fail() { d.a.LU.DeferredError(5*512+100, errOfTest) }

// expect sends TEST UNIT READY, which reports want, or nothing.
func (d *deferral) expect(n *Nexus, want *sense.Data) {
	d.Helper()
	c := d.th.start(n, []byte{0}, nil, 0).finish().c
	if want == nil && c.Status != Good || want != nil && (c.Status != CheckCondition || *c.Sense != *want) {
		d.Errorf("%s: status %02x, sense %+v, expected %+v", n.Initiator, c.Status, c.Sense, want)
	}
}

// TestDeferredError: who wrote is told, once.
func TestDeferredError(t *testing.T) {
	d := newDeferral(t)
	d.write(d.a, 0)
	d.fail()
	d.expect(d.a, &deferred5)
	d.expect(d.a, nil)
	d.expect(d.b, nil)
	d.fail() // it has not become stable since
	d.a.LU.DeferredError(-1, errOfTest)
	d.expect(d.a, &sense.Data{Key: sense.MediumError, ASC: sense.ASCWriteError, Deferred: true})
	d.expect(d.a, nil)
}

// TestDeferredDelivery: the command that reports is not executed; some do not
// report; attentions come first.
func TestDeferredDelivery(t *testing.T) {
	d := newDeferral(t)
	d.write(d.a, 0)
	d.fail()
	d.a.Attention(sense.ASCModeParametersChanged)
	for _, cdb := range [][]byte{{0x12, 0, 0, 0, 36}, {0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0}} {
		if c := d.th.start(d.a, cdb, nil, 256).finish().c; c.Status != Good {
			t.Errorf("CDB %x: status %02x", cdb, c.Status)
		}
	}
	d.expect(d.a, &sense.Data{Key: sense.UnitAttention, ASC: sense.ASCModeParametersChanged})
	before := len(d.m.ops())
	c := d.th.start(d.a, cdb16(0x8a, 0, 0, 1), make([]byte, 512), 0).finish().c
	if c.Status != CheckCondition || *c.Sense != deferred5 || len(d.m.ops()) != before {
		t.Errorf("status %02x, sense %+v, %d operations", c.Status, c.Sense, len(d.m.ops())-before)
	}
	d.expect(d.a, nil)
}

// TestDeferredFormat: response codes 71h and 73h; REQUEST SENSE takes it.
func TestDeferredFormat(t *testing.T) {
	d := newDeferral(t)
	for descriptor, want := range map[byte]string{
		0: "f1 00 03 00000005 0a 00000000 0c00 00 000000",
		1: "73 03 0c 00 000000 0c 00 0a 80 00 0000000000000005",
	} {
		d.write(d.a, 0)
		d.fail()
		x := d.th.start(d.a, []byte{0x03, descriptor, 0, 0, 0xff, 0}, nil, 255).finish()
		equal(t, x.in, want)
		d.expect(d.a, nil)
	}
}

// TestDeferredSense: what is wrong with the store decides.
func TestDeferredSense(t *testing.T) {
	lu := newUnit(t, newMedium(mib), LUConfig{}).LU
	for _, tt := range []struct {
		err  error
		want sense.Data
	}{
		{errOfTest, deferred5},
		{backstore.ErrNoSpace, *sense.SpaceAllocationFailed},
		{backstore.ErrGone, *sense.ManualInterventionRequired},
		{backstore.ErrOutOfRange, deferred5},
		{backstore.ErrUnsupported, deferred5},
	} {
		tt.want.Deferred = true
		if got := lu.deferredSense(5*512, fmt.Errorf("wrapped: %w", tt.err)); got != tt.want {
			t.Errorf("%v: %+v, expected %+v", tt.err, got, tt.want)
		}
	}
}

// TestDeferredAfterFlush: what was written before the flush is stable, what was
// written while it ran may not be.
func TestDeferredAfterFlush(t *testing.T) {
	d := newDeferral(t)
	d.write(d.a, 0)
	d.good(d.b, syncCDB, nil)
	d.fail()
	d.expect(d.a, nil)

	slow := newThread(t, d.m, 1)
	slow.defers = 100
	d.write(d.a, 0)
	flush := slow.start(d.b, syncCDB, nil, 0)
	d.write(d.b, 0)
	flush.finish()
	d.fail()
	d.expect(d.a, nil)
	d.expect(d.b, &deferred5)

	write := slow.start(d.a, cdb16(0x8a, 0, 9, 1), make([]byte, 512), 0)
	d.fail() // a write that has begun may be concerned
	d.expect(d.b, &deferred5)
	d.good(d.b, syncCDB, nil)
	write.finish() // it has ended behind the start of the flush
	d.fail()
	d.expect(d.a, &deferred5)

	write = slow.start(d.a, cdb16(0x8a, 0, 9, 1), make([]byte, 512), 0)
	d.good(d.b, syncCDB, nil)
	d.fail() // what the write has just left in the cache
	write.finish()
	d.expect(d.a, &deferred5)
	d.good(d.b, syncCDB, nil)
	write = slow.start(d.a, cdb16(0x8a, 0, 9, 1), make([]byte, 512), 0)
	d.good(d.b, syncCDB, nil)
	write.finish() // nothing has failed meanwhile
	d.expect(d.a, nil)
}

// TestDeferredMadeUpFor: a later flush that succeeds leaves nothing to report, one
// that fails does.
func TestDeferredMadeUpFor(t *testing.T) {
	d := newDeferral(t)
	d.write(d.a, 0)
	d.fail()
	d.m.fail = func(op *backstore.Op) error {
		if op.Kind == backstore.Flush {
			return errOfTest
		}
		return nil
	}
	if c := d.th.start(d.b, syncCDB, nil, 0).finish().c; c.Status != CheckCondition {
		t.Fatalf("status %02x", c.Status)
	}
	d.expect(d.a, &deferred5)
	d.fail()
	d.m.fail = nil
	d.good(d.b, syncCDB, nil)
	d.expect(d.a, nil)
}

// TestFlushThatLost: when a flush fails after which the store may lack what was written, all are told
// who have written, even if a later one succeeds.
func TestFlushThatLost(t *testing.T) {
	d := newDeferral(t)
	c := d.attach("c")
	lost := sense.Data{Key: sense.MediumError, ASC: sense.ASCWriteError, Deferred: true}
	d.write(d.a, 0)
	d.write(d.b, 0)
	d.m.fail = func(op *backstore.Op) error {
		if op.Kind == backstore.Flush {
			return fmt.Errorf("%w: %w", backstore.ErrLost, errOfTest)
		}
		return nil
	}
	if x := d.th.start(d.b, syncCDB, nil, 0).finish().c; x.Status != CheckCondition || x.Sense.Deferred {
		t.Fatalf("status %02x, sense %+v", x.Status, x.Sense)
	}
	d.m.fail = nil
	d.good(c, syncCDB, nil)
	d.expect(d.a, &lost)
	for _, n := range []*Nexus{d.a, d.b, c} {
		d.expect(n, nil)
	}
	d.write(d.a, 0)
	slow := newThread(t, d.m, 1)
	slow.defers = 100
	write := slow.start(d.a, cdb16(0x8a, 0, 9, 1), make([]byte, 512), 0)
	d.good(d.b, syncCDB, nil)
	write.finish()
	d.expect(d.a, nil)
}

// TestDeferredOnlyVolatile: what is stable when it is acknowledged is no matter.
func TestDeferredOnlyVolatile(t *testing.T) {
	d := newDeferral(t)
	d.write(d.a, fuaBit)
	d.th.start(d.b, cdb16(0x88, 0, 0, 1), nil, 512).finish()
	d.fail()
	d.expect(d.a, nil)
	d.expect(d.b, nil)
	for _, change := range []func(n *Nexus){
		func(n *Nexus) { d.good(n, cdb16(0x93, 0, 0, 8), make([]byte, 512)) },
		func(n *Nexus) { list := unmapList([2]uint64{0, 8}); d.good(n, unmapCDB(list), list) },
		func(n *Nexus) { d.good(n, cdb16(0x89, 0, 0, 1), make([]byte, 1024)) },
	} {
		change(d.a)
		d.fail()
		d.expect(d.a, &deferred5)
		d.good(d.a, syncCDB, nil)
	}
}

// TestDeferredNexusLoss: the next nexus of the initiator port hears what the one
// before did not.
func TestDeferredNexusLoss(t *testing.T) {
	d := newDeferral(t)
	lu := d.a.LU
	d.write(d.a, 0)
	lu.Detach(d.a)
	other := d.attach("c")
	d.fail()
	d.expect(other, nil)
	d.a = d.attach("a")
	d.expect(d.a, &deferred5)

	d.fail()
	lu.Detach(d.a)
	d.a = d.attach("a")
	d.expect(d.a, &deferred5)
	lu.Detach(d.a)
	d.good(d.b, syncCDB, nil)
	d.fail()
	d.a = d.attach("a")
	d.expect(d.a, nil)

	for i := range 3 * maxDeparted { // bounded, and what is stable is forgotten
		n := d.attach(fmt.Sprint(i))
		d.write(n, 0)
		lu.Detach(n)
	}
	if n := len(lu.mu.departed); n != maxDeparted {
		t.Errorf("%d initiator ports are remembered, expected %d", n, maxDeparted)
	}
	d.good(d.b, syncCDB, nil)
	d.write(d.b, 0)
	lu.Detach(d.b)
	if n := len(lu.mu.departed); n != 1 {
		t.Errorf("%d initiator ports are remembered, expected 1", n)
	}
}

// dirtyMedium came with dirty data.
type dirtyMedium struct{ *medium }

func (dirtyMedium) Dirty() int64 { return 512 }

// TestDeferredInherited: data of before the unit are everybody's, until they are
// stable.
func TestDeferredInherited(t *testing.T) {
	d := newDeferral(t)
	lu, err := NewLogicalUnit(LUConfig{Store: dirtyMedium{d.m}, Logger: testLogger(io.Discard)})
	if err != nil {
		t.Fatal(err)
	}
	d.a = &Nexus{LU: lu, Initiator: "a", Map: d.a.Map}
	lu.Attach(d.a)
	d.a.takeAttention()
	d.fail()
	d.b = d.attach("b")
	d.expect(d.a, &deferred5)
	d.expect(d.b, &deferred5)
	d.expect(d.a, nil)
	d.good(d.a, syncCDB, nil)
	d.fail()
	d.expect(d.a, nil)
	d.expect(d.attach("c"), nil)
}

// TestDeferredFromAnyGoroutine is for the race detector.
func TestDeferredFromAnyGoroutine(t *testing.T) {
	d := newDeferral(t)
	d.write(d.a, 0)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 200 {
			d.fail()
		}
	})
	wg.Go(func() {
		for range 200 {
			n := d.attach("c")
			n.writesVolatile()
			n.wroteVolatile()
			n.takeDeferred()
			n.LU.Detach(n)
		}
	})
	for range 200 {
		d.a.writesVolatile()
		d.a.takeDeferred()
		d.a.LU.stability.flushed(d.a.LU.stability.flushing())
	}
	wg.Wait()
}

// TestWriteCacheDisabledMeanwhile: a write that began with WCE=1 and ends with
// WCE=0 is stable when it is acknowledged.
func TestWriteCacheDisabledMeanwhile(t *testing.T) {
	list := unmapList([2]uint64{0, 8})
	for name, cmd := range map[string]struct{ cdb, out []byte }{
		"WRITE":             {cdb16(0x8a, 0, 9, 1), make([]byte, 512)},
		"COMPARE AND WRITE": {cdb16(0x89, 0, 0, 1), make([]byte, 1024)},
		"WRITE SAME":        {cdb16(0x93, 0, 0, 8), make([]byte, 512)},
		"WRITE SAME, ones":  {cdb16(0x93, 0, 0, 8), []byte{511: 1}},
		"UNMAP":             {unmapCDB(list), list},
	} {
		d := newDeferral(t)
		slow := newThread(t, d.m, 1)
		slow.defers, slow.late = 100, 100
		write := slow.start(d.a, cmd.cdb, cmd.out, 0)
		d.a.LU.update(func(s *State) { s.WriteCache = false })
		d.good(d.b, syncCDB, nil)
		write.finish()
		if write.c.Status != Good || d.m.mu.flushes != 2 {
			t.Errorf("%s: status %02x, %d flushes, expected 2", name, write.c.Status, d.m.mu.flushes)
		}
	}
}
