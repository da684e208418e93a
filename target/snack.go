package target

import "lunar/target/pdu"

// statusesLooked is how many responses are looked through for the cost of a PDU.
const statusesLooked = 64

// snacks is the table of SNACKs by type; false is what cannot be done.
var snacks = [4]func(*recall, *pdu.SNACKRequest) bool{
	pdu.SNACKDataR2T: (*recall).resendParts,
	pdu.SNACKStatus:  (*recall).resendStatuses,
	pdu.SNACKDataACK: (*recall).dataACK,
	pdu.SNACKRData:   (*recall).resegment,
}

// run is a run of sequence numbers; of length 0, all from first on.
type run struct {
	first  pdu.SN
	length uint32
}

func (n run) has(sn pdu.SN) bool {
	return n.first.LessEq(sn) && (n.length == 0 || uint32(sn-n.first) < n.length)
}

// resendStatuses sends statuses again. BegRun 0 with RunLength 0 is all that are not
// acknowledged.
func (r *recall) resendStatuses(p *pdu.SNACKRequest) bool {
	n := run{p.BegRun(), p.RunLength()}
	all, found := n == run{}, uint32(0)
	for i := range r.stamped {
		if s := &r.statuses[i]; all || n.has(s.bhs.StatSN()) {
			r.resend(s)
			found++
		}
	}
	return found >= n.length
}

// resendParts sends Data-In and R2T PDUs of a task again. An R2T whose data has come is
// not missed.
func (r *recall) resendParts(p *pdu.SNACKRequest) bool {
	n, found := run{p.BegRun(), p.RunLength()}, uint32(0)
	itt := p.BHS().ITT()
	for s := r.parts.of(itt); s != nil; s = s.next {
		if !n.has(s.sn()) {
			continue
		}
		found++
		if s.bhs.Opcode() == pdu.OpDataIn || r.of.awaits(itt, s.bhs.TTT()) {
			r.resend(&s.recalled)
		}
	}
	return found >= n.length && (found > 0 || n.length == 0)
}

// dataACK forgets data that the initiator has: all of the task before BegRun.
func (r *recall) dataACK(p *pdu.SNACKRequest) bool {
	there := r.of.exists(p.BHS().ITT())
	if p.RunLength() != 0 || !there && !r.ended(p.BHS().ITT()) {
		return !there && p.RunLength() == 0 // one that crossed the end of its task
	}
	releaseAll(r.forget(p.BHS().ITT(), func(s *recalled) bool { return s.sn().LessThan(p.BegRun()) }))
	return true
}

// ended reports whether the status of a task has been sent and is not acknowledged.
func (r *recall) ended(itt uint32) bool { return r.response(itt) != nil }

// response returns that status: one without StatSN is still to be sent for the first
// time.
func (r *recall) response(itt uint32) *recalled {
	for i := range r.stamped {
		if s := &r.statuses[i]; s.answers(itt) {
			return s
		}
	}
	return nil
}

// resegment sends all data of a task again that was not acknowledged, in PDUs as long
// as the initiator takes them now, numbered from the first of them on, and the status,
// which then carries the SNACK Tag and a new ExpDataSN (RFC 7143 section 11.16.3).
func (r *recall) resegment(p *pdu.SNACKRequest) bool {
	itt, tag := p.BHS().ITT(), p.BHS().TTT()
	rsp := r.response(itt)
	if rsp == nil && !r.of.exists(itt) || tag == 0 || tag == pdu.ReservedTag {
		return false
	}
	var old []recalled
	for s := r.parts.of(itt); s != nil; s = s.next {
		if s.bhs.Opcode() == pdu.OpDataIn {
			old = append(old, s.recalled)
		}
	}
	if len(old) == 0 || !whole(old) {
		return false
	}
	old = r.forget(itt, func(s *recalled) bool { return s.bhs.Opcode() == pdu.OpDataIn })
	sn := old[0].sn()
	for i := range old {
		sn = r.cut(&old[i], sn)
	}
	r.of.renumber(itt, sn, tag)
	if rsp != nil {
		rsp.bhs.SetTTT(tag)
		(*pdu.SCSIResponse)(&rsp.bhs).SetExpDataSN(sn)
		r.resend(rsp)
	}
	return true
}

// resend sends a PDU again, which is work that the initiator has asked for: it waits for
// its turns until that is made up for (flow.go), however small its SNACK was.
func (r *recall) resend(s *recalled) {
	r.of.charge(1 + len(s.data)/workBytes)
	if s.ref != nil {
		s.ref.Retain()
	}
	r.Resend(&s.bhs, s.data, s.ref)
}

// whole reports whether no part between the first and the last was forgotten.
func whole(parts []recalled) bool {
	for i := 1; i < len(parts); i++ {
		if parts[i].sn() != parts[i-1].sn()+1 {
			return false
		}
	}
	return true
}

// cut sends one Data-In PDU again as several, if need be, gives its buffer back and returns
// the next DataSN.
func (r *recall) cut(s *recalled, sn pdu.SN) pdu.SN {
	defer s.release()
	data, off := s.data, (*pdu.DataIn)(&s.bhs).BufferOffset()
	for {
		n := min(len(data), r.MaxDataIn())
		bhs := s.bhs
		d := (*pdu.DataIn)(&bhs)
		bhs.SetDataSegmentLength(n)
		bhs.SetFinal(s.bhs.Final() && n == len(data))
		d.SetDataSN(sn)
		d.SetBufferOffset(off)
		if !bhs.Final() {
			d.SetAcknowledge(false)
			bhs.SetTTT(pdu.ReservedTag)
		}
		r.keep(&bhs, data[:n])
		r.resend(&r.parts.last.recalled)
		r.sent()
		sn++
		if n == len(data) {
			return sn
		}
		data, off = data[n:], off+uint32(n)
	}
}
