package scsi

// Status is a SAM-5 status code (clause 5.3.1).
type Status uint8

// The status codes.
const (
	Good                Status = 0x00
	CheckCondition      Status = 0x02
	ConditionMet        Status = 0x04
	Busy                Status = 0x08
	ReservationConflict Status = 0x18
	TaskSetFull         Status = 0x28
	ACAActive           Status = 0x30
	TaskAborted         Status = 0x40
)
