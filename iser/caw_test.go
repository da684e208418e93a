package iser_test

import (
	"testing"

	"lunar/internal/initiator"
	"lunar/iser/isertest"
)

// COMPARE AND WRITE of all lengths, part of whose data come with the command, or are
// announced and do not come.
func TestCompareAndWrite(t *testing.T) {
	for _, hollow := range []bool{false, true} {
		w := newWorld(t, options{})
		c, _ := w.ready(t, 1, isertest.Options{Hollow: hollow})
		for _, n := range []int{1, 7, 8, 9, 15, 16, 17, 64} {
			write(t, c, 0, pattern(n*512, 1))
			cdb := make([]byte, 16)
			cdb[0], cdb[13] = 0x89, byte(n)
			out := append(pattern(n*512, 1), pattern(n*512, 2)...)
			good(t, do(t, c, initiator.Command{CDB: cdb, Out: out, Attr: initiator.AttrSimple}))
			expect(t, c, 0, pattern(n*512, 2))
		}
	}
}
