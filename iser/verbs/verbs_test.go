package verbs

import (
	"testing"
	"unsafe"
)

// The C side reads and writes these as they lie in memory.
func TestLayouts(t *testing.T) {
	var (
		sge SGE
		wr  WR
		wc  WC
	)
	for _, c := range []struct {
		what            string
		found, expected uintptr
	}{
		{"size of SGE", unsafe.Sizeof(sge), 16},
		{"SGE.Len", unsafe.Offsetof(sge.Len), 8},
		{"SGE.LKey", unsafe.Offsetof(sge.LKey), 12},
		{"size of WR", unsafe.Sizeof(wr), 24},
		{"WR.RAddr", unsafe.Offsetof(wr.RAddr), 8},
		{"WR.RKey", unsafe.Offsetof(wr.RKey), 16},
		{"WR.Op", unsafe.Offsetof(wr.Op), 20},
		{"WR.Flags", unsafe.Offsetof(wr.Flags), 21},
		{"WR.NSGE", unsafe.Offsetof(wr.NSGE), 22},
		{"size of WC", unsafe.Sizeof(wc), 32},
		{"WC.Status", unsafe.Offsetof(wc.Status), 8},
		{"WC.Op", unsafe.Offsetof(wc.Op), 12},
		{"WC.Len", unsafe.Offsetof(wc.Len), 16},
		{"WC.QP", unsafe.Offsetof(wc.QP), 20},
		{"WC.Flags", unsafe.Offsetof(wc.Flags), 24},
		{"WC.Inv", unsafe.Offsetof(wc.Inv), 28},
	} {
		if c.found != c.expected {
			t.Errorf("%s: found %d, expected %d", c.what, c.found, c.expected)
		}
	}
}

func TestNames(t *testing.T) {
	for found, expected := range map[string]string{
		StatusRNRExceeded.String(): "receiver-not-ready retries exceeded",
		Status(99).String():        "status 99",
		EventRejected.String():     "rejected",
		AsyncCommEst.String():      "communication established",
	} {
		if found != expected {
			t.Errorf("found %q, expected %q", found, expected)
		}
	}
}
