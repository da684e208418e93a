package pdu

// NOPIn is a ping from the target, or its answer to a NOP-Out (RFC 7143 11.19):
//
//	 0     0x20
//	 1     F = 1
//	 8     LUN
//	16     Initiator Task Tag, ReservedTag unless it answers a NOP-Out
//	20     Target Transfer Tag, ReservedTag when no answer is wanted
//	24     StatSN
//	28     ExpCmdSN
//	32     MaxCmdSN
//	48     returned ping data
type NOPIn BHS

// BHS is the same header with the fields that PDUs share.
func (p *NOPIn) BHS() *BHS { return (*BHS)(p) }

// Init clears the header and sets the opcode and the F bit.
func (p *NOPIn) Init() *NOPIn {
	*p = NOPIn{0: byte(OpNOPIn), 1: 0x80}
	return p
}
