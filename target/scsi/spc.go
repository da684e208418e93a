package scsi

func init() { enlist(spcTable) }

// spcTable holds the commands that speak of the logical unit rather than of
// its blocks: SPC-4's, and SBC-3's START STOP UNIT and READ CAPACITY. Usage
// leaves out the bits that are obsolete or say what the unit does not do
// (SP of MODE SELECT is looked at to be refused with a sense of its own), and NACA
// of the CONTROL byte, which all commands have.
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
		Flags: IgnoreAttention | NoLU | IgnoreStopped | DuringSanitize,
		Usage: CDB{0x03, 0x01, 0, 0, 0xff},
		Run:   runRequestSense,
	},
	{
		Name: "INQUIRY", Opcode: 0x12, ServiceAction: -1, Length: 6, Exempt: true,
		Conflict: ConflictNothing, Reach: ReachAlways,
		Flags: IgnoreAttention | NoLU | IgnoreStopped | DuringSanitize,
		Usage: CDB{0x12, 0x01, 0xff, 0xff, 0xff},
		Run:   runInquiry,
	},
	{
		Name: "MODE SELECT(6)", Opcode: 0x15, ServiceAction: -1, Length: 6, Exempt: true,
		Reach: ReachStandby,
		Flags: IgnoreStopped | ParameterList | NeedsWriter | NeedsServer,
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
		Flags:    IgnoreStopped | NeedsWriter,
		Usage:    CDB{0x1b, 0x01, 0, 0, 0xf7},
		Run:      runStartStopUnit,
	},
	{
		Name: "RECEIVE DIAGNOSTIC RESULTS", Opcode: 0x1c, ServiceAction: -1, Length: 6, Exempt: true,
		Reach: ReachStandby,
		Flags: IgnoreStopped,
		Usage: CDB{0x1c, 0x01, 0xff, 0xff, 0xff},
		Run:   runReceiveDiagnostic,
	},
	{
		Name: "SEND DIAGNOSTIC", Opcode: 0x1d, ServiceAction: -1, Length: 6,
		Flags: ParameterList,
		Usage: CDB{0x1d, 0xf4, 0, 0xff, 0xff},
		List:  func(cdb *CDB) uint32 { return uint32(cdb[3])<<8 | uint32(cdb[4]) },
		Run:   runSendDiagnostic,
	},
	{
		Name: "PREVENT ALLOW MEDIUM REMOVAL", Opcode: 0x1e, ServiceAction: -1, Length: 6, Exempt: true,
		Conflict: ConflictNever, // but to prevent it: runPreventAllow
		Flags:    IgnoreStopped | NeedsRemovable | NeedsWriter,
		Usage:    CDB{0x1e, 0, 0, 0, 0x01},
		Run:      runPreventAllow,
	},
	{
		Name: "READ CAPACITY(10)", Opcode: 0x25, ServiceAction: -1, Length: 10, Exempt: true,
		Conflict: ConflictNever, Reach: ReachStandby, // a host that finds a path in standby has to learn the size
		Flags: IgnoreStopped | NeedsMedium,
		Usage: CDB{0x25, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0x01},
		Run:   runReadCapacity10,
	},
	{
		Name: "WRITE BUFFER", Opcode: 0x3b, ServiceAction: -1, Length: 10, Exempt: true,
		Reach: ReachStandby,
		Flags: IgnoreStopped | ParameterList,
		Usage: CDB{0x3b, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		List:  func(cdb *CDB) uint32 { return bufferField(cdb[6:]) },
		Run:   runWriteBuffer,
	},
	{
		Name: "READ BUFFER(10)", Opcode: 0x3c, ServiceAction: -1, Length: 10, Exempt: true,
		Conflict: ConflictExclusive, Reach: ReachStandby,
		Flags: IgnoreStopped,
		Usage: CDB{0x3c, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		Run:   runReadBuffer,
	},
	{
		Name: "LOG SENSE", Opcode: 0x4d, ServiceAction: -1, Length: 10, Exempt: true,
		Conflict: ConflictNever, Reach: ReachStandby,
		Flags: IgnoreStopped | DuringSanitize,
		Usage: CDB{0x4d, 0, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0xff},
		Run:   runLogSense,
	},
	{
		Name: "MODE SELECT(10)", Opcode: 0x55, ServiceAction: -1, Length: 10, Exempt: true,
		Reach: ReachStandby,
		Flags: IgnoreStopped | ParameterList | NeedsWriter | NeedsServer,
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
		Conflict: ConflictNever, Reach: ReachStandby, // a host that finds a path in standby has to learn the size
		Flags: IgnoreStopped | NeedsMedium,
		Usage: CDB{0x9e, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
		Run:   runReadCapacity16,
	},
	{
		Name: "REPORT LUNS", Opcode: 0xa0, ServiceAction: -1, Length: 12, Exempt: true,
		Conflict: ConflictNothing, Reach: ReachAlways,
		Flags: IgnoreAttention | NoLU | IgnoreStopped | DuringSanitize,
		Usage: CDB{0xa0, 0, 0xff, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		Run:   runReportLUNs,
	},
	{
		Name: "REPORT IDENTIFYING INFORMATION", Opcode: 0xa3, ServiceAction: 0x05, Length: 12, Exempt: true,
		Conflict: ConflictNever, Reach: ReachStandby,
		Flags: IgnoreStopped | NeedsServer,
		Usage: CDB{0xa3, 0x05, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xfe},
		Run:   runReportIdentifying,
	},
	{
		Name: "REPORT SUPPORTED OPERATION CODES", Opcode: 0xa3, ServiceAction: 0x0c, Length: 12, Exempt: true,
		Conflict: ConflictExclusive, Reach: ReachStandby,
		Flags: IgnoreStopped | DuringSanitize,
		Usage: CDB{0xa3, 0x0c, 0x87, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		Run:   runReportSupportedOperationCodes,
	},
	{
		Name: "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS", Opcode: 0xa3, ServiceAction: 0x0d, Length: 12, Exempt: true,
		Conflict: ConflictExclusive, Reach: ReachStandby,
		Flags: IgnoreStopped | DuringSanitize,
		Usage: CDB{0xa3, 0x0d, 0x80, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		Run:   runReportSupportedTaskManagementFunctions,
	},
	{
		Name: "REPORT TIMESTAMP", Opcode: 0xa3, ServiceAction: 0x0f, Length: 12, Exempt: true,
		Conflict: ConflictNever,
		Flags:    IgnoreStopped,
		Usage:    CDB{0xa3, 0x0f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		Run:      runReportTimestamp,
	},
	{
		Name: "SET IDENTIFYING INFORMATION", Opcode: 0xa4, ServiceAction: 0x06, Length: 12, Exempt: true,
		Flags: IgnoreStopped | ParameterList | NeedsWriter,
		Usage: CDB{0xa4, 0x06, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xfe},
		List:  func(cdb *CDB) uint32 { return min(allocationAt6(cdb), maxIdentifyingDevice+1) },
		Run:   runSetIdentifying,
	},
	{
		Name: "SET TIMESTAMP", Opcode: 0xa4, ServiceAction: 0x0f, Length: 12, Exempt: true,
		Flags: IgnoreStopped | ParameterList | NeedsWriter,
		Usage: CDB{0xa4, 0x0f, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
		List:  allocationAt6,
		Run:   runSetTimestamp,
	},
}
