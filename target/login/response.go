package login

import "lunar/target/pdu"

// Response is what to answer to one Login Request.
type Response struct {
	// Text is the data segment, of at most the length that the initiator
	// takes. It stays valid until the next Step.
	Text     []byte
	Transit  bool // the T bit
	Continue bool // the C bit: more text follows
	CSG, NSG pdu.Stage
	// Done says that this response ends the login phase; Result is then set.
	Done   bool
	Result *Result
}

// Result is what a successful login agreed.
type Result struct {
	InitiatorName, InitiatorAlias string
	TargetName                    string // empty in a discovery session
	SessionType                   SessionType
	ISID                          pdu.ISID
	TSIH                          uint16 // as requested: 0 for a new session
	CID                           uint16
	// Params is what was agreed. On a connection that joins a session, that is
	// when TSIH is not 0, its session part holds defaults: the session has its
	// own already.
	Params Params
	// Proof is who the initiator has proven to be.
	Proof Proof
}

// SessionType is the kind of a session (RFC 7143 13.21).
type SessionType uint8

const (
	// Normal is a session that carries SCSI commands.
	Normal SessionType = iota
	// Discovery is a session for SendTargets alone.
	Discovery
)

// String is the value of the SessionType key.
func (t SessionType) String() string {
	if t == Discovery {
		return "Discovery"
	}
	return "Normal"
}

// Put makes rsp the successful Login Response to req. The caller stamps the
// sequence numbers, sets the TSIH when Done, and sends Text as data segment.
func (r *Response) Put(req *pdu.LoginRequest, rsp *pdu.LoginResponse) {
	putCommon(req, rsp)
	rsp.SetTransit(r.Transit)
	rsp.SetContinue(r.Continue)
	rsp.SetCSG(r.CSG)
	rsp.SetNSG(r.NSG)
	rsp.BHS().SetDataSegmentLength(len(r.Text))
}

// putCommon sets what every Login Response repeats of its request.
func putCommon(req *pdu.LoginRequest, rsp *pdu.LoginResponse) {
	rsp.Init()
	rsp.SetVersionMax(pdu.Version)
	rsp.SetVersionActive(pdu.Version)
	rsp.SetISID(req.ISID())
	rsp.SetTSIH(req.TSIH())
	rsp.BHS().SetITT(req.BHS().ITT())
}
