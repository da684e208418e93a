package scsi

import (
	"time"

	"lunar/target/scsi/sense"
)

// timestampLength is the length of the parameter data of REPORT TIMESTAMP and
// of the parameter list of SET TIMESTAMP (SPC-4 clauses 6.37 and 6.46).
const timestampLength = 12

func runReportTimestamp(c *Command) {
	data := make([]byte, timestampLength)
	ms, origin := c.Nexus.LU.clock.read(time.Now())
	data[1] = timestampLength - 2
	data[2] = origin
	putTimestamp(data[4:10], ms)
	c.SendParameter(data, allocationAt6(&c.CDB))
}

// putTimestamp writes the 48 bits of a timestamp.
func putTimestamp(field []byte, ms uint64) {
	for i := range field {
		field[i] = byte(ms >> (8 * (len(field) - 1 - i)))
	}
}

func runSetTimestamp(c *Command) {
	list := c.List()
	if c.Length == 0 {
		c.Good()
		return
	}
	if len(list) < timestampLength {
		c.Fail(sense.ParameterListLengthError)
		return
	}
	var ms uint64
	for _, b := range list[4:10] {
		ms = ms<<8 | uint64(b)
	}
	c.Nexus.LU.clock.origin.Store(&clockOrigin{at: time.Now(), ms: ms})
	c.Nexus.LU.Attention(sense.ASCTimestampChanged, c.Nexus)
	c.Good()
}
