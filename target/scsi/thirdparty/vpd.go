package thirdparty

import (
	"encoding/binary"
)

// Third-party copy descriptor types of VPD page 8Fh (SPC-4 clause 7.8.17).
const (
	tpcBlockRODLimits       = 0x0000
	tpcSupportedCommands    = 0x0001
	tpcParameterData        = 0x0004
	tpcSupportedDescriptors = 0x0008
	tpcSupportedCSCDIDs     = 0x000c
	tpcRODFeatures          = 0x0106
	tpcRODTypes             = 0x0108
	tpcGeneralOperations    = 0x8001
)

// ThirdPartyCopy is page 8Fh: which copies the copy manager of a logical unit makes
// whose logical blocks have 1<<shift bytes, by which commands.
func ThirdPartyCopy(shift uint, commands []Command) []byte {
	body := tpcDescriptor(tpcBlockRODLimits, tpcTokenLimits(shift))
	body = append(body, tpcDescriptor(tpcSupportedCommands, tpcCommands(commands))...)
	body = append(body, tpcDescriptor(tpcParameterData, tpcParameters())...)
	body = append(body, tpcDescriptor(tpcSupportedDescriptors, tpcDescriptors())...)
	body = append(body, tpcDescriptor(tpcSupportedCSCDIDs, []byte{0, 0})...)
	body = append(body, tpcDescriptor(tpcRODFeatures, tpcFeatures())...)
	body = append(body, tpcDescriptor(tpcRODTypes, tpcTypes())...)
	return append(body, tpcDescriptor(tpcGeneralOperations, tpcOperations(shift))...)
}

// tpcDescriptor pads the fields to a multiple of four bytes.
func tpcDescriptor(kind uint16, fields []byte) []byte {
	for len(fields)%4 != 0 {
		fields = append(fields, 0)
	}
	d := binary.BigEndian.AppendUint16(nil, kind)
	d = binary.BigEndian.AppendUint16(d, uint16(len(fields)))
	return append(d, fields...)
}

// Command is an operation code with one of its service actions.
type Command struct{ Opcode, ServiceAction byte }

// tpcCommands lists operation codes with their service actions, in ascending order.
func tpcCommands(commands []Command) []byte {
	var list []byte
	for _, c := range commands {
		list = tpcAddCommand(list, c)
	}
	return append([]byte{byte(len(list))}, list...)
}

// tpcAddCommand adds a command to its operation code's descriptor, the last one, or
// begins the next. The list is {operation code, number of service actions,
// service actions}.
func tpcAddCommand(list []byte, c Command) []byte {
	for at := 0; at < len(list); at += 2 + int(list[at+1]) {
		if list[at] == c.Opcode {
			list[at+1]++
			return append(list, c.ServiceAction)
		}
	}
	return append(list, c.Opcode, 1, c.ServiceAction)
}

// tpcParameters tells the bounds of an EXTENDED COPY parameter list.
func tpcParameters() []byte {
	be, d := binary.BigEndian, make([]byte, 28)
	be.PutUint16(d[4:], MaxCSCDs)
	be.PutUint16(d[6:], MaxSegments)
	be.PutUint32(d[8:], maxList)
	return d // no inline data
}

func tpcDescriptors() []byte {
	return []byte{3, copyBlocks, copyBlocksOffset, CSCDIdentification}
}

// tpcOperations tells how much may be copied at once.
func tpcOperations(shift uint) []byte {
	be, d := binary.BigEndian, make([]byte, 32)
	be.PutUint32(d, MaxRecords)     // TOTAL CONCURRENT COPIES
	be.PutUint32(d[4:], MaxRecords) // MAXIMUM IDENTIFIED CONCURRENT COPIES
	be.PutUint32(d[8:], MaxBytes)   // MAXIMUM SEGMENT LENGTH
	d[12] = byte(shift)             // DATA SEGMENT GRANULARITY
	return d
}

// tpcTokenLimits tells the bounds of POPULATE TOKEN and WRITE USING TOKEN
// (SBC-3 clause 6.6.9.3).
func tpcTokenLimits(shift uint) []byte {
	be, d := binary.BigEndian, make([]byte, 32)
	be.PutUint16(d[6:], MaxRanges)
	be.PutUint32(d[8:], uint32(maxTokenTimeout.Seconds()))
	be.PutUint32(d[12:], uint32(defaultTokenTimeout.Seconds()))
	be.PutUint64(d[16:], MaxBytes>>shift)         // MAXIMUM TOKEN TRANSFER SIZE
	be.PutUint64(d[24:], optimalCopyBytes>>shift) // OPTIMAL TRANSFER COUNT
	return d
}

// optimalCopyBytes is what a copy moves so quickly that initiators that wait for
// it do not wonder.
const optimalCopyBytes = 64 << 20

// tpcFeatures tells the same in bytes. REMOTE TOKENS is 0: those of other
// servers are unknown.
func tpcFeatures() []byte {
	be, d := binary.BigEndian, make([]byte, 44+48)
	// MINIMUM TOKEN LIFETIME is 0: a change of the blocks ends it.
	be.PutUint32(d[16:], uint32(maxTokenTimeout.Seconds())) // MAXIMUM TOKEN LIFETIME, when not used
	be.PutUint32(d[20:], uint32(maxTokenTimeout.Seconds())) // MAXIMUM TOKEN INACTIVITY TIMEOUT
	block := d[44:]
	be.PutUint16(d[42:], uint16(len(block)))
	be.PutUint16(block[2:], uint16(len(block)-4)) // block device, format 0
	be.PutUint64(block[8:], MaxBytes)             // MAXIMUM BYTES IN BLOCK ROD
	be.PutUint64(block[16:], optimalCopyBytes)
	be.PutUint64(block[24:], optimalCopyBytes) // to a token
	be.PutUint64(block[32:], optimalCopyBytes) // from a token
	return d
}

// tpcTypes lists the types of tokens: those that POPULATE TOKEN makes, and the
// one that stands for zeroes.
func tpcTypes() []byte {
	const length = 64
	be, d := binary.BigEndian, make([]byte, 4+2*length)
	be.PutUint16(d[2:], 2*length)
	be.PutUint32(d[4:], changeVulnerable)
	d[4+4] = 0x03                 // TOKEN_IN, TOKEN_OUT
	be.PutUint16(d[4+6:], 0x8000) // PREFERENCE INDICATOR: above others
	be.PutUint32(d[4+length:], zeroToken)
	d[4+length+4] = 0x02 // TOKEN_IN
	return d
}
