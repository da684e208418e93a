package scsi

import (
	"slices"
	"testing"
)

// harmless are the commands that a nexus runs that may only read: they change nothing
// for others. A new one is to be thought about before it is added.
var harmless = []string{
	"TEST UNIT READY", "REQUEST SENSE", "INQUIRY", "MODE SENSE(6)", "MODE SENSE(10)", "LOG SENSE",
	"RECEIVE DIAGNOSTIC RESULTS", "SEND DIAGNOSTIC", // a self-test flushes and reads
	"READ CAPACITY(10)", "READ CAPACITY(16)", "REPORT LUNS",
	"WRITE BUFFER", "READ BUFFER(10)", // the buffers are the nexus's own
	"REPORT IDENTIFYING INFORMATION", "REPORT SUPPORTED OPERATION CODES", "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS",
	"REPORT TIMESTAMP", "REPORT TARGET PORT GROUPS",
	"RELEASE(6)", "RELEASE(10)", // what the nexus itself has reserved
	"PERSISTENT RESERVE IN, READ KEYS", "PERSISTENT RESERVE IN, READ RESERVATION",
	"PERSISTENT RESERVE IN, REPORT CAPABILITIES", "PERSISTENT RESERVE IN, READ FULL STATUS",
	"READ(6)", "READ(10)", "READ(12)", "READ(16)", "READ(32)",
	"VERIFY(10)", "VERIFY(12)", "VERIFY(16)", "VERIFY(32)", "PRE-FETCH(10)", "PRE-FETCH(16)",
	"READ DEFECT DATA(10)", "READ DEFECT DATA(12)", "GET LBA STATUS",
	"SYNCHRONIZE CACHE(10)", "SYNCHRONIZE CACHE(16)", // data become safer
	"EXTENDED COPY(LID1)", "EXTENDED COPY(LID4)", // what they write to is checked unit by unit
	"POPULATE TOKEN", "COPY OPERATION ABORT", "RECEIVE COPY STATUS(LID1)", "RECEIVE COPY STATUS(LID4)", // of the nexus itself
	"RECEIVE COPY OPERATING PARAMETERS", "RECEIVE COPY FAILURE DETAILS(LID1)", "RECEIVE ROD TOKEN INFORMATION",
}

// Each command of the table either needs the right to write or is known to be harmless.
func TestWhatReadersMayRun(t *testing.T) {
	for _, row := range commands {
		needs := row.Access == AccessWrite || row.Flags&NeedsWriter != 0
		if needs == slices.Contains(harmless, row.Name) {
			t.Errorf("%s: needs the right to write: %v, expected otherwise", row.Name, needs)
		}
	}
}
