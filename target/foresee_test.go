package target

import (
	"encoding/binary"
	"testing"

	"lunar/target/pdu"
)

// TestForeseeCountsWhatItHasSeen: it takes PDUs as they follow each other, with what they
// carry, and no bytes for PDUs that are not.
func TestForeseeCountsWhatItHasSeen(t *testing.T) {
	read := make([]byte, pdu.BHSLength)
	read[0], read[32] = byte(pdu.OpSCSICommand), 0x28
	binary.BigEndian.PutUint32(read[34:], 0xffffffff)
	write := append([]byte(nil), read...)
	write[7] = 8 // bytes of data
	extended := append([]byte(nil), read...)
	extended[4] = 1 // a word of additional header
	join := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	many := make([]byte, 0, 40*pdu.BHSLength)
	for range 40 {
		many = append(many, read...)
	}
	c := new(Connection)
	c.sessionState = new(sessionState)
	for _, tt := range []struct {
		name string
		pdus []byte
		want int
	}{
		{"nothing", nil, 0},
		{"a part of one", read[:20], 0},
		{"one", read, 1},
		{"one and a part", join(read, read[:47]), 1},
		{"three", join(read, read, read), 3},
		{"data behind the second", join(read, write, make([]byte, 8), read, read), 4},
		{"data that has not come", join(read, write, make([]byte, 7)), 2},
		{"a header behind the first", join(extended, make([]byte, 4), read, read), 3},
		{"more than are looked at", many, foreseen},
	} {
		if got := c.Foresee(tt.pdus); got != tt.want {
			t.Errorf("%s: %d PDUs were seen, expected %d", tt.name, got, tt.want)
		}
	}
}
