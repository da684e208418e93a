package scsi

import (
	"testing"

	"lunar/target/scsi/thirdparty"
)

// TestTokensAreShared: somebody else gets tokens in place of those of whoever has
// most, until both have as many.
func TestTokensAreShared(t *testing.T) {
	th, n, _ := copyUnits(t, 1)
	for i := range thirdparty.MaxTokens {
		th.populate(n[0], [2]uint64{uint64(i), 1})
	}
	n[0].Holder = "somebody else"
	list := populateList([2]uint64{0, 1})
	got := 0
	for th.start(n[0], tokenCDB(0x10, 1, list), list, 0).finish().c.Status == Good {
		got++
	}
	if got != thirdparty.MaxTokens/2 {
		t.Errorf("%d tokens, expected %d", got, thirdparty.MaxTokens/2)
	}
}

// TestCopyRecordsAreShared: whoever copies most forgets its own results first.
func TestCopyRecordsAreShared(t *testing.T) {
	th, n, _ := copyUnits(t, 4)
	ask := func(holder string, id uint32) {
		n[0].Holder = holder
		list := copyLID4(id, [][]byte{naaCSCD(n[0].LU)}, nil)
		th.start(n[0], copyCDB(1, list), list, 0).finish()
	}
	ask("quiet", 1)
	for id := range uint32(2 * thirdparty.MaxRecords) {
		ask("busy", 100+id)
	}
	if x := th.start(n[0], receiveCDB(5, 1), nil, 1024).finish(); x.c.Status != Good {
		t.Errorf("the result of the quiet one: status %02x", x.c.Status)
	}
}
