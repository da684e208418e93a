package target_test

import (
	"bytes"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
)

// TestRelay: commands by a path to a node that does not own the disk are as those by one to the
// owner: data of all sizes, sense data, residuals, unit attentions.
func TestRelay(t *testing.T) {
	r := newRelayRig(t, 3)
	near, far := r.nodes[0].ready(1), r.nodes[1].ready(2)
	for i, blocks := range []int{1, 8, 128, 512, 513, 1024, 4000} {
		data, lba := pattern(blocks*512, byte(i+1)), uint64(i*4096)
		res, err := far.Command(cdbWrite16(lba, uint32(blocks)), 0, data, 0)
		mustGood(t, res, err)
		res, err = near.Command(cdbRead16(lba, uint32(blocks)), 0, nil, len(data))
		mustGood(t, res, err)
		if !bytes.Equal(res.In, data) {
			t.Errorf("%d blocks: the owner reads something else", blocks)
		}
		res, err = far.Command(cdbRead16(lba, uint32(blocks)), 0, nil, len(data))
		mustGood(t, res, err)
		if !bytes.Equal(res.In, data) {
			t.Errorf("%d blocks: the relaying node reads something else", blocks)
		}
	}
	for name, c := range map[string]initiator.Command{
		"beyond the end":       {CDB: cdbRead16(1<<40, 8), InLen: 4096},
		"a write beyond it":    {CDB: cdbWrite16(1<<40, 8), Out: pattern(4096, 1)},
		"a bit that is no":     {CDB: append([]byte{0x28, 0x04}, make([]byte, 8)...), InLen: 512},
		"more than is read":    {CDB: cdbRead16(0, 1), InLen: 4096},
		"less than is read":    {CDB: cdbRead16(0, 8), InLen: 1024},
		"more than is written": {CDB: cdbWrite16(0, 1), Out: pattern(4096, 1)},
		"MODE SENSE":           {CDB: []byte{0x1a, 0, 0x3f, 0, 255, 0}, InLen: 255},
		"LOG SENSE":            {CDB: []byte{0x4d, 0, 0, 0, 0, 0, 0, 0, 255, 0}, InLen: 255},
		"READ CAPACITY":        {CDB: []byte{0x25, 9: 0}, InLen: 8},
		"REQUEST SENSE":        {CDB: []byte{0x03, 0, 0, 0, 252, 0}, InLen: 252},
		"an unknown command":   {CDB: []byte{0xc0, 9: 0}},
		"a miscompare":         {CDB: []byte{0x89, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}, Out: pattern(1024, 9)},
	} {
		want, err := near.Do(c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := far.Do(c)
		if err != nil {
			t.Fatal(err)
		}
		if got.Status != want.Status || !bytes.Equal(got.Sense, want.Sense) || !bytes.Equal(got.In, want.In) || got.Residual != want.Residual || got.Overflow != want.Overflow {
			t.Errorf("%s: found %+v, expected %+v, as by the owner", name, got, want)
		}
	}
}

// TestRelayAbort: task management by a path to another node ends what the owner does, and is
// answered when that has ended.
func TestRelayAbort(t *testing.T) {
	for name, f := range map[string]func(*initiator.Task) initiator.TaskRequest{
		"ABORT TASK": func(t *initiator.Task) initiator.TaskRequest {
			return initiator.TaskRequest{Function: initiator.AbortTask, Referenced: t}
		},
		"ABORT TASK SET": func(*initiator.Task) initiator.TaskRequest {
			return initiator.TaskRequest{Function: initiator.AbortTaskSet}
		},
		"LOGICAL UNIT RESET": func(*initiator.Task) initiator.TaskRequest {
			return initiator.TaskRequest{Function: initiator.LogicalUnitReset}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelayRig(t, 2)
			far := r.nodes[1].ready(1)
			r.nodes[0].disk.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Len: 1 << 20, Hold: true})
			task := heldWrite(t, far, r.nodes[0].disk, 0)
			if code := respondsOnlyAfter(t, far, f(task), func() { r.nodes[0].disk.Release(-1) }); code != 0 {
				t.Errorf("response %d, expected 0", code)
			}
			far.Forget(task)
			r.nodes[0].disk.SetRules()
			if err := far.Ready(0); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRelayReset: a reset by any path ends the commands of all, and all are told once.
func TestRelayReset(t *testing.T) {
	r := newRelayRig(t, 3)
	conns := []*initiator.Conn{r.nodes[0].ready(1), r.nodes[1].ready(2), r.nodes[2].ready(3)}
	for by := range conns {
		r.nodes[0].disk.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Len: 1 << 20, Hold: true})
		var tasks []*initiator.Task
		for _, c := range conns {
			tasks = append(tasks, heldWrite(t, c, r.nodes[0].disk, 0))
		}
		if code := respondsOnlyAfter(t, conns[by], initiator.TaskRequest{Function: initiator.LogicalUnitReset}, func() { r.nodes[0].disk.Release(-1) }); code != 0 {
			t.Errorf("response %d, expected 0", code)
		}
		r.nodes[0].disk.SetRules()
		for i, c := range conns {
			c.Forget(tasks[i])
			res, err := c.Command(make([]byte, 6), 0, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			if key, asc, ascq := res.SenseKey(); [3]byte{key, asc, ascq} != [3]byte{6, 0x29, 3} {
				t.Errorf("reset by %d: initiator %d is told %x %x %x", by, i, key, asc, ascq)
			}
			res, err = c.Command(make([]byte, 6), 0, nil, 0)
			mustGood(t, res, err)
		}
	}
}

// TestRelayMove: what is under way when the disk moves ends well, by whatever path it came,
// and all initiators are told of the change once.
func TestRelayMove(t *testing.T) {
	r := newRelayRig(t, 3)
	conns := []*initiator.Conn{r.nodes[0].ready(1), r.nodes[1].ready(2), r.nodes[2].ready(3)}
	for _, to := range []int{1, 2, 0} {
		r.hold()
		var tasks []*initiator.Task
		for i, c := range conns {
			tasks = append(tasks, start(t, c, initiator.Command{CDB: cdbWrite16(uint64(i*8), 8), Out: pattern(4096, byte(to*3+i))}))
		}
		r.move(to)
		for i, c := range conns {
			res, err := c.Wait(tasks[i])
			if err != nil {
				t.Fatal(err)
			}
			key, asc, ascq := res.SenseKey()
			if [3]byte{key, asc, ascq} != [3]byte{6, 0x2a, 6} {
				t.Errorf("move to %d: initiator %d: status %#x, sense %x %x %x", to, i, res.Status, key, asc, ascq)
			}
			res, err = c.Command(cdbWrite16(uint64(i*8), 8), 0, pattern(4096, byte(to*3+i)), 0)
			mustGood(t, res, err)
		}
		for i := range conns {
			res, err := conns[(i+1)%3].Command(cdbRead16(uint64(i*8), 8), 0, nil, 4096)
			mustGood(t, res, err)
			if !bytes.Equal(res.In, pattern(4096, byte(to*3+i))) {
				t.Errorf("move to %d: what initiator %d has written is not read by another one", to, i)
			}
		}
	}
}

// TestRelayCut: a command whose answer is lost ends only when it certainly does not run any
// more: when the link is back and the owner has ended it, or another node owns the disk.
func TestRelayCut(t *testing.T) {
	for name, resolve := range map[string]func(*relayRig){
		"the link is back": func(r *relayRig) {
			r.net.CutAll("n2", false)
		},
		"another node owns the disk": func(r *relayRig) {
			r.hold()
			r.settle(2, 0, 1)
		},
		"this node owns the disk": func(r *relayRig) {
			r.hold()
			r.settle(1, 0, 2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelayRig(t, 3)
			far := r.nodes[1].ready(1)
			r.nodes[0].disk.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Len: 1 << 20, Hold: true})
			task := heldWrite(t, far, r.nodes[0].disk, 0)
			r.net.CutAll("n2", true)
			eventually.Holds(t, "the link is down", func() bool { return !r.nodes[1].links.Up("n1") })
			later := start(t, far, initiator.Command{CDB: cdbWrite16(4096, 8), Out: pattern(4096, 2)})
			ended := make(chan *initiator.Result, 1)
			go func() {
				res, _ := far.Wait(task)
				ended <- res
			}()
			select {
			case res := <-ended:
				t.Fatalf("it ended while nobody knew what has become of it: %+v", res)
			case <-time.After(50 * time.Millisecond):
			}
			resolve(r)
			if name == "the link is back" {
				select {
				case res := <-ended:
					t.Fatalf("it ended while the owner still worked for it: %+v", res)
				case <-time.After(100 * time.Millisecond):
				}
				r.nodes[0].disk.Release(-1)
			}
			res := <-ended
			if key, asc, ascq := res.SenseKey(); [3]byte{key, asc, ascq} != [3]byte{2, 4, 0x0a} {
				t.Errorf("status %#x, sense %x %x %x, expected IN TRANSITION", res.Status, key, asc, ascq)
			}
			r.nodes[0].disk.Release(-1)
			r.nodes[0].disk.SetRules()
			r.net.CutAll("n2", false)
			res, err := far.Wait(later) // it was not sent
			if key, asc, _ := res.SenseKey(); err != nil || res.Status != 0 && !(key == 6 && asc == 0x2a) {
				t.Errorf("what was not sent: %+v, %v", res, err)
			}
			if err := far.Ready(0); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRelaySessions: the owner forgets the nexus of a session that has ended, and tells one that it
// had to forget of a nexus loss.
func TestRelaySessions(t *testing.T) {
	r := newRelayRig(t, 2)
	far := r.nodes[1].ready(1)
	count := func() int { return r.nodes[0].server.Remotes() }
	eventually.Holds(t, "the owner knows the session", func() bool { return count() == 1 })
	r.nodes[0].server.ForgetRelayed(nil, "n2", func() {})
	eventually.Holds(t, "the owner has forgotten it", func() bool { return count() == 0 })
	res, err := far.Command(make([]byte, 6), 0, nil, 0)
	if key, asc, ascq := res.SenseKey(); err != nil || [3]byte{key, asc, ascq} != [3]byte{6, 0x29, 7} {
		t.Errorf("found %x %x %x, %v, expected I_T NEXUS LOSS", key, asc, ascq, err)
	}
	r.nodes[0].server.ForgetEarlier("n2", "first")
	time.Sleep(10 * time.Millisecond)
	if count() != 1 {
		t.Errorf("found %d sessions, expected the one of the process that lives", count())
	}
	r.nodes[0].server.ForgetEarlier("n2", "second")
	eventually.Holds(t, "what an earlier process had is forgotten", func() bool { return count() == 0 })
	if err := far.Ready(0); err != nil {
		t.Fatal(err)
	}
	far.Close()
	eventually.Holds(t, "the session has ended", func() bool { return count() == 0 })
}

// TestRelayReservations: reservations are the owner's: what one path's initiator reserves holds for
// all others, PREEMPT AND ABORT ends what another node has relayed, and the next owner knows
// it.
func TestRelayReservations(t *testing.T) {
	r := newRelayRig(t, 3)
	near, far, third := r.nodes[0].ready(1), r.nodes[1].ready(2), r.nodes[2].ready(3)
	for c, key := range map[*initiator.Conn]uint64{far: 0xb, third: 0xc} {
		if status := persistentReserveOut(t, c, actionRegister, 0, 0, key); status != 0 {
			t.Fatalf("register %x: status %#x", key, status)
		}
	}
	if status := persistentReserveOut(t, far, actionReserve, registrantsOnly, 0xb, 0); status != 0 {
		t.Fatalf("reserve: status %#x", status)
	}
	if res, err := near.Command(cdbWrite16(0, 8), 0, pattern(4096, 1), 0); err != nil || res.Status != conflictStatus {
		t.Errorf("who has not registered writes: %+v, %v", res, err)
	}
	r.nodes[0].disk.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Len: 1 << 20, Hold: true})
	fenced := heldWrite(t, far, r.nodes[0].disk, 0)
	answered := make(chan byte, 1)
	go func() {
		answered <- persistentReserveOut(t, third, actionPreemptAndAbort, registrantsOnly, 0xc, 0xb)
	}()
	select {
	case status := <-answered:
		t.Fatalf("status %#x while the owner still writes for the fenced one", status)
	case <-time.After(50 * time.Millisecond):
	}
	r.nodes[0].disk.Release(-1)
	if status := <-answered; status != 0 {
		t.Errorf("PREEMPT AND ABORT: status %#x", status)
	}
	far.Forget(fenced)
	r.nodes[0].disk.SetRules()
	r.move(1)
	for told := 0; ; told++ {
		res, err := far.Command(cdbWrite16(0, 8), 0, pattern(4096, 1), 0)
		if err != nil || told > 3 {
			t.Fatalf("%+v, %v", res, err)
		}
		if res.Status == conflictStatus {
			break
		}
		if key, _, _ := res.SenseKey(); key != 6 {
			t.Fatalf("the fenced one writes after a move: %+v", res)
		}
	}
	if err := third.Ready(0); err != nil {
		t.Fatal(err)
	}
	res, err := third.Command(cdbWrite16(0, 8), 0, pattern(4096, 2), 0)
	mustGood(t, res, err)
}

// TestRelayInspection: an event thread that looks who holds buffers finds what was relayed to it.
func TestRelayInspection(t *testing.T) {
	r := newRelayRig(t, 2)
	far := r.nodes[1].ready(1)
	r.nodes[0].disk.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Len: 1 << 20, Hold: true})
	task := heldWrite(t, far, r.nodes[0].disk, 0)
	r.nodes[0].server.Inspect()
	r.nodes[0].disk.Release(-1)
	res, err := far.Wait(task)
	mustGood(t, res, err)
}

// TestRelayTraced: the trace of a session tells, before the answer, where a command was relayed to, and
// how long it was there; of one that this node runs it tells nothing.
func TestRelayTraced(t *testing.T) {
	r := newRelayRig(t, 2)
	far := r.nodes[1].ready(1)
	trace := r.nodes[1].traced()
	res, err := far.Command(cdbRead16(0, 8), 0, nil, 4096)
	mustGood(t, res, err)
	r.move(1)
	for range 2 { // it is told of the move first
		if res, err = far.Command(cdbRead16(0, 8), 0, nil, 4096); err != nil {
			t.Fatal(err)
		}
	}
	mustGood(t, res, err)
	trace.Close()
	var relayed []target.TracedPDU
	for p, _, _, ok := trace.Next(); ok; p, _, _, ok = trace.Next() {
		if p.Way == target.PDURelayed {
			relayed = append(relayed, p)
		}
	}
	if len(relayed) != 1 {
		t.Fatalf("found %d commands relayed, expected one", len(relayed))
	}
	if how := relayed[0].How; how.Server != "n1" || !how.Ended || how.Away < how.There || how.Waited < 0 {
		t.Errorf("found %+v", how)
	}
}
