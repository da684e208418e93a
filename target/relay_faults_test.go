package target_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"lunar/backstore"
	"lunar/backstore/errstore"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/scsi/relay"
)

// inTransition reports that a result is NOT READY, ASYMMETRIC ACCESS STATE TRANSITION.
func inTransition(res *initiator.Result) bool {
	key, asc, ascq := res.SenseKey()
	return [3]byte{key, asc, ascq} == [3]byte{2, 4, 0x0a}
}

// TestRelayLostPart: a read, of whose data a part is lost, does not end well; one of whose data the
// owner cannot send a part for a while does.
func TestRelayLostPart(t *testing.T) {
	r := newRelayRig(t, 2)
	far := r.nodes[1].ready(1)
	data := pattern(2048*512, 1)
	res, err := far.Command(cdbWrite16(0, 2048), 0, data, 0)
	mustGood(t, res, err)
	r.nodes[0].lossy.Store(1)
	res, err = far.Command(cdbRead16(0, 2048), 0, nil, len(data))
	if err != nil {
		t.Fatal(err)
	}
	if !inTransition(res) {
		t.Errorf("found status %#x, data complete: %v, expected IN TRANSITION", res.Status, bytes.Equal(res.In, data))
	}
	r.nodes[0].full.Store(5)
	res, err = far.Command(cdbRead16(0, 2048), 0, nil, len(data))
	mustGood(t, res, err)
	if !bytes.Equal(res.In, data) {
		t.Error("what is read afterwards is something else")
	}
}

// TestRelayFull: a command that cannot be sent for a while, since too much waits to be, does not end
// those that the owner works on.
func TestRelayFull(t *testing.T) {
	r := newRelayRig(t, 2)
	far, owner := r.nodes[1].ready(1), r.nodes[0]
	owner.disk.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Len: 1 << 20, Hold: true})
	task := heldWrite(t, far, owner.disk, 0)
	r.nodes[1].full.Store(1 << 30)
	later := []*initiator.Task{
		start(t, far, initiator.Command{CDB: cdbWrite16(1<<12, 8), Out: pattern(4096, 2)}),
		start(t, far, initiator.Command{CDB: cdbWrite16(1<<12, 8), Out: pattern(4096, 3)}),
	}
	eventually.Holds(t, "it cannot be sent", func() bool { return r.nodes[1].full.Load() < 1<<30-1 })
	owner.disk.SetRules()
	r.nodes[1].full.Store(0)
	for _, l := range later {
		res, err := far.Wait(l)
		mustGood(t, res, err)
	}
	owner.disk.Release(-1)
	res, err := far.Wait(task)
	mustGood(t, res, err)
}

// TestRelayTenure: a command that waits at an owner while it gives the disk away, and whose answer is
// lost, does not run when the same owner has the disk again.
func TestRelayTenure(t *testing.T) {
	r := newRelayRig(t, 2)
	far, near, owner := r.nodes[1].ready(1), r.nodes[0].ready(2), r.nodes[0]
	old := pattern(4096, 1)
	res, err := near.Command(cdbWrite16(0, 8), 0, old, 0)
	mustGood(t, res, err)
	owner.lu.Hold(relayPatience)
	task := start(t, far, initiator.Command{CDB: cdbWrite16(0, 8), Out: pattern(4096, 2)})
	eventually.Holds(t, "the owner has it", func() bool { return owner.server.RemoteTasks() == 1 })
	r.net.CutAll("n2", true)
	eventually.Holds(t, "the link is down", func() bool { return !r.nodes[1].links.Up("n1") })
	r.nodes[1].lu.Hold(relayPatience)
	owner.resign()
	r.settle(0, 1) // as n2 learns
	res, err = far.Wait(task)
	if err != nil || !inTransition(res) {
		t.Fatalf("found status %#x, %v, expected IN TRANSITION", res.Status, err)
	}
	res, err = near.Command(cdbRead16(0, 8), 0, nil, 4096)
	mustGood(t, res, err)
	if !bytes.Equal(res.In, old) {
		t.Error("what was answered as not done was done")
	}
}

// TestRelayTenureReserve: a nexus of an earlier tenure that ends late takes nothing from the later one:
// RESERVE stays in force, as the same session holds it.
func TestRelayTenureReserve(t *testing.T) {
	r := newRelayRig(t, 2)
	far, near, owner := r.nodes[1].ready(1), r.nodes[0].ready(2), r.nodes[0]
	res, err := far.Command([]byte{0x16, 0, 0, 0, 0, 0}, 0, nil, 0)
	mustGood(t, res, err)
	owner.disk.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Len: 1 << 20, Hold: true})
	heldWrite(t, far, owner.disk, 0)
	r.hold()
	owner.resign()
	r.settle(0, 1)
	owner.disk.SetRules()
	owner.disk.Release(-1)
	eventually.Holds(t, "the earlier nexus has ended", func() bool { return owner.server.RemoteTasks() == 0 })
	for range 20 { // its end follows that of its task
		res, err = near.Command(cdbWrite16(0, 8), 0, pattern(4096, 1), 0)
		if key, _, _ := res.SenseKey(); err != nil || res.Status != conflictStatus && key != 6 {
			t.Fatalf("status %#x, %v: expected RESERVATION CONFLICT, since the initiator of another path holds RESERVE", res.Status, err)
		}
		time.Sleep(time.Millisecond)
	}
}

// TestRelaySevered: a command of unknown outcome, to whose owner there is no link, ends when that has
// ended it by another way.
func TestRelaySevered(t *testing.T) {
	r := newRelayRig(t, 2)
	far, n, owner := r.nodes[1].ready(1), r.nodes[1], r.nodes[0]
	if n.lu.Unsettled() != nil {
		t.Error("there is something of unknown outcome before anything was cut")
	}
	owner.disk.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Len: 1 << 20, Hold: true})
	task := heldWrite(t, far, owner.disk, 0)
	r.net.CutAll("n2", true)
	eventually.Holds(t, "the link is down", func() bool { return !n.links.Up("n1") })
	var settle func()
	eventually.Holds(t, "the outcome is unknown", func() bool { settle = n.lu.Unsettled(); return settle != nil })
	ended := make(chan struct{})
	owner.server.ForgetRelayed(nil, "n2", func() { close(ended) })
	select {
	case <-ended:
		t.Error("the owner has ended it while it writes")
	case <-time.After(50 * time.Millisecond):
	}
	owner.disk.SetRules()
	owner.disk.Release(-1)
	<-ended
	settle()
	if res, err := far.Wait(task); err != nil || !inTransition(res) {
		t.Errorf("found %+v, %v, expected IN TRANSITION", res, err)
	}
	r.net.CutAll("n2", false)
	if err := far.Ready(0); err != nil {
		t.Error(err)
	}
	if n.lu.Unsettled() != nil {
		t.Error("something is of unknown outcome still")
	}
}

// TestRelayStranded: what an owner has whose store does not answer any more ends when another node
// owns the disk, though there is a link to the earlier one all the time: sessions cannot end before.
func TestRelayStranded(t *testing.T) {
	for name, to := range map[string]int{"another node": 2, "this node": 1} {
		t.Run(name, func(t *testing.T) {
			r := newRelayRig(t, 3)
			far, owner := r.nodes[1].ready(1), r.nodes[0]
			owner.disk.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Len: 1 << 20, Hold: true})
			task := heldWrite(t, far, owner.disk, 0)
			r.hold()
			r.settle(to, 1)
			if res, err := far.Wait(task); err != nil || !inTransition(res) {
				t.Errorf("found %+v, %v, expected IN TRANSITION", res, err)
			}
			if owner.disk.Held() == 0 {
				t.Error("the owner's store has answered")
			}
			owner.disk.SetRules()
			owner.disk.Release(-1)
			if err := far.Ready(0); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRelayAbortEarly: an ABORT TASK whose message finds no room, or comes before the command does, is
// not lost: the owner ends the command that waits there.
func TestRelayAbortEarly(t *testing.T) {
	r := newRelayRig(t, 2)
	far, owner := r.nodes[1].ready(1), r.nodes[0]
	r.net.Delay("n2", "n1", func() time.Duration { return 5 * time.Millisecond })
	owner.lu.Hold(relayPatience)
	for full := range int32(4) {
		task := start(t, far, initiator.Command{CDB: cdbWrite16(0, 8), Out: pattern(4096, 2)})
		if full > 0 {
			eventually.Holds(t, "the owner has it", func() bool { return owner.server.RemoteTasks() == 1 })
		}
		r.nodes[1].full.Store(full)
		code, err := far.TaskManagement(initiator.TaskRequest{Function: initiator.AbortTask, Referenced: task})
		if err != nil || code != 0 {
			t.Errorf("response %d, %v", code, err)
		}
		far.Forget(task)
	}
	if n := owner.server.RemoteTasks(); n != 0 {
		t.Errorf("found %d commands at the owner", n)
	}
}

// TestRelayNowhere: a command of unknown outcome goes on waiting while its node cannot reach the
// owner: that is no sign that it does not run any more.
func TestRelayNowhere(t *testing.T) {
	for name, standby := range map[string]func(*relayRig){
		"a standby path": func(r *relayRig) {
			n := r.nodes[1]
			access := r.access(0)
			delete(access, n.tag())
			n.lu.Settle(access, testCarrier{n.links, "n1", r.epoch, n})
		},
		"a hold that expires": func(r *relayRig) { r.nodes[1].lu.Hold(time.Millisecond) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRelayRig(t, 2)
			far, n, owner := r.nodes[1].ready(1), r.nodes[1], r.nodes[0]
			owner.disk.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Len: 1 << 20, Hold: true})
			task := heldWrite(t, far, owner.disk, 0)
			r.net.CutAll("n2", true)
			eventually.Holds(t, "the link is down", func() bool { return !n.links.Up("n1") })
			standby(r)
			ended := make(chan *initiator.Result, 1)
			go func() {
				res, _ := far.Wait(task)
				ended <- res
			}()
			select {
			case res := <-ended:
				t.Errorf("it ended while the owner may work for it: %+v", res)
			case <-time.After(100 * time.Millisecond):
			}
			owner.disk.SetRules()
			owner.disk.Release(-1)
			r.net.CutAll("n2", false)
			n.lu.Settle(r.access(0), testCarrier{n.links, "n1", r.epoch, n})
			if res := <-ended; !inTransition(res) {
				t.Errorf("status %#x, expected IN TRANSITION", res.Status)
			}
			if err := far.Ready(0); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRelaySanitize: SANITIZE under way when its owner dies has failed, as all paths say, also to who
// asked for it, and whoever owns the disk next: nothing of what was there is read. Another SANITIZE
// mends that.
func TestRelaySanitize(t *testing.T) {
	r := newRelayRig(t, 3)
	var paths []*initiator.Conn
	for i, n := range r.nodes {
		paths = append(paths, n.ready(byte(i+1)))
	}
	res, err := paths[1].Command(cdbWrite16(0, 8), 0, pattern(4096, 1), 0)
	mustGood(t, res, err)
	list := []byte{1, 0, 0, 1, 0xa5}
	sanitize := []byte{0x48, 0x81, 8: byte(len(list)), 9: 0}
	r.nodes[0].disk.SetRules(errstore.Rule{Kinds: []backstore.Kind{backstore.Write}, Hold: true})
	res, err = paths[1].Command(sanitize, 0, list, 0)
	mustGood(t, res, err)
	eventually.Holds(t, "it is under way", func() bool { return r.nodes[0].disk.Held() > 0 })
	says := func(i int, cdb []byte, in int) (code [3]byte, data []byte) {
		t.Helper()
		for range 100 {
			res, err := paths[i].Command(cdb, 0, nil, in)
			if err != nil {
				t.Fatal(err)
			}
			key, asc, ascq := res.SenseKey()
			if code = [3]byte{key, asc, ascq}; key != 6 && !inTransition(res) {
				return code, res.In
			}
		}
		t.Fatal("unit attentions for ever")
		return code, nil
	}
	for i := range paths {
		if code, _ := says(i, cdbRead16(0, 8), 4096); code != [3]byte{2, 4, 0x1b} {
			t.Errorf("path %d: found %x, expected that it is under way", i, code)
		}
	}
	for _, next := range []int{1, 2} { // without a word of the one before
		r.hold()
		r.settle(next, 0, 1, 2)
		r.nodes[0].disk.SetRules()
		r.nodes[0].disk.Release(-1)
		for i := range paths {
			for _, cdb := range [][]byte{make([]byte, 6), cdbRead16(0, 8)} {
				if code, data := says(i, cdb, 4096*int(cdb[0]>>7)); code != [3]byte{3, 0x31, 3} || len(data) > 0 {
					t.Errorf("node %d serves, path %d: %x: found %x and %d bytes, expected SANITIZE COMMAND FAILED", next, i, cdb[0], code, len(data))
				}
			}
		}
	}
	sanitize[1] = 0x01
	res, err = paths[0].Command(sanitize, 0, list, 0)
	mustGood(t, res, err)
	for i := range paths {
		if code, data := says(i, cdbRead16(0, 8), 4096); code != [3]byte{} || !bytes.Equal(data, bytes.Repeat([]byte{0xa5}, 4096)) {
			t.Errorf("path %d: found %x and %.4x, expected the pattern", i, code, data)
		}
	}
}

// TestRelayForgottenWhileItBegins: an owner that forgets nexuses all the time, as where volumes move and
// nodes come and go, ends each of those that begin meanwhile.
func TestRelayForgottenWhileItBegins(t *testing.T) {
	owner := newRelayRig(t, 2).nodes[0]
	stop, forgets := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(forgets)
		for {
			select {
			case <-stop:
				return
			default:
				owner.server.ForgetRelayed(nil, "n2", func() {})
			}
		}
	}()
	from := target.RelayPeer{Node: "n2", Incarnation: "first"}
	for i := range uint64(2000) {
		begun := make(chan struct{})
		begin := relay.Begin{Nexus: i, Tag: 2, Volume: "db", Initiator: fmt.Sprintf("iqn.2026-11.test:i,i,0x%012x", i), Target: testTarget}
		owner.server.Relayed(from, begin.Append(nil), func(...[]byte) { close(begun) })
		<-begun
	}
	close(stop)
	<-forgets
	owner.server.ForgetRelayed(nil, "n2", func() {})
	eventually.Holds(t, "all are forgotten", func() bool { return owner.server.Remotes() == 0 })
}
