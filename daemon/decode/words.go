package decode

import (
	"fmt"

	"lunar/target/pdu"
	"lunar/target/scsi"
)

// word is a value's name, or its number if it has none.
func word(names map[uint8]string, v uint8) string {
	if name, ok := names[v]; ok {
		return name
	}
	return fmt.Sprintf("%02xh", v)
}

var statuses = map[uint8]string{
	uint8(scsi.Good):                "GOOD",
	uint8(scsi.CheckCondition):      "CHECK CONDITION",
	uint8(scsi.ConditionMet):        "CONDITION MET",
	uint8(scsi.Busy):                "BUSY",
	uint8(scsi.ReservationConflict): "RESERVATION CONFLICT",
	uint8(scsi.TaskSetFull):         "TASK SET FULL",
	uint8(scsi.ACAActive):           "ACA ACTIVE",
	uint8(scsi.TaskAborted):         "TASK ABORTED",
}

var attributes = map[uint8]string{
	uint8(pdu.AttributeUntagged):    "UNTAGGED",
	uint8(pdu.AttributeSimple):      "SIMPLE",
	uint8(pdu.AttributeOrdered):     "ORDERED",
	uint8(pdu.AttributeHeadOfQueue): "HEAD OF QUEUE",
	uint8(pdu.AttributeACA):         "ACA",
}

// transfers are by the bits R and W.
var transfers = map[[2]bool]string{{true, false}: "read", {false, true}: "write", {true, true}: "both"}

var logoutReasons = map[uint8]string{
	uint8(pdu.LogoutCloseSession):      "close the session",
	uint8(pdu.LogoutCloseConnection):   "close the connection",
	uint8(pdu.LogoutRemoveForRecovery): "remove the connection for recovery",
}

var logoutResponses = map[uint8]string{
	uint8(pdu.LogoutSuccess):              "closed",
	uint8(pdu.LogoutCIDNotFound):          "CID not found",
	uint8(pdu.LogoutRecoveryNotSupported): "connection recovery is not supported",
	uint8(pdu.LogoutCleanupFailed):        "cleanup failed",
}

var snackTypes = map[uint8]string{
	uint8(pdu.SNACKDataR2T): "Data-In or R2T missing",
	uint8(pdu.SNACKStatus):  "status missing",
	uint8(pdu.SNACKDataACK): "data acknowledged",
	uint8(pdu.SNACKRData):   "data missing, to be sent anew",
}
