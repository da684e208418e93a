package sense

// The sense data without parameters: shared by all commands, so that ending a
// command with one of them allocates nothing.
var (
	// NoAdditionalSense: there is nothing to report: 00/00.
	NoAdditionalSense = &Data{Key: NoSense, ASC: ASCNoAdditionalSense}

	// InitializingCommandRequired: START STOP UNIT stopped the unit: 04/02.
	InitializingCommandRequired = &Data{Key: NotReady, ASC: ASCInitializingCommandRequired}
	// ManualInterventionRequired: the backing store has vanished: 04/03.
	ManualInterventionRequired = &Data{Key: NotReady, ASC: ASCManualInterventionRequired}
	// InTransition, InStandby, InUnavailable and InOffline: the asymmetric
	// access state of the target port: 04/0A, 04/0B, 04/0C, 04/12.
	InTransition  = &Data{Key: NotReady, ASC: ASCInTransition}
	InStandby     = &Data{Key: NotReady, ASC: ASCInStandby}
	InUnavailable = &Data{Key: NotReady, ASC: ASCInUnavailable}
	InOffline     = &Data{Key: NotReady, ASC: ASCInOffline}
	// SanitizeInProgress: nothing else may be done with the medium: 04/1B.
	SanitizeInProgress = &Data{Key: NotReady, ASC: ASCSanitizeInProgress}
	// SanitizeFailed: the medium has to be sanitized again, or EXIT FAILURE MODE: 31/03.
	SanitizeFailed = &Data{Key: MediumError, ASC: ASCSanitizeFailed}
	// MediumNotPresent: START STOP UNIT ejected it: 3A/00.
	MediumNotPresent = &Data{Key: NotReady, ASC: ASCMediumNotPresent}
	// MediumRemovalPrevented: an initiator prevents the removal: 53/02.
	MediumRemovalPrevented = &Data{Key: IllegalRequest, ASC: ASCMediumRemovalPrevented}
	// CommandSequenceError: nothing was written to the echo buffer: 2C/00.
	CommandSequenceError = &Data{Key: IllegalRequest, ASC: ASCCommandSequenceError}
	// SelfTestFailed: the medium cannot be read or flushed: 3E/03.
	SelfTestFailed = &Data{Key: HardwareError, ASC: ASCSelfTestFailed}
	// InvalidOpcode: INVALID COMMAND OPERATION CODE: 20/00.
	InvalidOpcode = &Data{Key: IllegalRequest, ASC: ASCInvalidOpcode}
	// InvalidFieldInIU: INVALID FIELD IN COMMAND INFORMATION UNIT: the
	// initiator's expected transfer length does not go with the CDB: 0E/03.
	InvalidFieldInIU = &Data{Key: IllegalRequest, ASC: ASCInvalidFieldInIU}
	// LBAOutOfRange: LOGICAL BLOCK ADDRESS OUT OF RANGE: 21/00.
	LBAOutOfRange = &Data{Key: IllegalRequest, ASC: ASCLBAOutOfRange}
	// LUNotSupported: no logical unit has this LUN: 25/00.
	LUNotSupported = &Data{Key: IllegalRequest, ASC: ASCLUNotSupported}
	// ParameterListLengthError: the list ends within a field: 1A/00.
	ParameterListLengthError = &Data{Key: IllegalRequest, ASC: ASCParameterListLengthError}
	// SaveNotSupported: SAVING PARAMETERS NOT SUPPORTED: 39/00.
	SaveNotSupported = &Data{Key: IllegalRequest, ASC: ASCSavingNotSupported}

	// CopyCleared: the copy was ended from outside: 2f/02.
	CopyCleared = &Data{Key: CopyAborted, ASC: ASCCommandsClearedByDevice}
	// CopyInProgress: the initiator has a copy of this list identifier under way: 00/16.
	CopyInProgress = &Data{Key: IllegalRequest, ASC: ASCOperationInProgress}
	// TooManyTargetDescriptors, UnsupportedTargetDescriptor,
	// TooManySegmentDescriptors, UnsupportedSegmentType: of a copy's parameter
	// list: 26/06 to 26/09.
	TooManyTargetDescriptors    = &Data{Key: IllegalRequest, ASC: ASCTooManyTargetDescriptors}
	UnsupportedTargetDescriptor = &Data{Key: IllegalRequest, ASC: ASCUnsupportedTargetDescriptor}
	TooManySegmentDescriptors   = &Data{Key: IllegalRequest, ASC: ASCTooManySegmentDescriptors}
	UnsupportedSegmentType      = &Data{Key: IllegalRequest, ASC: ASCUnsupportedSegmentType}
	// InvalidTokenOperation, UnsupportedTokenType, TokenUnknown, TokenRevoked,
	// TokenExpired, InvalidTokenLength: what is wrong with the token of a WRITE
	// USING TOKEN: 23/00 to 23/0A.
	InvalidTokenOperation = &Data{Key: IllegalRequest, ASC: ASCInvalidTokenOperation}
	UnsupportedTokenType  = &Data{Key: IllegalRequest, ASC: ASCUnsupportedTokenType}
	TokenUnknown          = &Data{Key: IllegalRequest, ASC: ASCTokenUnknown}
	TokenRevoked          = &Data{Key: IllegalRequest, ASC: ASCTokenRevoked}
	TokenExpired          = &Data{Key: IllegalRequest, ASC: ASCTokenExpired}
	InvalidTokenLength    = &Data{Key: IllegalRequest, ASC: ASCInvalidTokenLength}
	// InsufficientResourcesForToken: all tokens of the logical unit are in use: 55/0D.
	InsufficientResourcesForToken = &Data{Key: IllegalRequest, ASC: ASCInsufficientForToken}
	// InvalidRelease: INVALID RELEASE OF PERSISTENT RESERVATION: its type is
	// another: 26/04.
	InvalidRelease = &Data{Key: IllegalRequest, ASC: ASCInvalidRelease}
	// InsufficientRegistrationResources: no more registrations: 55/04.
	InsufficientRegistrationResources = &Data{Key: IllegalRequest, ASC: ASCInsufficientRegistrations}
	// InternalTargetFailure: reservations cannot be saved: 44/00.
	InternalTargetFailure = &Data{Key: HardwareError, ASC: ASCInternalTargetFailure}

	// WriteProtected: the mapping or the store is read-only: 27/00.
	WriteProtected = &Data{Key: DataProtect, ASC: ASCWriteProtected}
	// SoftwareWriteProtected: SWP of the control mode page: 27/02.
	SoftwareWriteProtected = &Data{Key: DataProtect, ASC: ASCSoftwareWriteProtected}
	// SpaceAllocationFailed: the thin provisioned store is full: 27/07.
	SpaceAllocationFailed = &Data{Key: DataProtect, ASC: ASCSpaceAllocationFailed}

	// UnexpectedUnsolicitedData, NotEnoughUnsolicitedData and
	// ProtocolServiceCRCError are those that RFC 7143 section 11.4.7.2
	// demands of an iSCSI target: 0C/0C, 0C/0D, 47/05.
	UnexpectedUnsolicitedData = &Data{Key: AbortedCommand, ASC: ASCUnexpectedUnsolicitedData}
	NotEnoughUnsolicitedData  = &Data{Key: AbortedCommand, ASC: ASCNotEnoughUnsolicitedData}
	ProtocolServiceCRCError   = &Data{Key: AbortedCommand, ASC: ASCProtocolServiceCRCError}
	// DataPhaseError: the data did not come as announced: 4B/00.
	DataPhaseError = &Data{Key: AbortedCommand, ASC: ASCDataPhaseError}
	// InvalidMessageError: the ACA attribute without an ACA condition: 49/00.
	InvalidMessageError = &Data{Key: IllegalRequest, ASC: ASCInvalidMessageError}
	// InsufficientResources: no memory for the command now: 55/03.
	InsufficientResources = &Data{Key: AbortedCommand, ASC: ASCInsufficientResources}
)

// NoBit, in place of a bit number, leaves the field pointer's bit pointer out.
const NoBit = -1

// maxCDB is the most bytes of a CDB that a field pointer points into.
const maxCDB = 32

// cdbFields holds INVALID FIELD IN CDB for every byte and bit of a CDB; the
// last of a row has no bit pointer.
var cdbFields = func() (fields [maxCDB][9]Data) {
	for i := range fields {
		for bit := range 8 {
			fields[i][bit] = fieldSense(ASCInvalidFieldInCDB, true, i, bit)
		}
		fields[i][8] = fieldSense(ASCInvalidFieldInCDB, true, i, NoBit)
	}
	return fields
}()

// InvalidFieldInCDB returns the shared INVALID FIELD IN CDB (24/00) whose
// field pointer names byte field, at most 31, and bit (7, the leftmost bit of
// the field, down to 0), or no bit with NoBit.
func InvalidFieldInCDB(field, bit int) *Data {
	if bit == NoBit {
		bit = 8
	}
	return &cdbFields[field][bit]
}

// InvalidFieldInList returns a new INVALID FIELD IN PARAMETER LIST (26/00)
// whose field pointer names byte field of the Data-Out parameter list and bit
// (7 to 0, or NoBit).
func InvalidFieldInList(field, bit int) *Data {
	s := fieldSense(ASCInvalidFieldInList, false, field, bit)
	return &s
}

func fieldSense(asc ASC, inCDB bool, field, bit int) Data {
	s := Data{
		Key: IllegalRequest, ASC: asc,
		FieldValid: true, FieldInCDB: inCDB, Field: uint16(field),
	}
	if bit != NoBit {
		s.BitValid, s.Bit = true, uint8(bit)
	}
	return s
}

// MiscompareAt returns a new MISCOMPARE DURING VERIFY OPERATION (1D/00) with
// INFORMATION set to offset, that of the first unequal byte in the Data-Out
// buffer (SBC-3, COMPARE AND WRITE).
func MiscompareAt(offset uint64) *Data {
	return &Data{Key: Miscompare, ASC: ASCMiscompareDuringVerify, InfoValid: true, Info: offset}
}
