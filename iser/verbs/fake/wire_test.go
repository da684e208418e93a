package fake

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"lunar/iser/verbs"
)

func TestSendReadWrite(t *testing.T) {
	f, target, initiator := connected(t, Options{})
	copy(initiator.mem[1024:], "from the initiator")
	copy(target.mem, "to the initiator")
	initiator.receive(1, 0, 64)
	far, key := verbs.Addr(initiator.mem), initiator.mr.RKey()
	header := []byte("response")
	wrs := []verbs.WR{
		{ID: 10, Op: verbs.OpRead, RAddr: far + 1024, RKey: key, Flags: verbs.FlagSignaled, NSGE: 2},
		{ID: 11, Op: verbs.OpWrite, RAddr: far + 2048, RKey: key, NSGE: 2},
		{ID: 12, Op: verbs.OpSend, Flags: verbs.FlagSignaled | verbs.FlagInline, NSGE: 1},
	}
	sges := []verbs.SGE{
		target.sge(512, 5), target.sge(600, 13),
		target.sge(0, 3), target.sge(3, 13),
		{Addr: verbs.Addr(header), Len: 8},
	}
	must(target.qp.PostSend(wrs, sges))(t)
	clear(header)
	f.Settle()
	if found := target.poll(); len(found) != 2 || found[0].ID != 10 || found[0].Len != 18 || found[0].Op != verbs.WCRead || found[1].ID != 12 {
		t.Fatalf("found %v", found)
	}
	if wc := initiator.one(1, verbs.StatusOK); wc.Len != 8 || wc.Op != verbs.WCRecv || wc.QP != initiator.qp.Number() {
		t.Errorf("found %+v", wc)
	}
	for _, c := range []struct{ found, expected string }{
		{string(initiator.mem[:8]), "response"},
		{string(initiator.mem[2048:2064]), "to the initiator"},
		{string(target.mem[512:517]) + string(target.mem[600:613]), "from the initiator"},
	} {
		if c.found != c.expected {
			t.Errorf("found %q, expected %q", c.found, c.expected)
		}
	}
	counts := target.host.Device(0).Counters()
	if counts.SendPosts != 1 || counts.Sends != 1 || counts.Reads != 1 || counts.Writes != 1 || counts.Inlined != 8 {
		t.Errorf("found counters %+v", counts)
	}
}

// A wrong entry fails with its status, and everything behind it is flushed.
func TestWrongEntries(t *testing.T) {
	far := func(s *side) verbs.WR {
		return verbs.WR{ID: 1, RAddr: verbs.Addr(s.mem), RKey: s.mr.RKey()}
	}
	for _, c := range []struct {
		name     string
		spoil    func(target, initiator *side, wr *verbs.WR, sge *verbs.SGE)
		expected verbs.Status
		breaches int
	}{
		{"unknown key", func(_, _ *side, wr *verbs.WR, _ *verbs.SGE) { wr.Op, wr.RKey = verbs.OpWrite, 1 }, verbs.StatusRemoteAccess, 0},
		{"beyond the region", func(_, _ *side, wr *verbs.WR, _ *verbs.SGE) { wr.Op = verbs.OpRead; wr.RAddr += 4090 }, verbs.StatusRemoteAccess, 0},
		{"before the region", func(_, _ *side, wr *verbs.WR, _ *verbs.SGE) { wr.Op = verbs.OpWrite; wr.RAddr-- }, verbs.StatusRemoteAccess, 0},
		{"local key", func(_, _ *side, wr *verbs.WR, s *verbs.SGE) { wr.Op = verbs.OpWrite; s.LKey++ }, verbs.StatusLocalProtection, 0},
		{"local bounds", func(_, _ *side, wr *verbs.WR, s *verbs.SGE) { wr.Op = verbs.OpRead; s.Addr += 4095 }, verbs.StatusLocalProtection, 0},
		{"message longer than its receive", func(_, i *side, wr *verbs.WR, s *verbs.SGE) { i.receive(5, 0, 8) }, verbs.StatusRemoteInvalid, 0},
		{"invalidation of nothing", func(_, i *side, wr *verbs.WR, s *verbs.SGE) {
			i.receive(5, 0, 64)
			wr.Op, wr.RKey = verbs.OpSendInv, 3
		}, verbs.StatusRemoteInvalid, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, target, initiator := connected(t, Options{})
			wr, sge := far(initiator), target.sge(0, 16)
			c.spoil(target, initiator, &wr, &sge)
			target.post(wr, sge)
			target.post(verbs.WR{ID: 2, Op: verbs.OpSend}, target.sge(0, 1))
			target.receive(3, 0, 64)
			f.Settle()
			found := target.poll()
			if len(found) != 3 || found[0].ID != 1 || found[0].Status != c.expected ||
				found[1].ID != 2 || found[1].Status != verbs.StatusFlushed || found[2].ID != 3 {
				t.Fatalf("found %v, expected %v first, then flushes", found, c.expected)
			}
			breached(t, f, c.breaches)
		})
	}
}

func TestMessageLongerThanItsReceiveFailsBoth(t *testing.T) {
	f, target, initiator := connected(t, Options{})
	initiator.receive(1, 0, 204)
	initiator.receive(2, 0, 204)
	target.post(verbs.WR{ID: 9}, target.sge(0, 205))
	f.Settle()
	found := initiator.poll()
	if len(found) != 2 || found[0].Status != verbs.StatusLocalLength || found[1].Status != verbs.StatusFlushed {
		t.Errorf("found %v", found)
	}
	target.one(9, verbs.StatusRemoteInvalid)
	var async verbs.AsyncEvent
	if !must(initiator.host.Device(0).NextAsync(&async))(t) || async.Type != verbs.AsyncQPRequest {
		t.Errorf("found %+v", async)
	}
}

func TestMessageWithoutReceive(t *testing.T) {
	f, target, initiator := connected(t, Options{})
	target.post(verbs.WR{ID: 1, Flags: verbs.FlagSignaled}, target.sge(0, 8))
	f.Settle()
	breached(t, f, 1)
	initiator.receive(2, 0, 8)
	f.Settle()
	target.one(1, verbs.StatusOK)
	initiator.one(2, verbs.StatusOK)
	if n := initiator.host.Device(0).Counters().NotReady; n != 1 {
		t.Errorf("found %d times not ready", n)
	}
}

func TestInvalidation(t *testing.T) {
	f, target, initiator := connected(t, Options{})
	key := must(initiator.pd.Register(make([]byte, 64), everything))(t)
	initiator.receive(1, 0, 64)
	initiator.receive(2, 0, 64)
	target.post(verbs.WR{ID: 3, Op: verbs.OpSendInv, RKey: key.RKey()}, target.sge(0, 8))
	f.Settle()
	if wc := initiator.one(1, verbs.StatusOK); wc.Flags != verbs.WCWithInv || wc.Inv != key.RKey() {
		t.Errorf("found %+v", wc)
	}
	target.post(verbs.WR{ID: 4, Op: verbs.OpSendInv, RKey: key.RKey()}, target.sge(0, 8))
	f.Settle()
	breached(t, f, 1)
	ok(t, key.Deregister())
}

func TestReadsOverTheDepth(t *testing.T) {
	f, target, initiator := connected(t, Options{})
	read := verbs.WR{Op: verbs.OpRead, RAddr: verbs.Addr(initiator.mem), RKey: initiator.mr.RKey(), Flags: verbs.FlagSignaled}
	for range 2 {
		target.post(read, target.sge(0, 8))
	}
	f.Settle() // done, but software does not know yet
	target.post(read, target.sge(0, 8))
	breached(t, f, 1)
	f.Settle()
	if found := target.poll(); len(found) != 3 {
		t.Errorf("found %v", found)
	}
	target.post(read, target.sge(0, 8))
	f.Settle()
}

// An RDMA READ of what is withheld ends when it is supplied, with what is there then,
// and those behind it after it.
func TestWithheld(t *testing.T) {
	f, target, initiator := connected(t, Options{})
	var asked []span
	Withhold(initiator.mr, func(addr uint64, n uint32) { asked = append(asked, span{addr, n}) })
	read := verbs.WR{Op: verbs.OpRead, RAddr: verbs.Addr(initiator.mem), RKey: initiator.mr.RKey(), Flags: verbs.FlagSignaled}
	target.post(read, target.sge(0, 8))
	read.RAddr += 8
	target.post(read, target.sge(8, 8))
	f.Settle()
	if want := []span{{read.RAddr - 8, 8}, {read.RAddr, 8}}; !slices.Equal(asked, want) {
		t.Errorf("asked for %v, expected %v", asked, want)
	}
	copy(initiator.mem, "the first the second")
	Supply(initiator.mr, read.RAddr, 8)
	f.Settle()
	if found := target.poll(); len(found) != 0 {
		t.Errorf("found %v although the first one has nothing", found)
	}
	Supply(initiator.mr, read.RAddr-8, 8)
	f.Settle()
	if found := target.poll(); len(found) != 2 || string(target.mem[:16]) != "the first the se" {
		t.Errorf("found %v and %q", found, target.mem[:16])
	}
}

// Slots are freed by the completion of a signaled entry, and by nothing else.
func TestSendQueueIsFull(t *testing.T) {
	f, target, initiator := connected(t, Options{})
	write := verbs.WR{Op: verbs.OpWrite, RAddr: verbs.Addr(initiator.mem), RKey: initiator.mr.RKey(), NSGE: 1}
	for range limits.SendWR - 1 {
		target.post(write, target.sge(0, 8))
	}
	f.Settle()
	last := write
	last.ID, last.Flags = 7, verbs.FlagSignaled
	posted, err := target.qp.PostSend([]verbs.WR{last, write}, []verbs.SGE{target.sge(0, 8), target.sge(0, 8)})
	if posted != 1 || !errors.Is(err, unix.ENOMEM) {
		t.Errorf("found %d posted, error %v", posted, err)
	}
	f.Settle()
	target.one(7, verbs.StatusOK)
	target.post(write, target.sge(0, 8))
	f.Settle()
}

func TestNotificationIsOneShot(t *testing.T) {
	f, target, initiator := connected(t, Options{})
	send := func() {
		target.receive(1, 0, 64)
		initiator.post(verbs.WR{Op: verbs.OpSend}, initiator.sge(0, 8))
		f.Settle()
	}
	send()
	ok(t, target.cq.Arm()) // for the next one: the first is not told
	if readable(t, target.ch.FD()) {
		t.Error("arming told what was there already")
	}
	send()
	send()
	if n := must(target.ch.Drain())(t); n != 1 || readable(t, target.ch.FD()) {
		t.Errorf("found %d events, expected 1 and nothing left", n)
	}
	if found := target.poll(); len(found) != 3 {
		t.Errorf("found %v", found)
	}
}

func TestQueueOverflows(t *testing.T) {
	f, target, initiator := connected(t, Options{})
	for i := range 5 {
		for range 16 {
			target.receive(uint64(i), 0, 8)
			initiator.post(verbs.WR{Op: verbs.OpSend, Flags: verbs.FlagSignaled}, initiator.sge(0, 8))
			f.Settle()
			initiator.poll()
			if i < 4 {
				target.qp.(*qp).polled(0) // as if software had polled
			} else {
				break
			}
		}
	}
	breached(t, f, 1)
	if _, err := target.cq.Poll(make([]verbs.WC, 1)); !errors.Is(err, unix.EIO) {
		t.Errorf("found %v", err)
	}
}

func TestFaults(t *testing.T) {
	boom := errors.New("boom")
	refuse := ""
	f, target, initiator := connected(t, Options{
		Fault: func(w Work) verbs.Status {
			if w.Host == "target" && w.Number == 1 {
				return verbs.StatusRetryExceeded
			}
			return verbs.StatusOK
		},
		Refuse: func(call string) error {
			if call == refuse {
				return boom
			}
			return nil
		},
	})
	refuse = "ibv_reg_mr"
	if _, err := target.pd.Register(target.mem, everything); !errors.Is(err, boom) {
		t.Errorf("found %v", err)
	}
	refuse = ""
	for i := range uint64(3) {
		initiator.receive(i, 0, 8)
		target.post(verbs.WR{ID: i}, target.sge(0, 8))
	}
	f.Settle()
	found := target.poll()
	if len(found) != 2 || found[0].ID != 1 || found[0].Status != verbs.StatusRetryExceeded || found[1].Status != verbs.StatusFlushed {
		t.Errorf("found %v", found)
	}
	initiator.one(0, verbs.StatusOK)
}

// recorder is a test that expects to fail.
type recorder struct {
	cleanups []func()
	errors   []string
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(format string, _ ...any) {
	r.errors = append(r.errors, format)
}

func TestBreachesAndLeaksFailTheTest(t *testing.T) {
	var r recorder
	f := New(&r, Options{})
	h := f.Host("host", false, DeviceOptions{Name: "rxe0", Addr: targetAddr})
	pd := must(h.Device(0).AllocPD())(t)
	must(pd.Register(make([]byte, 8), 0))(t)
	if err := pd.Dealloc(); !errors.Is(err, unix.EBUSY) {
		t.Errorf("found %v", err)
	}
	for _, end := range r.cleanups {
		end()
	}
	if len(r.errors) != 2 {
		t.Errorf("found %q, expected a breach and a leak", r.errors)
	}
}

// The fabric's goroutine moves data while two goroutines post and poll.
func TestTraffic(t *testing.T) {
	f, target, initiator := connected(t, Options{Seed: 3})
	f.ended = make(chan struct{})
	go f.run()
	const rounds = 500
	copy(initiator.mem[2048:], bytes.Repeat([]byte{0x5a}, 512))
	done, credits := make(chan struct{}), make(chan struct{}, rounds+2) // receives that are posted
	go func() {
		defer close(done)
		for range rounds {
			<-credits
			target.post(verbs.WR{ID: 1, Op: verbs.OpRead, Flags: verbs.FlagSignaled, RAddr: verbs.Addr(initiator.mem) + 2048, RKey: initiator.mr.RKey()}, target.sge(0, 512))
			await(target)
			if target.mem[511] != 0x5a {
				t.Error("found other data")
			}
			target.post(verbs.WR{Op: verbs.OpSend, Flags: verbs.FlagSignaled}, target.sge(0, 64))
			await(target)
		}
	}()
	for i := range 2 {
		initiator.receive(uint64(i), i*64, 64)
		credits <- struct{}{}
	}
	for got := 0; got < rounds; {
		for n := await(initiator); n > 0; n-- {
			initiator.receive(uint64(got), got%2*64, 64)
			credits <- struct{}{}
			got++
		}
	}
	<-done
}

// await polls, arms and sleeps until something has completed.
func await(s *side) int {
	for {
		if found := len(s.poll()); found > 0 {
			return found
		}
		ok(s.t, s.cq.Arm())
		if found := len(s.poll()); found > 0 {
			return found
		}
		sleep(s.ch.FD())
		must(s.ch.Drain())(s.t)
	}
}
