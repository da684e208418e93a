package login

import (
	"math"

	"lunar/target/pdu"
)

// kind says how the value of a key comes about (RFC 7143 6.2).
type kind uint8

const (
	kindDeclared   kind = iota // the initiator declares it, no answer
	kindList                   // the initiator's first value that the target accepts
	kindAnd                    // boolean, Yes when both say Yes
	kindOr                     // boolean, Yes when one says Yes
	kindMin                    // number, the smaller one
	kindMax                    // number, the greater one
	kindSecurity               // belongs to the authentication (security.go)
	kindFixed                  // always the same answer
	kindTargetOnly             // not for the initiator to send in the login phase
)

// stages is the set of login stages in which a key may be used.
type stages uint8

const (
	inSecurity stages = 1 << iota
	inOperational
	inLogin = inSecurity | inOperational
)

// key is everything about one text key. Own and agreed values of a number or
// boolean live at the same place of two Params: the offer's and the result's.
type key struct {
	name   string
	kind   kind
	stages stages
	// leading keys belong to the session and are negotiated on its first
	// connection alone (RFC 7143 13, "LO").
	leading bool
	// identity keys say who wants what; they are read first of all.
	identity bool
	// late keys are evaluated after the others of a request, because their
	// result depends on those; answers keep the order of arrival.
	late      bool
	low, high uint32 // legal range of a number
	// irrelevant, unless nil, tells that the key has no meaning in n.
	irrelevant func(n *Negotiation) bool

	number func(p *Params) *uint32
	// bound, unless nil, is what the outcome never exceeds, from other keys' outcomes.
	bound  func(p *Params) uint32
	flag   func(p *Params) *bool
	values func(o *Offer) []string // of a list
	choose func(p *Params, v string)
	// declare takes a declared value; k is this row.
	declare func(n *Negotiation, k *key, v string) *Error
	answer  string // of kindFixed
}

const maxLength = pdu.MaxDataSegmentLength

// keys is the table of RFC 7143 12 and 13 and RFC 7145 6. The order of its
// rows means nothing.
var keys = []key{
	// Names and session: declared in the first request.
	{name: "InitiatorName", kind: kindDeclared, stages: inLogin, identity: true, declare: declareInitiatorName},
	{name: "InitiatorAlias", kind: kindDeclared, stages: inLogin, identity: true, declare: declareInitiatorAlias},
	{name: "TargetName", kind: kindDeclared, stages: inLogin, identity: true, declare: declareTargetName},
	{name: "SessionType", kind: kindDeclared, stages: inLogin, identity: true, declare: declareSessionType},

	// Authentication.
	{name: "AuthMethod", kind: kindSecurity, stages: inSecurity},
	{name: "CHAP_A", kind: kindSecurity, stages: inSecurity},
	{name: "CHAP_I", kind: kindSecurity, stages: inSecurity},
	{name: "CHAP_C", kind: kindSecurity, stages: inSecurity},
	{name: "CHAP_N", kind: kindSecurity, stages: inSecurity},
	{name: "CHAP_R", kind: kindSecurity, stages: inSecurity},

	// Per connection.
	{name: "HeaderDigest", kind: kindList, stages: inOperational,
		values: func(o *Offer) []string { return o.HeaderDigests },
		choose: func(p *Params, v string) { p.HeaderDigest = v == DigestCRC32C }},
	{name: "DataDigest", kind: kindList, stages: inOperational,
		values: func(o *Offer) []string { return o.DataDigests },
		choose: func(p *Params, v string) { p.DataDigest = v == DigestCRC32C }},
	{name: "MaxRecvDataSegmentLength", kind: kindDeclared, stages: inLogin, low: 512, high: maxLength,
		declare: declareMaxRecvDataSegmentLength},

	// Per session.
	{name: "MaxConnections", kind: kindMin, stages: inOperational, leading: true, low: 1, high: 65535,
		irrelevant: isDiscovery, number: func(p *Params) *uint32 { return &p.MaxConnections }},
	{name: "InitialR2T", kind: kindOr, stages: inOperational, leading: true,
		irrelevant: isDiscovery, flag: func(p *Params) *bool { return &p.InitialR2T }},
	{name: "ImmediateData", kind: kindAnd, stages: inOperational, leading: true,
		irrelevant: isDiscovery, flag: func(p *Params) *bool { return &p.ImmediateData }},
	{name: "MaxBurstLength", kind: kindMin, stages: inOperational, leading: true, low: 512, high: maxLength,
		irrelevant: isDiscovery, number: func(p *Params) *uint32 { return &p.MaxBurstLength }},
	{name: "FirstBurstLength", kind: kindMin, stages: inOperational, leading: true, late: true, low: 512, high: maxLength,
		irrelevant: isAllSolicited, number: func(p *Params) *uint32 { return &p.FirstBurstLength },
		bound: func(p *Params) uint32 { return p.MaxBurstLength }},
	{name: "DefaultTime2Wait", kind: kindMax, stages: inOperational, leading: true, high: 3600,
		number: func(p *Params) *uint32 { return &p.DefaultTime2Wait }},
	{name: "DefaultTime2Retain", kind: kindMin, stages: inOperational, leading: true, late: true, high: 3600,
		number: func(p *Params) *uint32 { return &p.DefaultTime2Retain }, bound: (*Params).mostTime2Retain},
	{name: "MaxOutstandingR2T", kind: kindMin, stages: inOperational, leading: true, late: true, low: 1, high: 65535,
		irrelevant: isDiscovery, number: func(p *Params) *uint32 { return &p.MaxOutstandingR2T }, bound: (*Params).mostOutstandingR2T},
	{name: "DataPDUInOrder", kind: kindOr, stages: inOperational, leading: true,
		irrelevant: isDiscovery, flag: func(p *Params) *bool { return &p.DataPDUInOrder }},
	{name: "DataSequenceInOrder", kind: kindOr, stages: inOperational, leading: true,
		irrelevant: isDiscovery, flag: func(p *Params) *bool { return &p.DataSequenceInOrder }},
	{name: "ErrorRecoveryLevel", kind: kindMin, stages: inOperational, leading: true, high: 2,
		number: func(p *Params) *uint32 { return &p.ErrorRecoveryLevel }},
	{name: "TaskReporting", kind: kindList, stages: inOperational, leading: true,
		irrelevant: isDiscovery,
		values:     func(o *Offer) []string { return o.TaskReporting },
		choose:     func(p *Params, v string) { p.TaskReporting = v }},
	{name: "iSCSIProtocolLevel", kind: kindMin, stages: inOperational, leading: true, high: 31,
		irrelevant: isDiscovery, number: func(p *Params) *uint32 { return &p.ISCSIProtocolLevel }},

	// iSER (RFC 7145 6).
	{name: "RDMAExtensions", kind: kindAnd, stages: inOperational, leading: true,
		irrelevant: isDiscovery, flag: func(p *Params) *bool { return &p.RDMAExtensions }},
	{name: "InitiatorRecvDataSegmentLength", kind: kindMin, stages: inOperational, late: true, low: 512, high: maxLength,
		irrelevant: isNotRDMA, number: func(p *Params) *uint32 { return &p.InitiatorMaxRecvDataSegmentLength }},
	{name: "TargetRecvDataSegmentLength", kind: kindMin, stages: inOperational, late: true, low: 512, high: maxLength,
		irrelevant: isNotRDMA, number: func(p *Params) *uint32 { return &p.TargetMaxRecvDataSegmentLength }},
	{name: "MaxOutstandingUnexpectedPDUs", kind: kindDeclared, stages: inOperational, late: true, high: math.MaxUint32,
		irrelevant: isNotRDMA, declare: declareMaxOutstandingUnexpectedPDUs},
	{name: "iSERHelloRequired", kind: kindFixed, stages: inOperational, late: true, irrelevant: isNotRDMA, answer: pdu.ValueNo},
	{name: "MaxAHSLength", kind: kindDeclared, stages: inOperational, late: true, low: 2, high: maxLength,
		irrelevant: isNotRDMA, declare: declareNothing},
	{name: "TaggedBufferForSolicitedDataOnly", kind: kindDeclared, stages: inOperational, late: true,
		irrelevant: isNotRDMA, declare: declareSolicitedOnly},

	// Obsolete (RFC 7143 13.25): never NotUnderstood.
	{name: "IFMarker", kind: kindFixed, stages: inOperational, answer: pdu.ValueNo},
	{name: "OFMarker", kind: kindFixed, stages: inOperational, answer: pdu.ValueNo},
	{name: "IFMarkInt", kind: kindFixed, stages: inOperational, answer: pdu.ValueReject},
	{name: "OFMarkInt", kind: kindFixed, stages: inOperational, answer: pdu.ValueReject},

	// Sent by the target, or in the full feature phase.
	{name: "TargetAlias", kind: kindTargetOnly, stages: inLogin},
	{name: "TargetAddress", kind: kindTargetOnly, stages: inLogin},
	{name: "TargetPortalGroupTag", kind: kindTargetOnly, stages: inLogin},
	{name: "SendTargets", kind: kindTargetOnly, stages: inLogin},
}

// keyByName finds rows of keys; it is written once.
var keyByName = make(map[string]*key, len(keys))

func init() {
	for i := range keys {
		keyByName[keys[i].name] = &keys[i]
	}
}

// Known reports that RFC 7143 or RFC 7145 defines the key; a peer answers an
// unknown one with NotUnderstood. Names are compared exactly.
func Known(name string) bool { return keyByName[name] != nil }

func isDiscovery(n *Negotiation) bool { return n.sessionType == Discovery }

// isAllSolicited: with InitialR2T=Yes and ImmediateData=No there is no first
// burst (RFC 7143 13.14).
func isAllSolicited(n *Negotiation) bool {
	return isDiscovery(n) || n.params.InitialR2T && !n.params.ImmediateData
}

// mostTime2Retain: below ErrorRecoveryLevel 2 nothing is kept for a connection that
// may come again.
func (p *Params) mostTime2Retain() uint32 {
	if p.ErrorRecoveryLevel < 2 {
		return 0
	}
	return math.MaxUint32
}

// mostOutstandingR2T: what is asked for in order can be asked for again only if it was
// the last (RFC 7143 13.19).
func (p *Params) mostOutstandingR2T() uint32 {
	if p.ErrorRecoveryLevel > 0 && p.DataSequenceInOrder {
		return 1
	}
	return math.MaxUint32
}

func isNotRDMA(n *Negotiation) bool { return !n.params.RDMAExtensions }
