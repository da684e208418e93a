package scsi

// spcTable holds the commands that speak of the logical unit rather than of
// its blocks: SPC-4's, and SBC-3's START STOP UNIT and READ CAPACITY. Usage
// leaves out the bits that are obsolete or say what the unit does not do
// (NACA of the CONTROL byte, SP of MODE SELECT is looked at to be refused with
// a sense of its own).
var spcTable = []Row{
	{
		Name: "TEST UNIT READY", Opcode: 0x00, ServiceAction: -1, Length: 6, Exempt: true,
		Conflict: ConflictNever,
		Usage:    CDB{0x00},
		Run:      runTestUnitReady,
	},
	{
		Name: "REQUEST SENSE", Opcode: 0x03, ServiceAction: -1, Length: 6, Exempt: true,
		Conflict: ConflictNothing, Reach: ReachAlways,
		Flags: IgnoreAttention | NoLU | IgnoreStopped,
		Usage: CDB{0x03, 0x01, 0, 0, 0xff},
		Run:   runRequestSense,
	},
	{
		Name: "INQUIRY", Opcode: 0x12, ServiceAction: -1, Length: 6, Exempt: true,
		Conflict: ConflictNothing, Reach: ReachAlways,
		Flags: IgnoreAttention | NoLU | IgnoreStopped,
		Usage: CDB{0x12, 0x01, 0xff, 0xff, 0xff},
		Run:   runInquiry,
	},
	{
		Name: "MODE SELECT(6)", Opcode: 0x15, ServiceAction: -1, Length: 6, Exempt: true,
		Reach: ReachStandby,
		Flags: IgnoreStopped | ParameterList,
		Usage: CDB{0x15, 0x11, 0, 0, 0xff},
		List:  func(cdb *CDB) uint32 { return uint32(cdb[4]) },
		Run:   runModeSelect6,
	},
	{
		Name: "MODE SENSE(6)", Opcode: 0x1a, ServiceAction: -1, Length: 6, Exempt: true,
		Conflict: ConflictExclusive, Reach: ReachStandby,
		Flags: IgnoreStopped,
		Usage: CDB{0x1a, 0x08, 0xff, 0xff, 0xff},
		Run:   runModeSense6,
	},
	{
		Name: "START STOP UNIT", Opcode: 0x1b, ServiceAction: -1, Length: 6, Exempt: true,
		Conflict: ConflictNever, // but for a stop: runStartStopUnit
		Flags:    IgnoreStopped,
		Usage:    CDB{0x1b, 0x01, 0, 0, 0x05},
		Run:      runStartStopUnit,
	},
	{
		Name: "READ CAPACITY(10)", Opcode: 0x25, ServiceAction: -1, Length: 10, Exempt: true,
		Conflict: ConflictNever,
		Flags:    IgnoreStopped,
		Usage:    CDB{0x25, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x01},
		Run:      runReadCapacity10,
	},
	{
		Name: "MODE SELECT(10)", Opcode: 0x55, ServiceAction: -1, Length: 10, Exempt: true,
		Reach: ReachStandby,
		Flags: IgnoreStopped | ParameterList,
		Usage: CDB{0x55, 0x11, 0, 0, 0, 0, 0, 0xff, 0xff},
		List:  func(cdb *CDB) uint32 { return uint32(cdb[7])<<8 | uint32(cdb[8]) },
		Run:   runModeSelect10,
	},
	{
		Name: "MODE SENSE(10)", Opcode: 0x5a, ServiceAction: -1, Length: 10, Exempt: true,
		Conflict: ConflictExclusive, Reach: ReachStandby,
		Flags: IgnoreStopped,
		Usage: CDB{0x5a, 0x18, 0xff, 0xff, 0, 0, 0, 0xff, 0xff},
		Run:   runModeSense10,
	},
	{
		Name: "READ CAPACITY(16)", Opcode: 0x9e, ServiceAction: 0x10, Length: 16, Exempt: true,
		Conflict: ConflictNever,
		Flags:    IgnoreStopped,
		Usage:    CDB{0x9e, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		Run:      runReadCapacity16,
	},
	{
		Name: "REPORT LUNS", Opcode: 0xa0, ServiceAction: -1, Length: 12, Exempt: true,
		Conflict: ConflictNothing, Reach: ReachAlways,
		Flags: IgnoreAttention | NoLU | IgnoreStopped,
		Usage: CDB{0xa0, 0, 0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		Run:   runReportLUNs,
	},
	{
		Name: "REPORT SUPPORTED OPERATION CODES", Opcode: 0xa3, ServiceAction: 0x0c, Length: 12, Exempt: true,
		Conflict: ConflictExclusive, Reach: ReachStandby,
		Flags: IgnoreStopped,
		Usage: CDB{0xa3, 0x0c, 0x87, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		Run:   runReportSupportedOperationCodes,
	},
	{
		Name: "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS", Opcode: 0xa3, ServiceAction: 0x0d, Length: 12, Exempt: true,
		Conflict: ConflictExclusive, Reach: ReachStandby,
		Flags: IgnoreStopped,
		Usage: CDB{0xa3, 0x0d, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		Run:   runReportSupportedTaskManagementFunctions,
	},
}

// answer ends the command with data, cut to the allocation length, or with
// sense if it is set.
func (c *Command) answer(data []byte, allocation uint32, sense *Sense) {
	if sense != nil {
		c.Fail(sense)
		return
	}
	c.SendParameter(data, allocation)
}
