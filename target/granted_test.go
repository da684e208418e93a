package target_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/internal/refusals"
	"lunar/target"
	"lunar/target/login"
	"lunar/target/scsi"
	"lunar/target/scsi/sense"
)

// immediateCopy is an EXTENDED COPY(LID4) with IMMED of the first blocks of a unit to
// those of another.
func immediateCopy(from, to []byte, blocks uint16) initiator.Command {
	cdb, list := copyWithin(from, blocks, true)
	segment := bytes.Clone(list[80:])
	binary.BigEndian.PutUint16(list[42:], 64)
	segment[7] = 1                              // the other
	binary.BigEndian.PutUint64(segment[20:], 0) // its first block
	list = append(append(list[:80], to...), segment...)
	cdb[13] = byte(len(list))
	return initiator.Command{CDB: cdb, Out: list}
}

// copyRig has a unit from which it copies to another, which holds what is written.
type copyRig struct {
	*rig
	t        *testing.T
	from, to *scsi.LogicalUnit
	store    *errstore.Store
	data     []byte
	conn     *initiator.Conn
	refused  refusals.Counters
}

const copiedBlocks = 16 << 10 // 8 MiB: 32 parts

func newCopyRig(t *testing.T) *copyRig {
	ram, err := backstore.NewRAM(16<<20, 512)
	if err != nil {
		t.Fatal(err)
	}
	r := &copyRig{t: t, store: errstore.Wrap(ram), data: pattern(copiedBlocks*512, 9)}
	r.rig = newRig(t, rigOptions{config: target.Config{DrainTime: 50 * time.Millisecond, Refusals: &r.refused}})
	r.from, r.to = r.lu, r.unit("copied", r.store)
	r.grant(r.both(false)...)
	return r
}

func (r *copyRig) both(readOnly bool) []target.LUNMapping {
	return []target.LUNMapping{{LUN: 0, LU: r.from}, {LUN: 1, LU: r.to, ReadOnly: readOnly}}
}

// begin begins a copy in the background, whose first parts are being written.
func (r *copyRig) begin() {
	r.conn = r.login(initiator.Options{})
	for at := 0; at < copiedBlocks; at += 2048 {
		res, err := r.conn.Command(cdbWrite16(uint64(at), 2048), 0, r.data[at*512:][:1<<20], 0)
		mustGood(r.t, res, err)
	}
	testUnitReady(r.t, r.conn, 1)
	r.store.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Hold: true})
	mustDo(r.t, r.conn, immediateCopy(naaCSCD(r.t, r.conn, 0), naaCSCD(r.t, r.conn, 1), copiedBlocks))
	eventually.Holds(r.t, "the first parts are being written", func() bool { return r.store.Held() == scsi.MaxSegments })
}

// leave ends the session that has begun the copy.
func (r *copyRig) leave() {
	if _, err := r.conn.Logout(0); err != nil {
		r.t.Error(err)
	}
	eventually.Holds(r.t, "the session has ended", func() bool { return r.server.Holding().Sessions == 0 })
}

// goOn lets the copy go on and returns how much of it was written in the end.
func (r *copyRig) goOn() (n int) {
	r.store.SetRules()
	r.store.Release(-1)
	eventually.Holds(r.t, "the copy has ended", func() bool { return r.server.Holding().Unheard == 0 })
	return r.written()
}

func (r *copyRig) written() (n int) {
	r.grant(r.both(false)...)
	c := r.login(initiator.Options{ISID: [6]byte{7}})
	testUnitReady(r.t, c, 1)
	for at := 0; at < copiedBlocks; at += 512 {
		res, err := c.Command(cdbRead16(uint64(at), 512), 1, nil, 256<<10)
		if bytes.Equal(mustGood(r.t, res, err).In, r.data[at*512:][:256<<10]) {
			n += 256 << 10
		}
	}
	return n
}

// TestCopyWithoutItsMapping: a copy in the background goes on without its session, but
// stops when what it was begun through is not granted any more, or may not be written
// to; what is being written ends.
func TestCopyWithoutItsMapping(t *testing.T) {
	stranger := []target.AccessRule{{Initiators: []string{"iqn.2026-11.lunar:nobody"}, Auth: login.Auth{AllowNone: true}}}
	for _, test := range []struct {
		name     string
		withdraw func(*copyRig)
		all      bool
	}{
		{"nothing", func(r *copyRig) { r.grant(r.both(false)...) }, true},
		{"destination", func(r *copyRig) { r.grant(r.both(false)[:1]...) }, false},
		{"source", func(r *copyRig) { r.grant(r.both(false)[1:]...) }, false},
		{"destination under another LUN", func(r *copyRig) {
			r.grant(target.LUNMapping{LUN: 0, LU: r.from}, target.LUNMapping{LUN: 2, LU: r.to})
		}, false},
		{"read-only", func(r *copyRig) { r.grant(r.both(true)...) }, false},
		{"no user is admitted without a proof any more", func(r *copyRig) {
			r.change(target.TargetConfig{Access: []target.AccessRule{{Auth: group("tenants", "alice"), LUNs: r.both(false)}}})
		}, false},
		{"access", func(r *copyRig) { r.change(target.TargetConfig{Access: stranger}) }, false},
		{"target", func(r *copyRig) {
			r.server.RemoveTarget(testTarget)
			if _, err := r.server.AddTarget(target.TargetConfig{Name: testTarget, PortalGroups: []uint16{1}}); err != nil {
				r.t.Fatal(err)
			}
		}, false},
	} {
		for _, left := range []bool{false, true} {
			name := test.name + "/in its session"
			if left {
				name = test.name + "/without it"
			}
			t.Run(name, func(t *testing.T) {
				r := newCopyRig(t)
				r.begin()
				if left {
					r.leave()
				}
				test.withdraw(r)
				if n := r.goOn(); (n == len(r.data)) != test.all || !test.all && n > scsi.MaxSegments*scsi.SegmentSize {
					t.Errorf("%d bytes were written", n)
				}
			})
		}
	}
}

// TestRemoveUnderCopy: a volume is not closed while a copy writes to it, and the copy
// writes nothing more than that; one that waits for its payments is ended.
func TestRemoveUnderCopy(t *testing.T) {
	for _, waits := range []bool{false, true} {
		r := newCopyRig(t)
		r.begin()
		r.leave()
		if waits {
			r.server.SetQoS(rules(t, everyone(1)))
			r.store.SetRules()
			r.store.Release(-1)
			eventually.Holds(t, "the copy waits", func() bool { return r.waiting() == 1 })
		}
		r.grant(r.both(false)[:1]...)
		if !waits {
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			if err := r.server.RemoveLogicalUnit(ctx, r.to); err == nil {
				t.Error("closed while it is being written")
			}
			cancel()
			r.store.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Hold: true})
			r.store.Release(-1)
		}
		r.remove(r.to)
		if n := r.store.Held(); n > 0 {
			t.Errorf("%d writes after the volume was removed", n)
		}
	}
}

// TestResetEndsCopies: a reset of a logical unit ends the copies that it was asked
// for, reads or writes, and is answered when nothing more is written (SPC-4 clause
// 5.17.5). The loss of a nexus does not.
func TestResetEndsCopies(t *testing.T) {
	for lun := range uint64(2) {
		for _, immediate := range []bool{true, false} {
			r := newCopyRig(t)
			r.begin()
			var copying *initiator.Task
			if !immediate { // one of either: the first is ended, too
				command := immediateCopy(naaCSCD(t, r.conn, 0), naaCSCD(t, r.conn, 1), copiedBlocks)
				command.Out[15], command.Out[23] = 0, 8
				copying = start(t, r.conn, command)
				eventually.Holds(t, "the second is being written", func() bool { return r.store.Held() == 2*scsi.MaxSegments })
			}
			other := r.login(initiator.Options{ISID: [6]byte{2}})
			answered := make(chan error, 1)
			go func() {
				response, err := other.TaskManagement(initiator.TaskRequest{Function: initiator.LogicalUnitReset, LUN: lun})
				if response != 0 {
					t.Errorf("response %d", response)
				}
				answered <- err
			}()
			eventually.Holds(t, "the reset has begun", func() bool { return testUnitReady(t, r.conn, lun) == [2]byte{0x29, 0x03} })
			select {
			case err := <-answered:
				t.Errorf("answered while the copy writes: %v", err)
			default:
			}
			eventually.Holds(t, "the reset is answered", func() bool {
				r.store.Release(-1)
				select {
				case err := <-answered:
					return err == nil
				default:
					return false
				}
			})
			if n := r.store.Held(); n > 0 {
				t.Errorf("%d writes after the reset", n)
			}
			if lun == 1 && !immediate {
				if res, err := r.conn.Wait(copying); err != nil || res.Status != 2 || res.Sense[2]&0x0f != byte(sense.CopyAborted) {
					t.Errorf("found %v, %+v", err, res)
				}
			}
			res, err := r.conn.Command([]byte{0x84, 5, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0}, 0, nil, 64)
			if status := mustGood(t, res, err).In[5]; status != 0x60 {
				t.Errorf("found status %#x of the copy, expected that it was terminated", status)
			}
			r.store.SetRules()
		}
	}
}

// TestResetAwaitsAbortedCopies: a reset waits for a copy that another function has
// aborted before and that still writes to the unit.
func TestResetAwaitsAbortedCopies(t *testing.T) {
	r := newCopyRig(t)
	c := r.login(initiator.Options{})
	from, to := naaCSCD(t, c, 0), naaCSCD(t, c, 1)
	testUnitReady(t, c, 0)
	r.store.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Hold: true})
	command := immediateCopy(from, to, copiedBlocks)
	command.Out[15] = 0 // not IMMED
	start(t, c, command)
	eventually.Holds(t, "the first parts are being written", func() bool { return r.store.Held() == scsi.MaxSegments })
	first, second := r.login(initiator.Options{ISID: [6]byte{2}}), r.login(initiator.Options{ISID: [6]byte{3}})
	answered := make(chan error, 1)
	go func() { // of the unit that the copy was asked of
		_, err := first.TaskManagement(initiator.TaskRequest{Function: initiator.LogicalUnitReset, LUN: 0})
		answered <- err
	}()
	eventually.Holds(t, "the first reset has begun", func() bool { return testUnitReady(t, c, 0) == [2]byte{0x29, 0x03} })
	reset := initiator.TaskRequest{Function: initiator.LogicalUnitReset, LUN: 1}
	if code := respondsOnlyAfter(t, second, reset, func() { r.store.Release(-1) }); code != 0 {
		t.Errorf("response %d", code)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}
