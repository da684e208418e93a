package scsi

// SenseKey is a sense key (SPC-4 clause 4.5.6).
type SenseKey uint8

// The sense keys.
const (
	NoSense        SenseKey = 0x0
	RecoveredError SenseKey = 0x1
	NotReady       SenseKey = 0x2
	MediumError    SenseKey = 0x3
	HardwareError  SenseKey = 0x4
	IllegalRequest SenseKey = 0x5
	UnitAttention  SenseKey = 0x6
	DataProtect    SenseKey = 0x7
	BlankCheck     SenseKey = 0x8
	CopyAborted    SenseKey = 0xa
	AbortedCommand SenseKey = 0xb
	VolumeOverflow SenseKey = 0xd
	Miscompare     SenseKey = 0xe
	Completed      SenseKey = 0xf
)

// ASC is an additional sense code and its qualifier: code<<8 | qualifier
// (SPC-4 annex D).
type ASC uint16

// Sense says why a command ended with CHECK CONDITION. Values are immutable
// once handed over: the fixed ones are shared by all commands.
type Sense struct {
	Key      SenseKey
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
