package target

import (
	"sync/atomic"

	"lunar/internal/evloop"
	"lunar/target/pdu"
	"lunar/target/scsi"
)

// tracedPDUs is how many PDUs a trace holds that nobody has read; a power of 2.
const tracedPDUs = 4096

// PDUWay is where a PDU of a trace went.
type PDUWay uint8

// The ways of PDUs.
const (
	PDUReceived  PDUWay = iota
	PDUDamaged          // received with a wrong data digest
	PDUSent             // given to the transport, with its sequence numbers
	PDUSentAgain        // for a SNACK, or on another connection
	PDURelayed          // none: a command was relayed to another server
)

// TracedPDU is the header of a PDU in full feature phase. Its data are not kept.
type TracedPDU struct {
	by     *Connection
	at     int64  // as evloop.Monotonic
	missed uint32 // PDUs before it that the trace had no room for, since it began
	CID    uint16
	Way    PDUWay
	BHS    pdu.BHS       // with PDURelayed: Initiator Task Tag and LUN
	How    *scsi.Relayed // with PDURelayed
}

// Connection is the connection that it was on. Another one with the same CID may take its
// place (RFC 7143 section 6.3.4).
func (p *TracedPDU) Connection() *Connection { return p.by }

// pduRing holds PDUs of one session. Its event thread writes and never waits; one
// goroutine reads.
type pduRing struct {
	pdus []TracedPDU

	_       [cacheLine]byte
	written atomic.Uint64 // PDUs
	missed  atomic.Uint32
	_       [cacheLine]byte
	read    atomic.Uint64 // PDUs
	_       [cacheLine]byte
}

// note keeps a PDU.
func (r *pduRing) note(by *Connection, way PDUWay, bhs *pdu.BHS) { r.keep(by, way, bhs, nil) }

// relayed keeps how a command was relayed.
func (r *pduRing) relayed(by *Connection, itt uint32, lun uint64, how scsi.Relayed) {
	var bhs pdu.BHS
	bhs.SetITT(itt)
	bhs.SetLUN(lun)
	r.keep(by, PDURelayed, &bhs, &how)
}

func (r *pduRing) keep(by *Connection, way PDUWay, bhs *pdu.BHS, how *scsi.Relayed) {
	n := r.written.Load()
	if n-r.read.Load() == tracedPDUs {
		r.missed.Add(1)
		return
	}
	p := &r.pdus[n%tracedPDUs]
	p.by, p.at, p.missed, p.CID, p.Way, p.BHS, p.How = by, evloop.Monotonic(), r.missed.Load(), by.cid, way, *bhs, how
	r.written.Store(n + 1)
}

// received notes one that the initiator has sent.
func (r *pduRing) received(by *Connection, bhs *pdu.BHS, badDigest bool) {
	way := PDUReceived
	if badDigest {
		way = PDUDamaged
	}
	r.note(by, way, bhs)
}

// next is the oldest PDU that was not read.
func (r *pduRing) next() (p TracedPDU, ok bool) {
	n := r.read.Load()
	if n == r.written.Load() {
		return p, false
	}
	p = r.pdus[n%tracedPDUs]
	r.read.Store(n + 1)
	return p, true
}
