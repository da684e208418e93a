package scsi

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime"
	"slices"
	"testing"
	"time"

	"lunar/backstore"
)

// A nexus of a shared unit comes by the group with tag 1; that with tag 2 is another
// server's.
func newShared(t *testing.T, m *medium) (*Nexus, *LogicalUnit) {
	t.Helper()
	n := newUnit(t, m, LUConfig{Shared: true, Access: map[uint16]PortAccess{EveryTag: {State: Transitioning}}})
	n.LU.Detach(n)
	n = &Nexus{LU: n.LU, TargetTag: 1, Ports: func() []uint16 { return []uint16{1, 2} }}
	n.LU.Attach(n)
	n.takeAttention()
	return n, n.LU
}

// here and there are the access states when this server serves a unit, and when the other
// one does.
var (
	here  = map[uint16]PortAccess{EveryTag: {State: Standby}, 1: {State: ActiveOptimized}}
	there = map[uint16]PortAccess{EveryTag: {State: Standby}, 2: {State: ActiveOptimized}}
)

const longHold = time.Hour

var (
	reportGroups = []byte{0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0}
)

func senseCode(x *exchange) string {
	if x.c.Status != CheckCondition {
		return ""
	}
	return string([]byte{byte(x.c.Sense.Key), x.c.Sense.ASC.Code(), x.c.Sense.ASC.Qualifier()})
}

const (
	accessChanged = "\x06\x2a\x06"
	inTransition  = "\x02\x04\x0a"
	inStandby     = "\x02\x04\x0b"
)

// groupStates are the states that REPORT TARGET PORT GROUPS tells, by tag.
func groupStates(t *testing.T, data []byte) map[uint16]AccessState {
	t.Helper()
	all := map[uint16]AccessState{}
	for at := 4; at+12 <= len(data); at += 12 {
		all[binary.BigEndian.Uint16(data[at+2:])] = AccessState(data[at] & groupStateMask)
	}
	return all
}

// TestHold: while it is not decided who serves a unit, commands that depend on it wait, and
// others do not; then they go on, told of the change first.
func TestHold(t *testing.T) {
	for _, c := range []struct {
		name string
		to   map[uint16]PortAccess
		want string // sense of a command on the medium
		mine AccessState
	}{{"this server gets it", here, "", ActiveOptimized}, {"another one gets it", there, inStandby, Standby}} {
		t.Run(c.name, func(t *testing.T) {
			m := newMedium(mib)
			n, lu := newShared(t, m)
			lu.Settle(there, nil)
			n.takeAttention()
			th := newThread(t, m, 1)
			lu.Hold(longHold)
			data := bytes.Repeat([]byte{7}, 512)
			var write CDB
			copy(write[:], cdb16(0x8a, 0, 0, 1))
			waiting := []*exchange{
				th.start(n, cdb16(0x8a, 0, 0, 1), data, 0), th.start(n, cdb16(0x88, 0, 0, 1), nil, 512),
				th.start(n, []byte{0, 0, 0, 0, 0, 0}, nil, 0), th.start(n, reportGroups, nil, 64),
			}
			for th.turn() {
			}
			for i, x := range waiting {
				if x.ends != 0 || !x.c.Held() || !x.c.Dormant() {
					t.Errorf("command %d has not waited", i)
				}
			}
			if x := th.start(n, []byte{0x12, 0, 0, 0, 36, 0}, nil, 36).finish(); x.c.Status != Good {
				t.Errorf("INQUIRY: status %#x", x.c.Status)
			}
			if Wants(n, &write, 512) != 512 {
				t.Error("no memory is set aside for the data of a write that waits")
			}
			lu.Settle(c.to, nil)
			th.inbox.Lock()
			for i, woken := range th.inbox.tasks {
				if woken.(*held).c != waiting[i].c {
					t.Errorf("task %d is not of the command that came then", i)
				}
			}
			th.inbox.Unlock()
			for _, x := range waiting {
				x.finish()
			}
			told := slices.IndexFunc(waiting, func(x *exchange) bool { return senseCode(x) == accessChanged })
			if moved := c.mine == ActiveOptimized; (told >= 0) != moved {
				t.Errorf("told of a change: command %d, of a change: %v", told, moved)
			}
			for i, x := range waiting {
				want := c.want
				if i == 3 {
					want = ""
				}
				if got := senseCode(x); i != told && got != want {
					t.Errorf("command %d: sense %x, expected %x", i, got, want)
				}
			}
			x := th.start(n, reportGroups, nil, 64).finish()
			if got := groupStates(t, x.in); len(got) != 2 || got[1] != c.mine || got[2] == c.mine {
				t.Errorf("found states %v", got)
			}
		})
	}
}

// TestHoldExpires: commands do not wait longer than its patience; from then on all groups are
// in transition, until it is decided.
func TestHoldExpires(t *testing.T) {
	m := newMedium(mib)
	n, lu := newShared(t, m)
	lu.Settle(here, nil)
	n.takeAttention()
	th := newThread(t, m, 1)
	lu.Hold(time.Millisecond)
	for range 2 {
		if x := th.start(n, cdb16(0x88, 0, 0, 1), nil, 512).finish(); senseCode(x) != inTransition {
			t.Errorf("status %#x, sense %+v", x.c.Status, x.c.Sense)
		}
	}
	if x := th.start(n, reportGroups, nil, 64).finish(); groupStates(t, x.in)[1] != Transitioning {
		t.Errorf("found %x", x.in)
	}
	lu.Settle(here, nil)
	if x := th.start(n, cdb16(0x88, 0, 0, 1), nil, 512).finish(); senseCode(x) != accessChanged {
		t.Errorf("status %#x, sense %+v", x.c.Status, x.c.Sense)
	}
	if x := th.start(n, cdb16(0x88, 0, 0, 1), nil, 512).finish(); x.c.Status != Good {
		t.Errorf("status %#x, sense %+v", x.c.Status, x.c.Sense)
	}
}

// TestHoldExpiresLate: the end of a Hold's patience that comes when that is over, and the next one
// has begun, does not end the next one.
func TestHoldExpiresLate(t *testing.T) {
	m := newMedium(mib)
	_, lu := newShared(t, m)
	lu.Hold(longHold)
	first := lu.mu.holds
	lu.Settle(here, nil)
	lu.Hold(longHold)
	if lu.expireHold(first); !lu.mu.holding {
		t.Error("it has ended")
	}
	lu.Settle(here, nil)
}

// TestHeldCommandsEnd: task management and the end of a session end commands that wait, also
// in the moment in which it is decided.
func TestHeldCommandsEnd(t *testing.T) {
	m := newMedium(mib)
	n, lu := newShared(t, m)
	th := newThread(t, m, 1)
	lu.Settle(here, nil)
	n.takeAttention()
	for _, decided := range []bool{false, true} {
		lu.Hold(longHold)
		x := th.start(n, cdb16(0x8a, 0, 0, 1), bytes.Repeat([]byte{7}, 512), 0)
		if decided {
			lu.Settle(here, nil)
		}
		if ended := x.c.Abort(); ended == decided {
			t.Errorf("decided %v: ended at once: %v", decided, ended)
		}
		for th.turn() {
		}
		if (x.ends == 1) != decided || len(lu.flux.waiting) != 0 {
			t.Errorf("decided %v: ended %d times, %d wait", decided, x.ends, len(lu.flux.waiting))
		}
		lu.Settle(here, nil)
	}
	if m.mu.bytes[0] != 0 {
		t.Error("an aborted write was done")
	}
}

// TestQuiesce: it waits for what has begun, and not for what waits itself.
func TestQuiesce(t *testing.T) {
	m := newMedium(mib)
	n, lu := newShared(t, m)
	lu.Settle(here, nil)
	n.takeAttention()
	th := slow(t, m, 1)
	var all []*exchange
	n.AwaitTasks = func(match func(*Command) bool, done func()) {
		th.wake(task(func() {
			for _, x := range all {
				if x.ends == 0 && match(x.c) {
					x.awaited = append(x.awaited, done)
					return
				}
			}
			done()
		}))
	}
	running := th.start(n, cdb16(0x88, 0, 0, 512), nil, 512*512)
	lu.Hold(longHold)
	waiting := th.start(n, cdb16(0x88, 0, 0, 1), nil, 512)
	all = []*exchange{running, waiting}
	quiet := make(chan error, 1)
	go func() { quiet <- lu.Quiesce(t.Context()) }()
	for len(quiet) == 0 {
		if !th.turn() {
			runtime.Gosched()
		}
	}
	if err := <-quiet; err != nil || running.ends != 1 || waiting.ends != 0 {
		t.Errorf("%v; the command that had begun has ended: %d, the one that waits: %d", err, running.ends, waiting.ends)
	}
	lu.Settle(here, nil)
	waiting.finish()
	n.AwaitTasks = func(func(*Command) bool, func()) {}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if lu.Quiesce(ended) == nil {
		t.Error("what has not ended was not waited for")
	}
}

// TestSharedStoreThatIsGone: what fails because another server has the medium is tried again
// by initiators, on another path.
func TestSharedStoreThatIsGone(t *testing.T) {
	m := newMedium(mib)
	m.fail = func(*backstore.Op) error { return backstore.ErrFenced }
	n, lu := newShared(t, m)
	lu.Settle(here, nil)
	n.takeAttention()
	if x := newThread(t, m, 1).start(n, cdb16(0x88, 0, 0, 1), nil, 512).finish(); senseCode(x) != inTransition {
		t.Errorf("status %#x, sense %+v", x.c.Status, x.c.Sense)
	}
}
