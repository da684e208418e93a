package scsi

import (
	"encoding/binary"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

// Log page codes (SPC-4 clause 7.3, SBC-3 clause 6.4).
const (
	logSupportedPages = 0x00
	logProvisioning   = 0x0c
	logTemperature    = 0x0d
	logStartStop      = 0x0e
	logExceptions     = 0x2f
)

// Bits of a log parameter's control byte.
const (
	logFormatList = 0x03 // FORMAT AND LINKING: binary, no counter
)

// logPages are the log pages besides 00h, in ascending order. Body returns a
// page's parameters.
var logPages = []struct {
	Code byte
	Body func(*LogicalUnit) []byte
	Has  func(*LogicalUnit) bool // nil: every logical unit
}{
	{logProvisioning, provisioningLog, (*LogicalUnit).knowsSpace},
	{logTemperature, temperatureLog, func(lu *LogicalUnit) bool { return lu.traits.Load().warm }},
	{logStartStop, startStopLog, nil},
	{logExceptions, exceptionsLog, nil},
}

// PC of LOG SENSE: there are no thresholds, and cumulative values are not kept
// over restarts.
const logCumulative = 0x01 << 6

// runLogSense runs LOG SENSE (SPC-4 clause 6.8).
func runLogSense(c *Command) {
	lu, code := c.Nexus.LU, c.CDB[2]&0x3f
	if c.CDB[2]&0xc0 != logCumulative {
		c.Fail(sense.InvalidFieldInCDB(2, 7))
		return
	}
	if code == logTemperature && lu.traits.Load().warm && c.CDB[3] == 0 { // a disk takes its time
		c.register(func() outcome {
			body, _ := lu.logPage(code)
			return func(c *Command) { c.reportLog(code, body) }
		})
		return
	}
	body, ok := lu.logPage(code)
	if !ok || c.CDB[3] != 0 {
		c.Fail(sense.InvalidFieldInCDB(2, 5))
		return
	}
	c.reportLog(code, body)
}

// reportLog answers with a page's parameters, from PARAMETER POINTER on.
func (c *Command) reportLog(code byte, body []byte) {
	body, ok := fromParameter(code, body, binary.BigEndian.Uint16(c.CDB[5:]))
	if !ok {
		c.Fail(sense.InvalidFieldInCDB(5, sense.NoBit))
		return
	}
	data := append([]byte{code, 0, 0, 0}, body...)
	binary.BigEndian.PutUint16(data[2:], uint16(len(body)))
	c.SendParameter(data, uint32(binary.BigEndian.Uint16(c.CDB[7:])))
}

// logPage returns the page without its header.
func (lu *LogicalUnit) logPage(code byte) ([]byte, bool) {
	if code == logSupportedPages {
		list := []byte{logSupportedPages}
		for _, page := range logPages {
			if page.Has == nil || page.Has(lu) {
				list = append(list, page.Code)
			}
		}
		return list, true
	}
	for _, page := range logPages {
		if page.Code == code && (page.Has == nil || page.Has(lu)) {
			return page.Body(lu), true
		}
	}
	return nil, false
}

// fromParameter leaves out the parameters before PARAMETER POINTER, which must
// not lie behind the last one.
func fromParameter(code byte, body []byte, pointer uint16) ([]byte, bool) {
	if pointer == 0 || code == logSupportedPages {
		return body, pointer == 0
	}
	for len(body) > 0 {
		if binary.BigEndian.Uint16(body) >= pointer {
			return body, true
		}
		body = body[4+int(body[3]):]
	}
	return nil, false
}

func logParameter(dst []byte, code uint16, value ...byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, code)
	dst = append(dst, logFormatList, byte(len(value)))
	return append(dst, value...)
}

// startStopLog is page 0Eh: how often the unit was started since the server
// began. There is no date of manufacture, and no limit to be told.
func startStopLog(lu *LogicalUnit) []byte {
	return logParameter(nil, 0x0004, binary.BigEndian.AppendUint32(nil, lu.starts.Load())...)
}

// unknownTemperature says that there is none to be told, or none to compare with.
const unknownTemperature = 0xff

// temperatureLog is page 0Dh: the temperature of the disk that the volume is on, and
// no reference temperature. It may block.
func temperatureLog(lu *LogicalUnit) []byte {
	now := byte(unknownTemperature)
	if celsius, err := backstore.TemperatureOf(lu.store); err == nil {
		now = byte(max(0, min(celsius, unknownTemperature-1))) // 0: that or less
	}
	page := logParameter(nil, 0x0000, 0, now)
	return logParameter(page, 0x0001, 0, unknownTemperature)
}

// exceptionsLog is page 2Fh: no informational exception, and no temperature.
func exceptionsLog(*LogicalUnit) []byte {
	return logParameter(nil, 0x0000, 0, 0, unknownTemperature, 0)
}

// provisioningLog is log page 0Ch (SBC-3 clause 6.4.4): the threshold sets that
// are available and used, the former shared with whoever uses the same space.
func provisioningLog(lu *LogicalUnit) []byte {
	space, err := backstore.SpaceOf(lu.store)
	if err != nil {
		return nil
	}
	set := uint(lu.thresholdExponent()) + lu.blockShift
	shared := []byte{0x02, 0, 0, 0} // SCOPE: not dedicated to the logical unit
	dedicated := []byte{0x01, 0, 0, 0}
	available := binary.BigEndian.AppendUint32(nil, uint32(min(space.Available>>set, 0xffffffff)))
	used := binary.BigEndian.AppendUint32(nil, uint32(min((space.Used+1<<set-1)>>set, 0xffffffff)))
	page := logParameter(nil, 0x0001, append(available, shared...)...)
	return logParameter(page, 0x0002, append(used, dedicated...)...)
}
