package pdu

import "encoding/binary"

// DataOut is data of a write, sent by the initiator (RFC 7143 11.7):
//
//	 0     0x05
//	 1     F
//	 8     LUN
//	16     Initiator Task Tag
//	20     Target Transfer Tag, ReservedTag for unsolicited data
//	28     ExpStatSN
//	36     DataSN
//	40     Buffer Offset
//	48     data
type DataOut BHS

// BHS is the same header with the fields that PDUs share.
func (p *DataOut) BHS() *BHS { return (*BHS)(p) }

// Init clears the header and sets the opcode.
func (p *DataOut) Init() *DataOut {
	*p = DataOut{0: byte(OpDataOut)}
	return p
}

// DataSN is the number of the PDU within its sequence.
func (p *DataOut) DataSN() SN { return SN(binary.BigEndian.Uint32(p[36:40])) }

// SetDataSN sets the number of the PDU within its sequence.
func (p *DataOut) SetDataSN(v SN) { binary.BigEndian.PutUint32(p[36:40], uint32(v)) }

// BufferOffset is the place in bytes of the data within the command's data.
func (p *DataOut) BufferOffset() uint32 { return binary.BigEndian.Uint32(p[40:44]) }

// SetBufferOffset sets the place in bytes of the data within the command's data.
func (p *DataOut) SetBufferOffset(v uint32) { binary.BigEndian.PutUint32(p[40:44], v) }
