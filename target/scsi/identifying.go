package scsi

import (
	"bytes"
	"encoding/binary"

	"lunar/target/scsi/sense"
)

// IDENTIFYING INFORMATION TYPE, bits 7 to 1 of byte 10, and the most bytes of
// each.
const (
	identifyingDevice    = 0x00
	identifyingText      = 0x02
	identifyingSupported = 0x7f

	maxIdentifyingDevice = 512
	maxIdentifyingText   = 256
)

// field returns the information of a type, and the most bytes that it may have.
func (i *Identifying) field(kind byte) (field *[]byte, most int) {
	switch kind {
	case identifyingDevice:
		return &i.Device, maxIdentifyingDevice
	case identifyingText:
		return &i.Text, maxIdentifyingText
	}
	return nil, 0
}

// runReportIdentifying runs REPORT IDENTIFYING INFORMATION (SPC-4 clause 6.32).
func runReportIdentifying(c *Command) {
	kind, be := c.CDB[10]>>1, binary.BigEndian
	data := make([]byte, 4)
	if kind == identifyingSupported {
		for _, k := range []byte{identifyingDevice, identifyingText} {
			_, most := new(Identifying).field(k)
			data = be.AppendUint16(append(data, k<<1, 0), uint16(most))
		}
	} else {
		info := *c.Nexus.LU.identifying.Load()
		field, _ := info.field(kind)
		if field == nil {
			c.Fail(sense.InvalidFieldInCDB(10, 7))
			return
		}
		data = append(data, *field...)
	}
	be.PutUint16(data[2:], uint16(len(data)-4))
	c.SendParameter(data, allocationAt6(&c.CDB))
}

// runSetIdentifying runs SET IDENTIFYING INFORMATION (SPC-4 clause 6.44). A list
// of no bytes takes the information away.
func runSetIdentifying(c *Command) {
	lu, kind, list := c.Nexus.LU, c.CDB[10]>>1, bytes.Clone(c.List())
	_, most := new(Identifying).field(kind)
	switch {
	case lu.state.Load().ReadOnly:
		c.Fail(sense.WriteProtected)
	case most == 0:
		c.Fail(sense.InvalidFieldInCDB(10, 7))
	case int(c.Length) > most:
		c.Fail(sense.InvalidFieldInCDB(6, sense.NoBit))
	case len(list) < int(c.Length):
		c.Fail(sense.ParameterListLengthError)
	case kind == identifyingText && len(list) > 0 && list[len(list)-1] != 0:
		c.Fail(sense.InvalidFieldInList(len(list)-1, sense.NoBit))
	default:
		c.register(func() outcome { return lu.identify(c.Nexus, kind, list) })
	}
}

// identify is the registrar's part.
func (lu *LogicalUnit) identify(by *Nexus, kind byte, info []byte) outcome {
	next := *lu.identifying.Load()
	field, _ := next.field(kind)
	if bytes.Equal(*field, info) {
		return (*Command).Good
	}
	*field = info
	var own func() error
	if save := lu.config.SaveIdentifying; save != nil {
		own = func() error { return save(next) }
	}
	err := lu.lasting(own, func(h *Heritage) { h.Identifying = next }, func() {
		lu.identifying.Store(&next)
		lu.attention(sense.ASCDeviceIdentifierChanged, by)
	})
	if err != nil {
		return lu.unsaved("identifying information cannot be saved: it stays as it was", err)
	}
	return (*Command).Good
}
