package sense

// Key is a sense key (SPC-4 clause 4.5.6).
type Key uint8

// The sense keys.
const (
	NoSense        Key = 0x0
	RecoveredError Key = 0x1
	NotReady       Key = 0x2
	MediumError    Key = 0x3
	HardwareError  Key = 0x4
	IllegalRequest Key = 0x5
	UnitAttention  Key = 0x6
	DataProtect    Key = 0x7
	BlankCheck     Key = 0x8
	CopyAborted    Key = 0xa
	AbortedCommand Key = 0xb
	VolumeOverflow Key = 0xd
	Miscompare     Key = 0xe
	Completed      Key = 0xf
)

// ASC is an additional sense code and its qualifier: code<<8 | qualifier
// (SPC-4 annex D).
type ASC uint16

// Data says why a command ended with CHECK CONDITION. Values are immutable
// once handed over: the fixed ones are shared by all commands.
type Data struct {
	Key      Key
	ASC      ASC
	Deferred bool // of an earlier command that was already acknowledged (response code 71h/73h)

	InfoValid bool
	Info      uint64 // INFORMATION: usually an LBA

	FieldValid bool // the sense-key specific field pointer below is set
	FieldInCDB bool // it points into the CDB, else into the parameter list
	Field      uint16
	BitValid   bool
	Bit        uint8

	Progress      uint16 // of a background operation, in 1/65536
	ProgressValid bool
}
