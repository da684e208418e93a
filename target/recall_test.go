package target

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"

	"lunar/internal/buf"
	"lunar/internal/refusals"
	"lunar/target/pdu"
)

// silent is a Datamover that sends nothing.
type silent struct{ Resender }

func (silent) SendControl(*pdu.BHS, []byte, *buf.Ref)    {}
func (silent) Resend(_ *pdu.BHS, _ []byte, ref *buf.Ref) { releaseRef(ref) }
func (silent) PutData(*pdu.DataIn, []byte, *buf.Ref)     {}
func (silent) MaxDataIn() int                            { return 8192 }

// depot is memory for what is kept, which is given back before the end unless the test has
// a recall keep it.
func depot(t *testing.T) *buf.Depot {
	d := buf.NewDepot(64<<20, 1<<20, -1)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// TestRecallIsBounded: who acknowledges nothing makes a connection keep no more than
// a bounded number of bytes, of whatever PDUs.
func TestRecallIsBounded(t *testing.T) {
	r := &recall{Resender: silent{}, memory: depot(t), of: &Connection{sessionState: &sessionState{tasks: newTaskTable(4), thread: holdingThread(t)}}}
	const pings, each = 100, 256 << 10
	var p pdu.NOPIn
	p.Init()
	p.BHS().SetITT(1)
	for sn := range pdu.SN(pings) {
		r.SendControl(p.BHS(), make([]byte, each), nil)
		r.numbered(sn)
	}
	kept := 0
	for _, s := range r.statuses {
		kept += len(s.data)
	}
	if kept > maxRecalled {
		t.Errorf("%d bytes are kept, expected at most %d", kept, maxRecalled)
	}
	if last := r.statuses[len(r.statuses)-1].bhs.StatSN(); last != pings-1 || r.stamped != len(r.statuses) {
		t.Errorf("found StatSN %d as the last of %d, %d of them numbered", last, len(r.statuses), r.stamped)
	}
	r.acknowledged(pings)
	if len(r.statuses) != 0 || r.owed != 0 {
		t.Errorf("found %d statuses with %d bytes that were acknowledged", len(r.statuses), r.owed)
	}
}

// TestResegmentBeforeTheStatus: a status that has no StatSN yet is not sent again; it
// leaves as it was made.
func TestResegmentBeforeTheStatus(t *testing.T) {
	r := &recall{Resender: silent{}, memory: depot(t), of: &Connection{sessionState: &sessionState{tasks: newTaskTable(4), thread: holdingThread(t)}}}
	var in pdu.DataIn
	in.Init()
	in.BHS().SetITT(7)
	r.keep(in.BHS(), make([]byte, 512))
	var rsp pdu.SCSIResponse
	rsp.Init()
	rsp.BHS().SetITT(7)
	r.SendControl(rsp.BHS(), nil, nil)
	var p pdu.SNACKRequest
	p.Init()
	p.SetType(pdu.SNACKRData)
	p.BHS().SetITT(7)
	p.BHS().SetTTT(1)
	if r.resegment(&p) {
		t.Error("a status without StatSN was sent again")
	}
	r.numbered(5)
	if !r.resegment(&p) {
		t.Error("refused though the status has been sent")
	}
}

// TestAcknowledgingIsLinear: what is acknowledged costs as much as it frees, however many
// other tasks have something to be acknowledged.
func TestAcknowledgingIsLinear(t *testing.T) {
	const tasks, each = 8000, 4
	r := &recall{Resender: silent{}, memory: depot(t), lasting: true, depth: tasks / 2, of: &Connection{sessionState: &sessionState{tasks: newTaskTable(4), thread: holdingThread(t)}}}
	looked := 0
	for itt := range uint32(tasks) {
		for sn := range pdu.SN(each) {
			var in pdu.DataIn
			in.Init()
			in.BHS().SetITT(itt)
			in.SetDataSN(sn)
			r.keep(in.BHS(), make([]byte, 8))
		}
		var rsp pdu.SCSIResponse
		rsp.Init()
		rsp.BHS().SetITT(itt)
		r.SendControl(rsp.BHS(), nil, nil)
		r.numbered(pdu.SN(itt))
	}
	for itt := range uint32(tasks) {
		r.forget(itt, func(*recalled) bool { looked++; return false })
	}
	if looked != tasks*each {
		t.Errorf("%d parts were looked at, expected those of each task alone: %d", looked, tasks*each)
	}
	r.acknowledged(tasks)
	if r.parts.n != 0 || r.parts.bytes != 0 || r.parts.first != nil || r.parts.last != nil || len(r.parts.tasks) != 0 {
		t.Errorf("%d parts with %d bytes are left", r.parts.n, r.parts.bytes)
	}
}

// TestAcknowledgementIsBounded: one PDU frees no more responses, and their tasks' data, than
// twice the window, or the least bound.
func TestAcknowledgementIsBounded(t *testing.T) {
	for depth, most := range map[int]int{128: leastStatuses, 4096: 2 * 4096} {
		r := &recall{Resender: silent{}, memory: depot(t), lasting: true, depth: depth, of: &Connection{sessionState: &sessionState{tasks: newTaskTable(4), thread: holdingThread(t)}}}
		for itt := range uint32(2 * most) {
			var in pdu.DataIn
			in.Init()
			in.BHS().SetITT(itt)
			r.keep(in.BHS(), make([]byte, 8))
			var rsp pdu.SCSIResponse
			rsp.Init()
			rsp.BHS().SetITT(itt)
			r.SendControl(rsp.BHS(), nil, nil)
			r.numbered(pdu.SN(itt))
		}
		if len(r.statuses) != most || r.parts.n != most {
			t.Errorf("depth %d: %d responses and %d parts are kept, expected %d", depth, len(r.statuses), r.parts.n, most)
		}
	}
}

// TestPartsModel: the parts are what a plain list would be, whatever is added, dropped
// and forgotten.
func TestPartsModel(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 13))
	var ps parts
	var plain []recalled
	check := func() {
		t.Helper()
		bytes, i := 0, 0
		for p := ps.first; p != nil; p, i = p.after, i+1 {
			if i >= len(plain) || p.bhs != plain[i].bhs {
				t.Fatalf("part %d of %d differs", i, len(plain))
			}
			bytes += len(p.data)
		}
		if i != len(plain) || i != ps.n || bytes != ps.bytes {
			t.Fatalf("%d parts of %d, n %d, %d bytes of %d", i, len(plain), ps.n, ps.bytes, bytes)
		}
		for itt, c := range ps.tasks {
			n := 0
			for p := c.first; p != nil; p = p.next {
				n++
				if p.bhs.ITT() != itt || p.next == nil && p != c.last {
					t.Fatalf("the chain of task %d is broken", itt)
				}
			}
			if n == 0 {
				t.Fatalf("task %d has an empty chain", itt)
			}
		}
	}
	for range 20000 {
		itt := random.Uint32N(5)
		switch random.IntN(8) {
		case 0:
			if ps.first != nil {
				ps.discardFirst()
				plain = plain[1:]
			}
		case 1:
			mask := random.Uint32N(4)
			match := func(s *recalled) bool { return s.bhs.ITT() == itt && uint32(s.sn())&mask == 0 }
			gone := ps.forget(itt, match)
			before := len(plain)
			plain = slices.DeleteFunc(plain, func(s recalled) bool { return match(&s) })
			if len(gone) != before-len(plain) {
				t.Fatalf("%d are gone, expected %d", len(gone), before-len(plain))
			}
		default:
			s := recalled{data: make([]byte, random.IntN(9))}
			s.bhs.SetITT(itt)
			(*pdu.DataIn)(&s.bhs).SetDataSN(pdu.SN(random.Uint32N(8)))
			ps.add(s)
			plain = append(plain, s)
		}
		check()
	}
}

// TestSNACKsAreWork: what a SNACK has sent again is charged, PDU by PDU and by its bytes.
func TestSNACKsAreWork(t *testing.T) {
	th := holdingThread(t)
	th.shares.loop = th.loop
	r := &recall{Resender: silent{}, memory: depot(t), of: &Connection{sessionState: &sessionState{tasks: newTaskTable(4), thread: th}}}
	for sn := range pdu.SN(100) {
		var in pdu.DataIn
		in.Init()
		in.BHS().SetITT(7)
		in.SetDataSN(sn)
		r.keep(in.BHS(), make([]byte, 8192))
	}
	var p pdu.SNACKRequest
	p.Init()
	p.BHS().SetITT(7)
	if !r.resendParts(&p) {
		t.Fatal("refused")
	}
	if want := 100 * (1 + 8192/workBytes); th.shares.done != want {
		t.Errorf("charged %d, expected %d", th.shares.done, want)
	}
}

// TestRetentionIsBounded: what lost connections keep is counted for the whole server, and
// one that is lost beyond the bound is not retained.
func TestRetentionIsBounded(t *testing.T) {
	th, server := holdingThread(t), &Server{}
	lost := func() *Connection {
		c := &Connection{sessionState: &sessionState{session: &Session{node: server}, thread: th, tasks: newTaskTable(4)}, log: slog.New(slog.DiscardHandler)}
		c.recall = &recall{Resender: silent{}, memory: depot(t), of: c, lasting: true}
		var in pdu.DataIn
		in.Init()
		c.recall.keep(in.BHS(), make([]byte, 1<<20))
		return c
	}
	server.retained.Store(maxRetained - 1<<20)
	one, other := lost(), lost()
	if one.charged.Used != 1<<20 || !one.mayRetain() {
		t.Fatalf("%d bytes charged, retained %v: expected them to fit", one.charged.Used, one.mayRetain())
	}
	one.recall.retire()
	if one.charged.Used != 0 || server.Retained() != maxRetained {
		t.Errorf("%d bytes charged, %d retained", one.charged.Used, server.Retained())
	}
	if other.mayRetain() || th.refused.counts()[refusals.Retention.String()] != 1 {
		t.Error("more is retained than the bound")
	}
	one.recall.discard()
	if server.Retained() != maxRetained-1<<20 || !other.mayRetain() {
		t.Errorf("%d bytes are retained in the end", server.Retained())
	}
}

// TestKeepingCostsTheCollectorNothing: what is sent, kept and acknowledged allocates
// nothing in a steady state, whatever its size, and no buffer is left in the end.
func TestKeepingCostsTheCollectorNothing(t *testing.T) {
	for _, each := range []int{leastKept, 8 << 10, 256 << 10} {
		th := holdingThread(t)
		c := &Connection{sessionState: &sessionState{tasks: newTaskTable(4), thread: th}}
		r := &recall{Resender: silent{}, memory: th.depot, lasting: true, depth: 128, of: c}
		data := make([]byte, each)
		var in pdu.DataIn
		in.Init()
		var rsp pdu.SCSIResponse
		rsp.Init()
		sn := pdu.SN(0)
		serve := func() {
			itt := uint32(sn)
			in.BHS().SetITT(itt)
			for i := range pdu.SN(4) {
				in.SetDataSN(i)
				r.PutData(&in, data, nil)
			}
			rsp.BHS().SetITT(itt)
			r.SendControl(rsp.BHS(), nil, nil)
			r.numbered(sn)
			if sn++; sn%16 == 0 {
				r.acknowledged(sn)
			}
		}
		for range 256 {
			serve()
		}
		if n := testing.AllocsPerRun(1000, serve); n > 0 {
			t.Errorf("%d bytes: %v allocations for a command, expected none", each, n)
		}
		r.acknowledged(sn)
		if n := th.depot.InUse(); n > 0 || c.charged.Used != 0 {
			t.Errorf("%d bytes: %d buffers in use and %d bytes charged after all was acknowledged", each, n, c.charged.Used)
		}
	}
}

// TestKeptBuffersAreGivenBack: whatever becomes of what is kept, its buffers come back, and
// what is being sent again is not overwritten meanwhile.
func TestKeptBuffersAreGivenBack(t *testing.T) {
	const each, n = 8 << 10, 6
	for name, act := range map[string]func(r *recall, p *pdu.SNACKRequest){
		"acknowledged": func(r *recall, _ *pdu.SNACKRequest) { r.acknowledged(100) },
		"DataACK": func(r *recall, p *pdu.SNACKRequest) {
			p.SetBegRun(n)
			if !r.dataACK(p) {
				t.Error("refused")
			}
		},
		"sent again": func(r *recall, p *pdu.SNACKRequest) { r.resendParts(p); r.acknowledged(100) },
		"resegmented": func(r *recall, p *pdu.SNACKRequest) {
			p.BHS().SetTTT(9)
			r.resegment(p)
			r.acknowledged(100)
		},
		"reassigned": func(r *recall, p *pdu.SNACKRequest) { r.sendAgain(r.take(7), 3, n); r.drop(7) },
		"moved":      func(r *recall, _ *pdu.SNACKRequest) { r.move() },
		"discarded":  func(r *recall, _ *pdu.SNACKRequest) { r.retire(); r.discard() },
	} {
		th := holdingThread(t)
		var queued queue
		r := &recall{Resender: &queued, memory: th.depot}
		r.of = &Connection{sessionState: &sessionState{tasks: newTaskTable(4), thread: th, session: &Session{node: &Server{}}}}
		for sn := range pdu.SN(n) {
			var in pdu.DataIn
			in.Init()
			in.BHS().SetITT(7)
			in.SetDataSN(sn)
			in.SetBufferOffset(uint32(sn) * each)
			r.keep(in.BHS(), slices.Repeat([]byte{byte(sn)}, each))
		}
		var rsp pdu.SCSIResponse
		rsp.Init()
		rsp.BHS().SetITT(7)
		r.SendControl(rsp.BHS(), nil, nil)
		r.numbered(99)
		var p pdu.SNACKRequest
		p.Init()
		p.BHS().SetITT(7)
		act(r, &p)
		other := th.depot.Get(each)
		clear(other.Bytes())
		other.Release()
		for _, q := range queued.pdus {
			if q.ref == nil {
				continue
			}
			if sn := q.sn(); q.data[0] != byte(sn) {
				t.Errorf("%s: DataSN %d begins with %d", name, sn, q.data[0])
			}
			q.release()
		}
		if left := th.depot.InUse(); left > 0 {
			t.Errorf("%s: %d buffers are left", name, left)
		}
	}
}

// queue is a transport that has yet to send what it was given.
type queue struct {
	silent
	pdus []recalled
}

func (q *queue) Resend(bhs *pdu.BHS, data []byte, ref *buf.Ref) {
	q.pdus = append(q.pdus, recalled{bhs: *bhs, data: data, ref: ref})
}
