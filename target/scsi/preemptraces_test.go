package scsi

import (
	"bytes"
	"testing"

	"lunar/backstore"
	"lunar/internal/evloop"
	"lunar/target/scsi/reservation"
)

// victim is a nexus that writes until it is preempted. Its tasks are at this server, also if
// its session is not.
type victim struct {
	nexus *Nexus
	tasks []*exchange
}

// endTasks implements Nexus.EndTasks.
func (v *victim) endTasks(th *thread, done func()) {
	th.wake(evloop.Func(func() {
		left := 1
		end := func() {
			if left--; left == 0 {
				done()
			}
		}
		for _, x := range v.tasks {
			if x.ends > 0 {
				continue
			}
			if x.c.Abort() {
				x.end()
				continue
			}
			left++
			x.awaited = append(x.awaited, end)
		}
		end()
	}))
}

// preemptRaces is how often PREEMPT AND ABORT is tried amid writes.
const preemptRaces = 10_000

// TestNothingWrittenAfterPreemptAndAbort: whatever writes of the removed nexuses are under way
// or come while it is being saved, nothing of them is written once it has been answered.
func TestNothingWrittenAfterPreemptAndAbort(t *testing.T) {
	m := newMedium(mib)
	e := &estate{}
	a := newUnit(t, m, LUConfig{Shared: true, SaveHeritage: e.save})
	lu := a.LU
	lu.Succeed(nil)
	th := newThread(t, m, 1)
	th.defers, th.late = 60, 60
	victims := make([]victim, 2)
	for i := range victims {
		v := &victims[i]
		v.nexus = &Nexus{LU: lu, Initiator: "iqn.v", TargetTag: uint16(i + 1), Map: a.Map}
		v.nexus.EndTasks = func(_ *Command, done func()) { v.endTasks(th, done) }
		lu.Attach(v.nexus)
		v.nexus.takeAttention()
	}
	out := func(n *Nexus, action reservation.Action, key, serviceKey uint64) *exchange {
		list := keys(key, serviceKey, 0)
		return th.start(n, outCDB(action, reservation.WriteExclusiveRegistrantsOnly, list), list, 0)
	}
	settled := func(x *exchange) {
		t.Helper()
		if x.finish(); x.c.Status != Good {
			t.Fatalf("status %#x", x.c.Status)
		}
	}
	settled(out(a, reservation.Register, 0, 1))
	settled(out(a, reservation.Reserve, 1, 0))
	data := bytes.Repeat([]byte{1}, 512)
	written, refused := 0, 0
	for round := range preemptRaces {
		for i := range victims {
			v := &victims[i]
			v.nexus.clearAttention(eventASC[reservation.RegistrationsPreempted])
			settled(out(v.nexus, reservation.RegisterAndIgnoreExistingKey, 0, 2))
			v.tasks = v.tasks[:0]
		}
		m.mu.log = nil
		write := func() {
			v := &victims[th.rng.IntN(len(victims))]
			v.tasks = append(v.tasks, th.start(v.nexus, cdb16(0x8a, 0, uint64(th.rng.IntN(64)), 1), data, 0))
		}
		for range th.rng.IntN(4) {
			write()
		}
		for range th.rng.IntN(4) {
			th.turn()
		}
		x := out(a, reservation.PreemptAndAbort, 1, 2)
		for more := th.rng.IntN(4); x.ends == 0; {
			if more > 0 && th.chance(50) {
				more--
				write()
			}
			if !th.turn() && x.ends == 0 && !th.woken() {
				t.Fatal("PREEMPT AND ABORT does not end")
			}
		}
		before := len(m.ops())
		for range th.rng.IntN(3) {
			write()
		}
		for th.turn() {
		}
		for _, op := range m.ops()[before:] {
			if op.Kind == backstore.Write {
				t.Fatalf("round %d: %d bytes at %d were written after the answer", round, op.Len, op.Off)
			}
		}
		for _, v := range victims {
			for _, x := range v.tasks {
				switch {
				case x.ends != 1:
					t.Fatalf("round %d: a write ended %d times", round, x.ends)
				case x.c.Aborted():
				case x.c.Status == Good:
					written++
				default:
					refused++
				}
			}
		}
	}
	if written == 0 || refused == 0 {
		t.Errorf("%d writes were in time and %d were not, expected some of both", written, refused)
	}
}
