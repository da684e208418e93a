package login

import (
	"io"

	"lunar/target/pdu"
)

// Bounds on one login.
const (
	// MaxSteps is the greatest number of requests.
	MaxSteps = 64
	// MaxBytes is the greatest length of all their text in bytes.
	MaxBytes = pdu.MaxTextLength
)

// Config is what a Negotiation is made of.
type Config struct {
	Offer  Offer
	Access Access
	// Rand gives CHAP identifiers and challenges; crypto/rand.Reader outside
	// of tests.
	Rand io.Reader
	// PortalGroupTag is the tag of the portal group that the connection came
	// in by.
	PortalGroupTag uint16
	// AllowShortSecrets accepts secrets of less than MinSecretLength bytes.
	AllowShortSecrets bool
	// Exchanges are those of all logins of the server; nil: there is only this one.
	Exchanges *Exchanges
}

// Negotiation is the target's side of one connection's login phase. It is not
// safe for concurrent use.
type Negotiation struct {
	config Config
	stage  pdu.Stage
	steps  int
	bytes  int
	over   bool // done or failed

	request  pdu.Accumulator   // text of the request so far, by the C bit
	response []byte            // text that is still to be sent
	seen     map[string]string // every key that came, with its value
	params   Params
	// limit is the greatest data segment to send in the login phase, in bytes.
	limit       uint32
	operational bool // the target's operational declarations are sent
	named       bool // its alias is

	identified                    bool // the first request is understood
	initiatorName, initiatorAlias string
	targetName                    string
	sessionType                   SessionType
	isid                          pdu.ISID
	tsih, cid                     uint16

	auth     Auth
	security security
}

// New starts the login of a connection. The caller ends it by End.
func New(config Config) *Negotiation {
	if config.Exchanges == nil {
		config.Exchanges = new(Exchanges)
	}
	return &Negotiation{
		config: config,
		seen:   make(map[string]string),
		params: DefaultParams(),
		limit:  DefaultMaxRecvDataSegmentLength,
	}
}

// Leading reports that the login is to make a new session, rather than to add
// a connection to the session that TSIH names. It holds from the first Step on.
func (n *Negotiation) Leading() bool { return n.tsih == 0 }

// InitiatorName is the name that the initiator gave, for logs; empty before.
func (n *Negotiation) InitiatorName() string { return n.initiatorName }

// TargetName is the target that the initiator named, for logs; empty before.
func (n *Negotiation) TargetName() string { return n.targetName }

// Step answers one Login Request. text is its data segment, without padding;
// it is not kept. Every error is an *Error; it ends the login, as does a
// response with Done.
func (n *Negotiation) Step(req *pdu.LoginRequest, text []byte) (Response, error) {
	if n.over {
		return Response{}, Errorf(pdu.LoginInvalidDuringLogin, "request after the end of the login phase")
	}
	rsp, err := n.step(req, text)
	if err != nil {
		n.over = true
		return Response{}, err
	}
	n.over = rsp.Done
	return rsp, nil
}

func (n *Negotiation) step(req *pdu.LoginRequest, text []byte) (Response, *Error) {
	if err := n.admit(req, len(text)); err != nil {
		return Response{}, err
	}
	if len(n.response) > 0 {
		return n.goOn(req, text)
	}
	whole, complete, err := n.request.Add(text, req.Continue())
	if err != nil {
		return Response{}, Errorf(pdu.LoginInitiatorError, "%v", err)
	}
	if !complete {
		return Response{CSG: n.stage}, nil
	}
	pairs, err := pdu.ParseText(whole)
	if err != nil {
		return Response{}, Errorf(pdu.LoginInitiatorError, "%v", err)
	}
	if err := n.take(pairs); err != nil {
		return Response{}, err
	}
	return n.respond(req)
}

// admit checks what does not depend on the text: the bounds, the version, that
// it is still the same login, and the stage bits.
func (n *Negotiation) admit(req *pdu.LoginRequest, length int) *Error {
	n.steps++
	n.bytes += length
	switch {
	case n.steps > MaxSteps:
		return Errorf(pdu.LoginInitiatorError, "more than %d requests", MaxSteps)
	case n.bytes > MaxBytes:
		return Errorf(pdu.LoginInitiatorError, "more than %d bytes of text", MaxBytes)
	case req.VersionMin() > pdu.Version:
		return Errorf(pdu.LoginUnsupportedVersion, "lowest version %d, expected %d", req.VersionMin(), pdu.Version)
	}
	if n.steps == 1 {
		n.isid, n.tsih, n.cid = req.ISID(), req.TSIH(), req.CID()
		n.stage = req.CSG()
	}
	if req.ISID() != n.isid || req.TSIH() != n.tsih || req.CID() != n.cid {
		return Errorf(pdu.LoginInitiatorError, "ISID, TSIH or CID changed within the login")
	}
	return n.admitStage(req)
}

// admitStage checks T, C, CSG and NSG (RFC 7143 11.12.2 and 11.12.3).
func (n *Negotiation) admitStage(req *pdu.LoginRequest) *Error {
	csg, nsg := req.CSG(), req.NSG()
	switch {
	case csg != pdu.StageSecurityNegotiation && csg != pdu.StageLoginOperationalNegotiation:
		return Errorf(pdu.LoginInitiatorError, "current stage %s in the login phase", csg)
	case csg != n.stage:
		return Errorf(pdu.LoginInitiatorError, "current stage %s, expected %s", csg, n.stage)
	case !req.Transit():
		return nil
	case req.Continue():
		return Errorf(pdu.LoginInitiatorError, "both T and C bit")
	case nsg != pdu.StageLoginOperationalNegotiation && nsg != pdu.StageFullFeaturePhase, nsg <= csg:
		return Errorf(pdu.LoginInitiatorError, "next stage %s after %s", nsg, csg)
	}
	return nil
}

// take evaluates the text of one complete request and makes the response text.
func (n *Negotiation) take(pairs []pdu.Pair) *Error {
	first := !n.identified
	if first {
		if err := n.identify(pairs); err != nil {
			return err
		}
	}
	answers, err := n.negotiate(pairs)
	if err != nil {
		return err
	}
	proof, err := n.authenticate()
	if err != nil {
		return err
	}
	n.response = pdu.AppendText(nil, n.declarations(first))
	n.response = pdu.AppendText(n.response, answers)
	n.response = pdu.AppendText(n.response, proof)
	return nil
}

// declarations are the keys that the target sends by itself: those of the
// session in its first response (RFC 7143 13.9), its alias when the initiator has
// proven itself, the rest in the first of the operational stage.
func (n *Negotiation) declarations(first bool) (pairs []pdu.Pair) {
	if first && n.sessionType == Normal {
		tag := pdu.FormatNumber(uint64(n.config.PortalGroupTag))
		pairs = append(pairs, pdu.Pair{Key: "TargetPortalGroupTag", Value: tag})
	}
	if !n.named && n.sessionType == Normal && n.auth.TargetAlias != "" && (n.security.proven || n.auth.AllowNone) {
		n.named = true
		pairs = append(pairs, pdu.Pair{Key: "TargetAlias", Value: n.auth.TargetAlias})
	}
	if n.stage != pdu.StageLoginOperationalNegotiation || n.operational {
		return pairs
	}
	n.operational = true
	if n.params.RDMAExtensions {
		return n.declareRDMA(pairs)
	}
	length := n.config.Offer.TargetMaxRecvDataSegmentLength
	n.params.TargetMaxRecvDataSegmentLength = length
	return append(pairs, pdu.Pair{Key: "MaxRecvDataSegmentLength", Value: pdu.FormatNumber(uint64(length))})
}

// declareRDMA declares the bound on unexpected PDUs of an iSER connection (RFC
// 7145 6.7) to an initiator that has declared its own: open-iscsi ends the login
// over a key of iSER that it does not know.
func (n *Negotiation) declareRDMA(pairs []pdu.Pair) []pdu.Pair {
	if _, asked := n.seen["MaxOutstandingUnexpectedPDUs"]; !asked {
		return pairs
	}
	bound := n.config.Offer.TargetMaxOutstandingUnexpectedPDUs
	n.params.TargetMaxOutstandingUnexpectedPDUs = bound
	return append(pairs, pdu.Pair{Key: "MaxOutstandingUnexpectedPDUs", Value: pdu.FormatNumber(uint64(bound))})
}

// goOn continues a response that did not fit into one PDU; the request that
// asks for more of it must be empty (RFC 7143 11.12.2).
func (n *Negotiation) goOn(req *pdu.LoginRequest, text []byte) (Response, *Error) {
	if len(text) > 0 || req.Continue() {
		return Response{}, Errorf(pdu.LoginInitiatorError, "text of %d bytes while the response goes on", len(text))
	}
	return n.respond(req)
}

// respond sends what fits of the response text and, after its end, grants the
// stage transition that req asks for.
func (n *Negotiation) respond(req *pdu.LoginRequest) (Response, *Error) {
	length := min(len(n.response), int(n.limit))
	rsp := Response{Text: n.response[:length], CSG: n.stage}
	n.response = n.response[length:]
	if len(n.response) > 0 {
		rsp.Continue = true
		return rsp, nil
	}
	if !req.Transit() {
		return rsp, nil
	}
	if n.stage == pdu.StageSecurityNegotiation {
		proven, err := n.mayLeaveSecurity()
		if err != nil || !proven {
			return rsp, err
		}
	}
	rsp.Transit, rsp.NSG = true, req.NSG()
	n.stage = req.NSG()
	if n.stage == pdu.StageFullFeaturePhase {
		rsp.Done, rsp.Result = true, n.result()
	}
	return rsp, nil
}

func (n *Negotiation) result() *Result {
	// A FirstBurstLength above MaxBurstLength can come from a default or from
	// a MaxBurstLength that was agreed later; both sides are bound by
	// the smaller one (RFC 7143 13.14).
	n.params.FirstBurstLength = min(n.params.FirstBurstLength, n.params.MaxBurstLength)
	n.params.MaxOutstandingR2T = min(n.params.MaxOutstandingR2T, n.params.mostOutstandingR2T())
	return &Result{
		InitiatorName:  n.initiatorName,
		InitiatorAlias: n.initiatorAlias,
		TargetName:     n.targetName,
		SessionType:    n.sessionType,
		ISID:           n.isid,
		TSIH:           n.tsih,
		CID:            n.cid,
		Params:         n.params,
		Proof:          n.proof(),
	}
}
