package scsi

import (
	"testing"

	"pgregory.net/rapid"
)

func TestEncodeLUN(t *testing.T) {
	tests := []struct{ n, want uint64 }{
		{0, 0x0000_0000_0000_0000},
		{1, 0x0001_0000_0000_0000},
		{255, 0x00ff_0000_0000_0000},
		{256, 0x4100_0000_0000_0000},
		{MaxLUN, 0x7fff_0000_0000_0000},
	}
	for _, tt := range tests {
		if got := EncodeLUN(tt.n); got != tt.want {
			t.Errorf("LUN %d: %016x, want %016x", tt.n, got, tt.want)
		}
	}
}

func TestDecodeLUN(t *testing.T) {
	tests := []struct {
		name string
		lun  uint64
		want uint64
		ok   bool
	}{
		{"flat space below 256", 0x4007_0000_0000_0000, 7, true},
		{"another bus", 0x0107_0000_0000_0000, 0, false},
		{"logical unit addressing", 0x8007_0000_0000_0000, 0, false},
		{"REPORT LUNS well known logical unit", 0xc101_0000_0000_0000, 0, false},
		{"second level", 0x0001_0001_0000_0000, 0, false},
		{"last byte", 0x0001_0000_0000_0001, 0, false},
	}
	for _, tt := range tests {
		got, ok := DecodeLUN(tt.lun)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%s: %d, %t", tt.name, got, ok)
		}
	}
}

func TestLUNRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(0, MaxLUN).Draw(t, "n")
		if got, ok := DecodeLUN(EncodeLUN(n)); !ok || got != n {
			t.Fatalf("LUN %d came back as %d, %t", n, got, ok)
		}
	})
}
