package scsi

import "encoding/binary"

// readDefectData runs READ DEFECT DATA (SBC-3 clauses 5.13 and 5.14). The
// medium has neither a primary nor a grown defect list: what a backing store
// cannot read or write it tells with the command that is concerned. The format
// that is asked for is therefore that of the empty answer.
func readDefectData(c *Command) {
	twelve := c.CDB[0]>>5 == group12
	asked := c.CDB[2]
	if twelve {
		asked = c.CDB[1]
	}
	header := 4
	if twelve {
		header = 8
	}
	data := make([]byte, header)
	data[1] = asked & 0x1f // PLISTV, GLISTV and DEFECT LIST FORMAT as asked for
	if twelve {
		c.SendParameter(data, binary.BigEndian.Uint32(c.CDB[6:]))
		return
	}
	c.SendParameter(data, uint32(binary.BigEndian.Uint16(c.CDB[7:])))
}
