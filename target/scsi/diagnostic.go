package scsi

import (
	"encoding/binary"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// diagnosticSupportedPages is the one diagnostic page: the list of all of them
// (SPC-4 clause 7.2).
const diagnosticSupportedPages = 0x00

// runReceiveDiagnostic runs RECEIVE DIAGNOSTIC RESULTS (SPC-4 clause 6.21).
func runReceiveDiagnostic(c *Command) {
	const pcv = 0x01 // PAGE CODE is valid
	if c.CDB[1]&pcv != 0 && c.CDB[2] != diagnosticSupportedPages {
		c.Fail(sense.InvalidFieldInCDB(2, 7))
		return
	}
	data := []byte{diagnosticSupportedPages, 0, 0, 1, diagnosticSupportedPages}
	c.SendParameter(data, uint32(binary.BigEndian.Uint16(c.CDB[3:])))
}

// Fields of SEND DIAGNOSTIC (SPC-4 clause 6.42), byte 1.
const (
	selfTestBit        = 0x04 // SELFTEST: the default self-test
	selfTestCode       = 0xe0 // SELF-TEST CODE
	foregroundShort    = 0x05 << 5
	foregroundExtended = 0x06 << 5
)

// runSendDiagnostic runs SEND DIAGNOSTIC: a self-test makes everything stable
// and reads the first and the last block. Self-tests in the background are
// refused: there is nothing in one that would take so long.
func runSendDiagnostic(c *Command) {
	switch code := c.CDB[1] & selfTestCode; {
	case len(c.List()) > 0:
		c.sendDiagnosticPage()
	case code == foregroundShort || code == foregroundExtended || code == 0 && c.CDB[1]&selfTestBit != 0:
		c.flushThen(selfTest)
	case code != 0:
		c.Fail(sense.InvalidFieldInCDB(1, 7))
	default:
		c.Good()
	}
}

// sendDiagnosticPage takes the one page that may be sent: it asks for nothing.
func (c *Command) sendDiagnosticPage() {
	list := c.List()
	switch {
	case len(list) < 4:
		c.Fail(sense.ParameterListLengthError)
	case list[0] != diagnosticSupportedPages || binary.BigEndian.Uint16(list[2:]) != 0:
		c.Fail(sense.InvalidFieldInList(0, sense.NoBit))
	default:
		c.Good()
	}
}

// selfTest reads the ends of the medium.
func selfTest(c *Command) {
	c.close()
	lu := c.Nexus.LU
	last := lu.state.Load().Blocks - 1
	c.work.at, c.work.left = 0, 2
	c.lba = last
	if c.list == nil {
		c.fetch(0, uint32(lu.config.BlockSize), func(c *Command) { c.run(selfTestStep) })
		return
	}
	c.run(selfTestStep)
}

func selfTestStep(c *Command) {
	s, lu := c.carrier(), c.Nexus.LU
	for s.state != running {
		if s.state == done && s.op.Err != nil {
			lu.complain(s.op.Kind, c.work.at, s.op.Err)
			c.Fail(sense.SelfTestFailed)
			return
		}
		if c.work.left == 0 {
			c.Good()
			return
		}
		c.work.left--
		if c.work.left == 0 {
			c.work.at = c.lba
		}
		s.op.Off, s.op.Len, s.op.Data = lu.byteOff(c.work.at), int64(lu.config.BlockSize), c.workspace()[:lu.config.BlockSize]
		s.launch(backstore.Read)
	}
}

func runReadBuffer(c *Command) {
	data, s := c.Nexus.buffers.read(c.CDB[1]&0x1f, c.CDB[2], bufferField(c.CDB[3:]))
	c.answer(data, bufferField(c.CDB[6:]), s)
}

func runWriteBuffer(c *Command) {
	if s := c.Nexus.buffers.write(c.CDB[1]&0x1f, c.CDB[2], bufferField(c.CDB[3:]), c.List()); s != nil {
		c.Fail(s)
		return
	}
	c.Good()
}
