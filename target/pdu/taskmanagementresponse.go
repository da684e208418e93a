package pdu

// TaskManagementResponse is the answer to a task management function request
// (RFC 7143 11.6):
//
//	 0     0x22
//	 1     F = 1
//	 2     Response
//	16     Initiator Task Tag
//	24     StatSN
//	28     ExpCmdSN
//	32     MaxCmdSN
type TaskManagementResponse BHS

// BHS is the same header with the fields that PDUs share.
func (p *TaskManagementResponse) BHS() *BHS { return (*BHS)(p) }

// Init clears the header and sets the opcode and the F bit.
func (p *TaskManagementResponse) Init() *TaskManagementResponse {
	*p = TaskManagementResponse{0: byte(OpTaskManagementResponse), 1: 0x80}
	return p
}

// Response is the outcome of the function.
func (p *TaskManagementResponse) Response() TaskManagementResponseCode {
	return TaskManagementResponseCode(p[2])
}

// SetResponse sets the outcome of the function.
func (p *TaskManagementResponse) SetResponse(v TaskManagementResponseCode) { p[2] = byte(v) }

// TaskManagementResponseCode is the outcome of a task management function
// (RFC 7143 11.6.1).
type TaskManagementResponseCode uint8

// Outcomes of a task management function; FunctionSucceeded is of RFC 7144.
const (
	FunctionComplete                 TaskManagementResponseCode = 0
	FunctionTaskDoesNotExist         TaskManagementResponseCode = 1
	FunctionLUNDoesNotExist          TaskManagementResponseCode = 2
	FunctionTaskStillAllegiant       TaskManagementResponseCode = 3
	FunctionReassignmentNotSupported TaskManagementResponseCode = 4
	FunctionNotSupported             TaskManagementResponseCode = 5
	FunctionAuthorizationFailed      TaskManagementResponseCode = 6
	FunctionSucceeded                TaskManagementResponseCode = 7
	FunctionRejected                 TaskManagementResponseCode = 255
)

var taskManagementResponseNames = []string{
	FunctionComplete:                 "function complete",
	FunctionTaskDoesNotExist:         "task does not exist",
	FunctionLUNDoesNotExist:          "LUN does not exist",
	FunctionTaskStillAllegiant:       "task still allegiant",
	FunctionReassignmentNotSupported: "task allegiance reassignment not supported",
	FunctionNotSupported:             "task management function not supported",
	FunctionAuthorizationFailed:      "function authorization failed",
	FunctionSucceeded:                "function succeeded",
	FunctionRejected:                 "function rejected",
}

// String is the RFC's name of the outcome.
func (v TaskManagementResponseCode) String() string {
	return nameAt(taskManagementResponseNames, "response", uint8(v))
}
