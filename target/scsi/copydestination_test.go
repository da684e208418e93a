package scsi

import (
	"bytes"
	"testing"

	"lunar/target/scsi/sense"
	"lunar/target/scsi/thirdparty"
)

// TestCopyLostAfterItsEnd: what a copy that has ended well left in a volatile cache, and
// the cache cannot write, makes the copy one that failed, until a flush makes up for it;
// its session is not needed for that.
func TestCopyLostAfterItsEnd(t *testing.T) {
	th, n, _ := copyUnits(t, 11)
	dest, other := n[1].LU, &Nexus{LU: n[1].LU, Initiator: "other"}
	dest.Attach(other)
	other.takeAttention()
	dest.DeferredError(0, errOfTest) // of before the copy
	list := copyLID4(3, [][]byte{naaCSCD(n[0].LU), naaCSCD(dest)}, [][]byte{blocksSegment(0, 1, 4096, 0, 0, 0)})
	list[15] = 0x01
	th.start(n[0], copyCDB(1, list), list, 0)
	dest.Detach(n[1])
	th.finishAll()
	ask := func() (status thirdparty.Status, lid1 byte, details []byte) {
		t.Helper()
		in := th.start(n[0], receiveCDB(5, 3), nil, 1024).finish().in
		lid1 = th.start(n[0], receiveCDB(0, 3), nil, 1024).finish().in[4] & 0x7f
		details = th.start(n[0], receiveCDB(4, 3), nil, 1024).finish().in[failedSegmentHeader:]
		if !bytes.Equal(in[copyStatusHeader:], details) {
			t.Errorf("found sense %x, and %x", in[copyStatusHeader:], details)
		}
		return thirdparty.Status(in[5]), lid1, details
	}
	if status, lid1, sense := ask(); status != thirdparty.Completed || lid1 != 1 || len(sense) > 0 {
		t.Errorf("found %v, %v, %x, expected that it is completed", status, lid1, sense)
	}
	dest.DeferredError(5<<12, errOfTest)
	want := sense.Data{Key: sense.MediumError, ASC: sense.ASCWriteError, InfoValid: true, Info: 5}
	if status, lid1, sense := ask(); status != thirdparty.Failed || lid1 != 2 || !bytes.Equal(sense, want.Append(nil, true)) {
		t.Errorf("found %v, %v, %x, expected that it has failed", status, lid1, sense)
	}
	th.start(other, syncCDB, nil, 0).finish()
	if status, lid1, sense := ask(); status != thirdparty.Completed || lid1 != 1 || len(sense) > 0 {
		t.Errorf("found %v, %v, %x after the flush, expected that it is completed", status, lid1, sense)
	}
	dest.DeferredError(5<<12, errOfTest) // of what came later
	if status, _, _ := ask(); status != thirdparty.Completed {
		t.Errorf("found %v, expected that it is completed", status)
	}
}
