package sense

// The additional sense codes in use, named after SPC-4 annex D's words.
const (
	ASCNoAdditionalSense            ASC = 0x0000 // NO ADDITIONAL SENSE INFORMATION
	ASCOperationInProgress          ASC = 0x0016 // OPERATION IN PROGRESS
	ASCInitializingCommandRequired  ASC = 0x0402 // LOGICAL UNIT NOT READY, INITIALIZING COMMAND REQUIRED
	ASCManualInterventionRequired   ASC = 0x0403 // LOGICAL UNIT NOT READY, MANUAL INTERVENTION REQUIRED
	ASCInTransition                 ASC = 0x040a // LOGICAL UNIT NOT ACCESSIBLE, ASYMMETRIC ACCESS STATE TRANSITION
	ASCInStandby                    ASC = 0x040b // LOGICAL UNIT NOT ACCESSIBLE, TARGET PORT IN STANDBY STATE
	ASCInUnavailable                ASC = 0x040c // LOGICAL UNIT NOT ACCESSIBLE, TARGET PORT IN UNAVAILABLE STATE
	ASCInOffline                    ASC = 0x0412 // LOGICAL UNIT NOT READY, OFFLINE
	ASCSanitizeInProgress           ASC = 0x041b // LOGICAL UNIT NOT READY, SANITIZE IN PROGRESS
	ASCUnreachableCopyTarget        ASC = 0x0804 // UNREACHABLE COPY TARGET
	ASCWriteError                   ASC = 0x0c00 // WRITE ERROR
	ASCUnexpectedUnsolicitedData    ASC = 0x0c0c // WRITE ERROR - UNEXPECTED UNSOLICITED DATA
	ASCNotEnoughUnsolicitedData     ASC = 0x0c0d // WRITE ERROR - NOT ENOUGH UNSOLICITED DATA
	ASCThirdPartyDeviceFailure      ASC = 0x0d01 // THIRD PARTY DEVICE FAILURE
	ASCCopyTargetNotReachable       ASC = 0x0d02 // COPY TARGET DEVICE NOT REACHABLE
	ASCInvalidFieldInIU             ASC = 0x0e03 // INVALID FIELD IN COMMAND INFORMATION UNIT
	ASCUnrecoveredReadError         ASC = 0x1100 // UNRECOVERED READ ERROR
	ASCParameterListLengthError     ASC = 0x1a00 // PARAMETER LIST LENGTH ERROR
	ASCMiscompareDuringVerify       ASC = 0x1d00 // MISCOMPARE DURING VERIFY OPERATION
	ASCInvalidOpcode                ASC = 0x2000 // INVALID COMMAND OPERATION CODE
	ASCLBAOutOfRange                ASC = 0x2100 // LOGICAL BLOCK ADDRESS OUT OF RANGE
	ASCInvalidTokenOperation        ASC = 0x2300 // INVALID TOKEN OPERATION, CAUSE NOT REPORTABLE
	ASCUnsupportedTokenType         ASC = 0x2301 // INVALID TOKEN OPERATION, UNSUPPORTED TOKEN TYPE
	ASCTokenUnknown                 ASC = 0x2304 // INVALID TOKEN OPERATION, TOKEN UNKNOWN
	ASCTokenRevoked                 ASC = 0x2306 // INVALID TOKEN OPERATION, TOKEN REVOKED
	ASCTokenExpired                 ASC = 0x2307 // INVALID TOKEN OPERATION, TOKEN EXPIRED
	ASCInvalidTokenLength           ASC = 0x230a // INVALID TOKEN OPERATION, INVALID TOKEN LENGTH
	ASCInvalidFieldInCDB            ASC = 0x2400 // INVALID FIELD IN CDB
	ASCLUNotSupported               ASC = 0x2500 // LOGICAL UNIT NOT SUPPORTED
	ASCInvalidFieldInList           ASC = 0x2600 // INVALID FIELD IN PARAMETER LIST
	ASCInvalidRelease               ASC = 0x2604 // INVALID RELEASE OF PERSISTENT RESERVATION
	ASCTooManyTargetDescriptors     ASC = 0x2606 // TOO MANY TARGET DESCRIPTORS
	ASCUnsupportedTargetDescriptor  ASC = 0x2607 // UNSUPPORTED TARGET DESCRIPTOR TYPE CODE
	ASCTooManySegmentDescriptors    ASC = 0x2608 // TOO MANY SEGMENT DESCRIPTORS
	ASCUnsupportedSegmentType       ASC = 0x2609 // UNSUPPORTED SEGMENT DESCRIPTOR TYPE CODE
	ASCInexactSegment               ASC = 0x260a // UNEXPECTED INEXACT SEGMENT
	ASCWriteProtected               ASC = 0x2700 // WRITE PROTECTED
	ASCSoftwareWriteProtected       ASC = 0x2702 // LOGICAL UNIT SOFTWARE WRITE PROTECTED
	ASCSpaceAllocationFailed        ASC = 0x2707 // SPACE ALLOCATION FAILED WRITE PROTECT
	ASCMediumMayHaveChanged         ASC = 0x2800 // NOT READY TO READY CHANGE, MEDIUM MAY HAVE CHANGED
	ASCReset                        ASC = 0x2900 // POWER ON, RESET, OR BUS DEVICE RESET OCCURRED
	ASCPowerOn                      ASC = 0x2901 // POWER ON OCCURRED
	ASCBusReset                     ASC = 0x2902 // SCSI BUS RESET OCCURRED
	ASCDeviceReset                  ASC = 0x2903 // BUS DEVICE RESET FUNCTION OCCURRED
	ASCNexusLoss                    ASC = 0x2907 // I_T NEXUS LOSS OCCURRED
	ASCModeParametersChanged        ASC = 0x2a01 // MODE PARAMETERS CHANGED
	ASCReservationsPreempted        ASC = 0x2a03 // RESERVATIONS PREEMPTED
	ASCReservationsReleased         ASC = 0x2a04 // RESERVATIONS RELEASED
	ASCRegistrationsPreempted       ASC = 0x2a05 // REGISTRATIONS PREEMPTED
	ASCAsymmetricAccessStateChanged ASC = 0x2a06 // ASYMMETRIC ACCESS STATE CHANGED
	ASCCapacityChanged              ASC = 0x2a09 // CAPACITY DATA HAS CHANGED
	ASCTimestampChanged             ASC = 0x2a10 // TIMESTAMP CHANGED
	ASCCommandSequenceError         ASC = 0x2c00 // COMMAND SEQUENCE ERROR
	ASCCommandsClearedByAnother     ASC = 0x2f00 // COMMANDS CLEARED BY ANOTHER INITIATOR
	ASCCommandsClearedByDevice      ASC = 0x2f02 // COMMANDS CLEARED BY DEVICE SERVER
	ASCSanitizeFailed               ASC = 0x3103 // SANITIZE COMMAND FAILED
	ASCSoftThresholdReached         ASC = 0x3807 // THIN PROVISIONING SOFT THRESHOLD REACHED
	ASCSavingNotSupported           ASC = 0x3900 // SAVING PARAMETERS NOT SUPPORTED
	ASCMediumNotPresent             ASC = 0x3a00 // MEDIUM NOT PRESENT
	ASCSelfTestFailed               ASC = 0x3e03 // LOGICAL UNIT FAILED SELF-TEST
	ASCInquiryDataChanged           ASC = 0x3f03 // INQUIRY DATA HAS CHANGED
	ASCDeviceIdentifierChanged      ASC = 0x3f05 // DEVICE IDENTIFIER CHANGED
	ASCReportedLUNsDataChanged      ASC = 0x3f0e // REPORTED LUNS DATA HAS CHANGED
	ASCInternalTargetFailure        ASC = 0x4400 // INTERNAL TARGET FAILURE
	ASCProtocolServiceCRCError      ASC = 0x4705 // PROTOCOL SERVICE CRC ERROR
	ASCCommandsClearedByProtocol    ASC = 0x477f // SOME COMMANDS CLEARED BY ISCSI PROTOCOL EVENT
	ASCInvalidMessageError          ASC = 0x4900 // INVALID MESSAGE ERROR
	ASCDataPhaseError               ASC = 0x4b00 // DATA PHASE ERROR
	ASCMediumRemovalPrevented       ASC = 0x5302 // MEDIUM REMOVAL PREVENTED
	ASCInsufficientResources        ASC = 0x5503 // INSUFFICIENT RESOURCES
	ASCInsufficientForToken         ASC = 0x550d // INSUFFICIENT RESOURCES TO CREATE ROD TOKEN
	ASCInsufficientRegistrations    ASC = 0x5504 // INSUFFICIENT REGISTRATION RESOURCES
)

// Code returns the ADDITIONAL SENSE CODE field.
func (a ASC) Code() byte { return byte(a >> 8) }

// Qualifier returns the ADDITIONAL SENSE CODE QUALIFIER field.
func (a ASC) Qualifier() byte { return byte(a) }
