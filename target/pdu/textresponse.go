package pdu

// TextResponse is the answer to a text request (RFC 7143 11.11):
//
//	 0     0x24
//	 1     F | C
//	 8     LUN
//	16     Initiator Task Tag
//	20     Target Transfer Tag, ReservedTag in the last of an exchange
//	24     StatSN
//	28     ExpCmdSN
//	32     MaxCmdSN
//	48     text
type TextResponse BHS

// BHS is the same header with the fields that PDUs share.
func (p *TextResponse) BHS() *BHS { return (*BHS)(p) }

// Init clears the header and sets the opcode.
func (p *TextResponse) Init() *TextResponse {
	*p = TextResponse{0: byte(OpTextResponse)}
	return p
}

// Continue is the C bit: the text goes on in the next PDU.
func (p *TextResponse) Continue() bool { return p[1]&0x40 != 0 }

// SetContinue sets the C bit.
func (p *TextResponse) SetContinue(v bool) { setBit(&p[1], 0x40, v) }
