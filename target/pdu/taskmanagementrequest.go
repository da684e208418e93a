package pdu

import "encoding/binary"

// TaskManagementRequest is a task management function request (RFC 7143 11.5):
//
//	 0     I | 0x02
//	 1     1 | Function (7 bits)
//	 8     LUN
//	16     Initiator Task Tag
//	20     Referenced Task Tag
//	24     CmdSN
//	28     ExpStatSN
//	32     RefCmdSN
//	36     ExpDataSN
type TaskManagementRequest BHS

// BHS is the same header with the fields that PDUs share.
func (p *TaskManagementRequest) BHS() *BHS { return (*BHS)(p) }

// Init clears the header and sets the opcode and the F bit.
func (p *TaskManagementRequest) Init() *TaskManagementRequest {
	*p = TaskManagementRequest{0: byte(OpTaskManagementRequest), 1: 0x80}
	return p
}

// Function is the function.
func (p *TaskManagementRequest) Function() TaskManagementFunction {
	return TaskManagementFunction(p[1] & 0x7f)
}

// SetFunction sets the function.
func (p *TaskManagementRequest) SetFunction(v TaskManagementFunction) {
	p[1] = p[1]&^0x7f | byte(v)&0x7f
}

// ReferencedTaskTag is the ITT of the task to abort or reassign,
// ReservedTag for the other functions.
func (p *TaskManagementRequest) ReferencedTaskTag() uint32 { return binary.BigEndian.Uint32(p[20:24]) }

// SetReferencedTaskTag sets the ITT of the task to abort or reassign,
// ReservedTag for the other functions.
func (p *TaskManagementRequest) SetReferencedTaskTag(v uint32) {
	binary.BigEndian.PutUint32(p[20:24], v)
}

// RefCmdSN is the CmdSN of the task to abort.
func (p *TaskManagementRequest) RefCmdSN() SN { return SN(binary.BigEndian.Uint32(p[32:36])) }

// SetRefCmdSN sets the CmdSN of the task to abort.
func (p *TaskManagementRequest) SetRefCmdSN(v SN) { binary.BigEndian.PutUint32(p[32:36], uint32(v)) }

// ExpDataSN is the next Data-In or R2T number that the initiator expects
// of a task to reassign.
func (p *TaskManagementRequest) ExpDataSN() SN { return SN(binary.BigEndian.Uint32(p[36:40])) }

// SetExpDataSN sets the next Data-In or R2T number that the initiator expects
// of a task to reassign.
func (p *TaskManagementRequest) SetExpDataSN(v SN) { binary.BigEndian.PutUint32(p[36:40], uint32(v)) }

// TaskManagementFunction is what a task management request asks for (RFC 7143
// 11.5.1).
type TaskManagementFunction uint8

// Task management functions; the last four are of RFC 7144.
const (
	FunctionAbortTask              TaskManagementFunction = 1
	FunctionAbortTaskSet           TaskManagementFunction = 2
	FunctionClearACA               TaskManagementFunction = 3
	FunctionClearTaskSet           TaskManagementFunction = 4
	FunctionLogicalUnitReset       TaskManagementFunction = 5
	FunctionTargetWarmReset        TaskManagementFunction = 6
	FunctionTargetColdReset        TaskManagementFunction = 7
	FunctionTaskReassign           TaskManagementFunction = 8
	FunctionQueryTask              TaskManagementFunction = 9
	FunctionQueryTaskSet           TaskManagementFunction = 10
	FunctionITNexusReset           TaskManagementFunction = 11
	FunctionQueryAsynchronousEvent TaskManagementFunction = 12
)

var taskManagementFunctionNames = []string{
	FunctionAbortTask:              "ABORT TASK",
	FunctionAbortTaskSet:           "ABORT TASK SET",
	FunctionClearACA:               "CLEAR ACA",
	FunctionClearTaskSet:           "CLEAR TASK SET",
	FunctionLogicalUnitReset:       "LOGICAL UNIT RESET",
	FunctionTargetWarmReset:        "TARGET WARM RESET",
	FunctionTargetColdReset:        "TARGET COLD RESET",
	FunctionTaskReassign:           "TASK REASSIGN",
	FunctionQueryTask:              "QUERY TASK",
	FunctionQueryTaskSet:           "QUERY TASK SET",
	FunctionITNexusReset:           "I_T NEXUS RESET",
	FunctionQueryAsynchronousEvent: "QUERY ASYNCHRONOUS EVENT",
}

// String is the RFC's name of the value.
func (v TaskManagementFunction) String() string {
	return nameAt(taskManagementFunctionNames, "function", uint8(v))
}
