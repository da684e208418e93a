package scsi

import (
	"encoding/binary"

	"lunar/target/scsi/reservation"
)

// Fields of REPORT CAPABILITIES (SPC-4 clause 6.15.4).
const (
	capCompatible  = 0x10 // byte 2: CRH, RESERVE and RELEASE heed registrations
	capSpecify     = 0x08 // byte 2: SIP_C, SPEC_I_PT
	capAllPorts    = 0x04 // byte 2: ATP_C, ALL_TG_PT
	capPersist     = 0x01 // byte 2: PTPL_C, APTPL
	capTypes       = 0x80 // byte 3: TMV, the types are told
	capAllowed     = 0x30 // byte 3: ALLOW COMMANDS 011b: those of SPC-4 table 65
	capPersistent  = 0x01 // byte 3: PTPL_A, APTPL was given last
	capTypeMask    = 0xea // byte 4: WR_EX_AR, EX_AC_RO, WR_EX_RO, EX_AC, WR_EX
	capTypeMaskTwo = 0x01 // byte 5: EX_AC_AR
)

// persistentReserveIn returns the row's Run for data of this form.
func persistentReserveIn(data func(*LogicalUnit, *reservation.State) []byte) func(*Command) {
	return func(c *Command) {
		lu := c.Nexus.LU
		c.SendParameter(data(lu, lu.reservations.Load()), uint32(binary.BigEndian.Uint16(c.CDB[7:])))
	}
}

// generationHeader is what all but REPORT CAPABILITIES begin with: PRGENERATION
// and ADDITIONAL LENGTH, which lengthen fills in.
func generationHeader(s *reservation.State) []byte {
	return append(binary.BigEndian.AppendUint32(nil, s.Generation()), 0, 0, 0, 0)
}

func lengthen(data []byte) []byte {
	binary.BigEndian.PutUint32(data[4:], uint32(len(data)-8))
	return data
}

// readKeys is the parameter data of READ KEYS (SPC-4 clause 6.15.2).
func readKeys(_ *LogicalUnit, s *reservation.State) []byte {
	data := generationHeader(s)
	for _, r := range s.Registrations() {
		data = binary.BigEndian.AppendUint64(data, r.Key)
	}
	return lengthen(data)
}

// readReservation is that of READ RESERVATION (SPC-4 clause 6.15.3): key,
// obsolete bytes, scope (the logical unit) and type.
func readReservation(_ *LogicalUnit, s *reservation.State) []byte {
	data := generationHeader(s)
	if s.Type() != 0 {
		data = binary.BigEndian.AppendUint64(data, s.ReservationKey())
		data = append(data, 0, 0, 0, 0, 0, byte(s.Type()), 0, 0)
	}
	return lengthen(data)
}

// reportCapabilities is that of REPORT CAPABILITIES (SPC-4 clause 6.15.4).
func reportCapabilities(lu *LogicalUnit, s *reservation.State) []byte {
	data := []byte{0, 8, capCompatible | capSpecify | capAllPorts, capTypes | capAllowed, capTypeMask, capTypeMaskTwo, 0, 0}
	if lu.mayPersist() {
		data[2] |= capPersist
	}
	if s.Persist() {
		data[3] |= capPersistent
	}
	return data
}

// readFullStatus is that of READ FULL STATUS (SPC-4 clause 6.15.5): a descriptor
// for each registration, whose ALL_TG_PT is zero, as one for all target ports
// becomes one for each.
func readFullStatus(_ *LogicalUnit, s *reservation.State) []byte {
	data := generationHeader(s)
	for _, r := range s.Registrations() {
		data = binary.BigEndian.AppendUint64(data, r.Key)
		holder := []byte{0, 0} // R_HOLDER; scope and type
		if s.Holds(r.Nexus) {
			holder = []byte{0x01, byte(s.Type())}
		}
		data = append(data, 0, 0, 0, 0, holder[0], holder[1], 0, 0, 0, 0)
		data = binary.BigEndian.AppendUint16(data, r.Port)
		id := reservation.AppendTransportID(nil, r.Initiator)
		data = binary.BigEndian.AppendUint32(data, uint32(len(id)))
		data = append(data, id...)
	}
	return lengthen(data)
}
