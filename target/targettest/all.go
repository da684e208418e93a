package targettest

import "testing"

// Test is one conformance test.
type Test struct {
	Name string
	Run  func(t *testing.T, s Subject)
}

// All holds the tests that every transport and every store has to pass. The
// initiator judges every PDU that it gets, so that most of them say little
// themselves.
var All = []Test{
	{"Negotiation", testNegotiation},
	{"SegmentLengths", testSegmentLengths},
	{"SizeClasses", testSizeClasses},
	{"ReadResiduals", testReadResiduals},
	{"WriteResiduals", testWriteResiduals},
	{"ResidualsOfTheOtherKind", testResidualsOfTheOtherKind},
	{"DataOutCuts", testDataOutCuts},
	{"R2TsInAnyOrder", testR2TsInAnyOrder},
	{"Interleaved", testInterleaved},
	{"PhaseCollapse", testPhaseCollapse},
	{"Sense", testSense},
	{"TaskAttributes", testTaskAttributes},
	{"ImmediateCommands", testImmediateCommands},
	{"Window", testWindow},
	{"SlowReader", testSlowReader},
	{"NOP", testNOP},
	{"Text", testText},
	{"Reject", testReject},
	{"AbortTask", testAbortTask},
	{"Resets", testResets},
	{"LogoutWithRunningCommands", testLogoutWithRunningCommands},
	{"CutConnection", testCutConnection},
}

// Run runs All on the subject.
func Run(t *testing.T, s Subject) {
	for _, test := range All {
		t.Run(test.Name, func(t *testing.T) { test.Run(t, s) })
	}
}
