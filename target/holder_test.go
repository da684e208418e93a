package target

import (
	"log/slog"
	"net/netip"
	"testing"

	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/target/login"
	"lunar/target/scsi"
)

const holderPool = 16 << 20

// holding is a thread that does not run, with sessions that only take buffers.
func holdingThread(t *testing.T) *thread {
	th, err := newThread(evloop.Config{Name: "holders", CPU: -1, Node: -1, Buffers: holderPool, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, r := range th.loop.Pool().Leaked() {
			r.Release()
		}
		th.loop.Stop()
	})
	return th
}

// session makes one of a user, or of somebody at an address who has proven nothing.
func (th *thread) session(who string, memory int) *sessionState {
	s := &Session{settings: &Settings{Limits: Limits{SessionMemory: memory}}}
	s.initiator.Name = "iqn.2026-11.test:" + who
	if addr, err := netip.ParseAddr(who); err == nil {
		s.initiator.Addr = addr
	} else {
		s.initiator.Proof = login.Proof{Group: "g", User: who}
	}
	c := &sessionState{session: s, thread: th}
	th.sessions[c] = struct{}{}
	th.quotas.open(&c.quota, holderOf(&s.initiator))
	return c
}

// grab takes segments until there is none, and returns them.
func (c *sessionState) grab() (all []*buf.Ref) {
	for r := c.get(scsi.SegmentSize); r != nil; r = c.get(scsi.SegmentSize) {
		all = append(all, r)
	}
	return all
}

// However many sessions an initiator has, it gets half of what all share; another one
// gets half of the rest, and so on, and each session has a buffer of its own.
func TestHoldersShare(t *testing.T) {
	th := holdingThread(t)
	const common = holderPool / scsi.SegmentSize * (asidePart - 1) / asidePart
	one, two, other := th.session("a", holderPool), th.session("a", holderPool), th.session("b", holderPool)
	stranger, strange := th.session("192.0.2.1", 5*scsi.SegmentSize), th.session("192.0.2.2", holderPool)

	if n := len(one.grab()) + len(two.grab()); n != common/2+2 {
		t.Errorf("two sessions of one initiator have %d buffers, expected half of %d and one each", n, common)
	}
	if n := len(other.grab()); n != common/4+1 {
		t.Errorf("another initiator has %d buffers, expected a quarter of %d and one", n, common)
	}
	if a, b := len(stranger.grab()), len(strange.grab()); a < 5 || b < 5 {
		t.Errorf("sessions that have proven nothing have %d and %d buffers, expected their own parts", a, b)
	}
}

// However many sessions a stranger has, those at another address get as much. Alone,
// each of his sessions has what it leaves free.
func TestStrangersShareByAddress(t *testing.T) {
	th := holdingThread(t)
	const blocks = holderPool / scsi.SegmentSize
	const common = blocks * (asidePart - 1) / asidePart
	one, two := th.session("192.0.2.1", holderPool), th.session("192.0.2.1", holderPool)
	if n, m := len(one.grab()), len(two.grab()); n != common/2+1 || m != common/4+1 {
		t.Errorf("two sessions have %d and %d buffers, expected half and a quarter of %d, and one each", n, m, common)
	}
	for _, r := range th.loop.Pool().Leaked() {
		r.Release()
	}
	crowd := 0
	for range 4 * blocks {
		if th.session("192.0.2.1", holderPool).get(scsi.SegmentSize) != nil {
			crowd++
		}
	}
	other := th.session("192.0.2.2", holderPool)
	if n := len(other.grab()); n < common/8+1 {
		t.Errorf("another address has %d buffers beside %d of a crowd, expected at least %d", n, crowd, common/8+1)
	}
}

// What a session takes along to another thread is not its initiator's any more where it
// came from.
func TestMovedSessionIsCountedOnce(t *testing.T) {
	from, to := holdingThread(t), holdingThread(t)
	c, stays := from.session("a", holderPool), from.session("a", holderPool)
	c.charged.Add(1000) // sent and not acknowledged
	c.attach(to, c.detach())
	if n, m := stays.holder.charged.Used, c.holder.charged.Used; n != 0 || m != 1000 || c.charged.Used != 1000 {
		t.Errorf("the initiator has %d bytes where the session was and %d where it is, expected 0 and 1000", n, m)
	}
	c.charged.Add(-1000)
	if n, m := stays.holder.charged.Used, c.holder.charged.Used; n != 0 || m != 0 {
		t.Errorf("the initiator has %d and %d bytes, expected none", n, m)
	}
}

// When everything is taken, what is set aside is for those who have none of it.
func TestReserveIsTheSessionsOwn(t *testing.T) {
	th := holdingThread(t)
	var all []*sessionState
	for range holderPool / scsi.SegmentSize / asidePart {
		all = append(all, th.session("192.0.2.1", holderPool))
	}
	last := all[len(all)-1]
	for _, c := range all[:len(all)-1] {
		c.grab()
	}
	for th.loop.Pool().Get(buf.PageSize) != nil { // and nothing is left at all
	}
	r := last.get(scsi.SegmentSize)
	if r == nil {
		t.Fatal("the session does not get its own buffer")
	}
	if last.get(buf.PageSize) != nil {
		t.Error("the session gets two")
	}
	for _, c := range all[:len(all)-1] {
		if c.get(buf.PageSize) != nil {
			t.Fatal("another session gets one more")
		}
	}
	r.Release()
	if r = last.get(buf.PageSize); r == nil {
		t.Error("the buffer has not come back")
	}
}

// With more sessions than blocks, an initiator's part does not grow with its sessions.
func TestReserveIsSharedByHolders(t *testing.T) {
	th := holdingThread(t)
	blocks := holderPool / scsi.SegmentSize / asidePart
	var crowd []*sessionState
	for range 4 * blocks {
		crowd = append(crowd, th.session("crowd", holderPool))
	}
	last := th.session("last", holderPool)
	for th.loop.Pool().Get(buf.PageSize) != nil {
	}
	got := 0
	for _, c := range crowd {
		if c.get(1) != nil {
			got++
		}
	}
	if got != blocks/2 {
		t.Errorf("one of two initiators got %d of %d blocks", got, blocks)
	}
	if last.get(1) == nil {
		t.Error("the other one got none")
	}
}
