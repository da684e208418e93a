package login

import "lunar/target/pdu"

// Params is the outcome of a login: what both sides agreed or declared, and
// the RFC's default for every key that was not used.
type Params struct {
	SessionParams
	ConnectionParams
}

// SessionParams holds for all connections of a session. Lengths are in bytes,
// times in seconds.
type SessionParams struct {
	MaxConnections      uint32
	InitialR2T          bool // true forbids unsolicited Data-Out
	ImmediateData       bool
	MaxBurstLength      uint32
	FirstBurstLength    uint32 // never above MaxBurstLength
	DefaultTime2Wait    uint32
	DefaultTime2Retain  uint32
	MaxOutstandingR2T   uint32
	DataPDUInOrder      bool
	DataSequenceInOrder bool
	ErrorRecoveryLevel  uint32
	TaskReporting       string // RFC3720, ResponseFence or FastAbort
	ISCSIProtocolLevel  uint32
	RDMAExtensions      bool // the connections continue over iSER (RFC 7145 6.3)
}

// ConnectionParams holds for one connection. Lengths are in bytes.
type ConnectionParams struct {
	HeaderDigest, DataDigest bool // CRC32C, from the first PDU after login
	// InitiatorMaxRecvDataSegmentLength bounds the data segments that the
	// target sends, TargetMaxRecvDataSegmentLength those that it receives.
	InitiatorMaxRecvDataSegmentLength uint32
	TargetMaxRecvDataSegmentLength    uint32
	// InitiatorMaxOutstandingUnexpectedPDUs and its counterpart bound the
	// unexpected control PDUs of iSER; 0 is no bound (RFC 7145 6.7).
	InitiatorMaxOutstandingUnexpectedPDUs uint32
	TargetMaxOutstandingUnexpectedPDUs    uint32
}

// DefaultMaxRecvDataSegmentLength is the value in bytes of a key that was not
// declared, and the bound of every data segment in the login phase.
const DefaultMaxRecvDataSegmentLength = 8192

// DefaultParams is what holds when no key is used (RFC 7143 13).
func DefaultParams() Params {
	return Params{
		SessionParams: SessionParams{
			MaxConnections:      1,
			InitialR2T:          true,
			ImmediateData:       true,
			MaxBurstLength:      256 << 10,
			FirstBurstLength:    64 << 10,
			DefaultTime2Wait:    2,
			DefaultTime2Retain:  20,
			MaxOutstandingR2T:   1,
			DataPDUInOrder:      true,
			DataSequenceInOrder: true,
			TaskReporting:       "RFC3720",
			ISCSIProtocolLevel:  1,
		},
		ConnectionParams: ConnectionParams{
			InitiatorMaxRecvDataSegmentLength: DefaultMaxRecvDataSegmentLength,
			TargetMaxRecvDataSegmentLength:    DefaultMaxRecvDataSegmentLength,
		},
	}
}

// Digest methods, values of HeaderDigest and DataDigest (RFC 7143 13.1).
const (
	DigestCRC32C = "CRC32C"
	DigestNone   = pdu.ValueNone
)

// Offer is the target's own side of the negotiation. A key that the initiator
// does not offer takes the RFC's default, even where Offer says less; so the
// target must be able to honour DefaultParams.
type Offer struct {
	// Params holds the target's value of each boolean and numerical key.
	// HeaderDigest, DataDigest, TaskReporting and the values that the
	// initiator declares have no meaning here.
	Params
	// HeaderDigests and DataDigests are the acceptable digests. The choice
	// is the first of the initiator's list that is among them (RFC 7143 6.2.1).
	HeaderDigests, DataDigests []string
	// TaskReporting is the acceptable values of that key.
	TaskReporting []string
}

// AssistedOffer makes an offer one for iSER (RFC 7145 6): no digests, no Data-Out
// that comes unasked but immediate data of at most immediate bytes, 0 for none.
func AssistedOffer(o Offer, immediate uint32) Offer {
	o.RDMAExtensions, o.InitialR2T, o.ImmediateData = true, true, immediate > 0
	o.HeaderDigests, o.DataDigests = []string{DigestNone}, []string{DigestNone}
	o.FirstBurstLength = min(o.FirstBurstLength, max(immediate, 512))
	o.MaxConnections, o.ErrorRecoveryLevel = 1, 0
	o.TargetMaxRecvDataSegmentLength = max(immediate, DefaultMaxRecvDataSegmentLength)
	o.InitiatorMaxRecvDataSegmentLength = pdu.MaxDataSegmentLength
	return o
}

// DefaultOffer is a sound offer for iSCSI over TCP.
func DefaultOffer() Offer {
	o := Offer{
		Params:        DefaultParams(),
		HeaderDigests: []string{DigestCRC32C, DigestNone},
		DataDigests:   []string{DigestCRC32C, DigestNone},
		TaskReporting: []string{"RFC3720"},
	}
	o.InitialR2T = false
	o.MaxBurstLength = 1 << 20
	o.FirstBurstLength = 256 << 10
	o.MaxOutstandingR2T = 16
	o.TargetMaxRecvDataSegmentLength = 256 << 10
	return o
}
