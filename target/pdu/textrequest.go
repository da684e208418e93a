package pdu

// TextRequest is a text request of the full feature phase (RFC 7143 11.10):
//
//	 0     I | 0x04
//	 1     F | C
//	 8     LUN
//	16     Initiator Task Tag
//	20     Target Transfer Tag, ReservedTag in the first of an exchange
//	24     CmdSN
//	28     ExpStatSN
//	48     text
type TextRequest BHS

// BHS is the same header with the fields that PDUs share.
func (p *TextRequest) BHS() *BHS { return (*BHS)(p) }

// Init clears the header and sets the opcode.
func (p *TextRequest) Init() *TextRequest {
	*p = TextRequest{0: byte(OpTextRequest)}
	return p
}

// Continue is the C bit: the text goes on in the next PDU.
func (p *TextRequest) Continue() bool { return p[1]&0x40 != 0 }

// SetContinue sets the C bit.
func (p *TextRequest) SetContinue(v bool) { setBit(&p[1], 0x40, v) }
