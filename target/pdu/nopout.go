package pdu

// NOPOut is a ping from the initiator, or its answer to a NOP-In (RFC 7143 11.18):
//
//	 0     I | 0x00
//	 1     F = 1
//	 8     LUN
//	16     Initiator Task Tag, ReservedTag when no answer is wanted
//	20     Target Transfer Tag, ReservedTag unless it answers a NOP-In
//	24     CmdSN
//	28     ExpStatSN
//	48     ping data
type NOPOut BHS

// BHS is the same header with the fields that PDUs share.
func (p *NOPOut) BHS() *BHS { return (*BHS)(p) }

// Init clears the header and sets the opcode and the F bit.
func (p *NOPOut) Init() *NOPOut {
	*p = NOPOut{0: byte(OpNOPOut), 1: 0x80}
	return p
}
