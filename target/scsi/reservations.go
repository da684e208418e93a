package scsi

import (
	"encoding/binary"

	"lunar/target/scsi/reservation"
)

func init() { enlist(reservationTable) }

// reservationTable holds the commands about who may use the logical unit, and
// by which way: reservations (SPC-4 clauses 6.15 and 6.16, SPC-2) and target port
// groups. Usage leaves out what SPC-2's RESERVE could do for others: third
// parties, extents.
var reservationTable = []Row{
	{
		Name: "RESERVE(6)", Opcode: 0x16, ServiceAction: -1, Length: 6, Exempt: true,
		Conflict: ConflictNever, Flags: IgnoreStopped | NeedsWriter,
		Usage: CDB{0x16},
		Run:   reserve,
	},
	{
		Name: "RELEASE(6)", Opcode: 0x17, ServiceAction: -1, Length: 6, Exempt: true,
		Conflict: ConflictNothing, Flags: IgnoreStopped,
		Usage: CDB{0x17},
		Run:   release,
	},
	{
		Name: "RESERVE(10)", Opcode: 0x56, ServiceAction: -1, Length: 10, Exempt: true,
		Conflict: ConflictNever, Flags: IgnoreStopped | NeedsWriter,
		Usage: CDB{0x56},
		Run:   reserve,
	},
	{
		Name: "RELEASE(10)", Opcode: 0x57, ServiceAction: -1, Length: 10, Exempt: true,
		Conflict: ConflictNothing, Flags: IgnoreStopped,
		Usage: CDB{0x57},
		Run:   release,
	},
	persistentReserveInRow("READ KEYS", 0, readKeys),
	persistentReserveInRow("READ RESERVATION", 1, readReservation),
	persistentReserveInRow("REPORT CAPABILITIES", 2, reportCapabilities),
	persistentReserveInRow("READ FULL STATUS", 3, readFullStatus),
	persistentReserveOutRow("REGISTER", reservation.Register),
	persistentReserveOutRow("RESERVE", reservation.Reserve),
	persistentReserveOutRow("RELEASE", reservation.Release),
	persistentReserveOutRow("CLEAR", reservation.Clear),
	persistentReserveOutRow("PREEMPT", reservation.Preempt),
	persistentReserveOutRow("PREEMPT AND ABORT", reservation.PreemptAndAbort),
	persistentReserveOutRow("REGISTER AND IGNORE EXISTING KEY", reservation.RegisterAndIgnoreExistingKey),
	persistentReserveOutRow("REGISTER AND MOVE", reservation.RegisterAndMove),
	{
		Name: "REPORT TARGET PORT GROUPS", Opcode: 0xa3, ServiceAction: 0x0a, Length: 12, Exempt: true,
		Conflict: ConflictNever, Reach: ReachDecided, Flags: IgnoreStopped,
		Usage: CDB{0xa3, 0xea, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		Run:   reportTargetPortGroups,
	},
	{
		Name: "SET TARGET PORT GROUPS", Opcode: 0xa4, ServiceAction: 0x0a, Length: 12, Exempt: true,
		Reach: ReachAlways, Flags: IgnoreStopped | ParameterList | NeedsExplicitAccess | NeedsWriter,
		Usage: CDB{0xa4, 0x0a, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		List:  func(cdb *CDB) uint32 { return binary.BigEndian.Uint32(cdb[6:]) },
		Run:   setTargetPortGroups,
	},
}

func persistentReserveInRow(name string, action int, data func(*LogicalUnit, *reservation.State) []byte) Row {
	return Row{
		Name: "PERSISTENT RESERVE IN, " + name, Opcode: 0x5e, ServiceAction: action, Length: 10, Exempt: true,
		Conflict: ConflictLegacy, Reach: ReachStandby, Flags: IgnoreStopped | NeedsServer,
		Usage: CDB{0x5e, byte(action), 0, 0, 0, 0, 0, 0xff, 0xff},
		Run:   persistentReserveIn(data),
	}
}

// persistentReserveOutRow: SCOPE and TYPE are looked at by those that make a
// reservation or end one, and ignored by the others.
func persistentReserveOutRow(name string, action reservation.Action) Row {
	return Row{
		Name: "PERSISTENT RESERVE OUT, " + name, Opcode: 0x5f, ServiceAction: int(action), Length: 10, Exempt: true,
		Conflict: ConflictLegacy, Reach: ReachStandby, Flags: IgnoreStopped | ParameterList | NeedsWriter | NeedsServer,
		Usage: CDB{0x5f, byte(action), 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff},
		List:  reservationList,
		Run:   persistentReserveOut,
	}
}
