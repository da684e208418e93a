package scsi

import (
	"testing"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

func modeSense6(dbd, page, subpage byte) []byte {
	return []byte{0x1a, dbd, page, subpage, 0xff, 0}
}

func modeSense10(flags, page, subpage byte) []byte {
	return []byte{0x5a, flags, page, subpage, 0, 0, 0, 0x10, 0, 0}
}

// Bits of MODE SENSE CDBs: DBD and LLBAA in byte 1, PC in byte 2.
const (
	dbd        = 0x08
	llbaa      = 0x10
	changeable = 0x40
	defaults   = 0x80
	saved      = 0xc0
)

// The mode pages as SBC-3 clause 6.5 and SPC-4 clause 7.5 lay them out.
const (
	goldenErrorRecovery = "01 0a 00 00 00 00 00 00 00 00 00 00"
	goldenCaching       = "08 12 04 00 0000 0000 0000 0000 00 00 0000 00 000000"
	goldenControl       = "0a 0a 00 10 00 00 0000 ffff 0000"
	goldenExtension     = "4a 01 001c 00 00 00 00000000000000000000000000000000000000000000000000"
	goldenExceptions    = "1c 0a 08 00 00000000 00000000"
	goldenPages         = goldenErrorRecovery + goldenCaching + goldenControl + goldenExceptions
	goldenSubpages      = goldenErrorRecovery + goldenCaching + goldenControl + goldenExtension + goldenExceptions
)

func TestModeSense(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"}) // 2048 blocks of 512 bytes
	const short, long = "00000800 00 000200", "0000000000000800 00000000 00000200"
	tests := []struct {
		name   string
		cdb    []byte
		golden string
	}{
		{"6: caching", modeSense6(dbd, 0x08, 0), "17 00 10 00" + goldenCaching},
		{"6: caching, block descriptor", modeSense6(0, 0x08, 0), "1f 00 10 08" + short + goldenCaching},
		{"6: error recovery", modeSense6(dbd, 0x01, 0), "0f 00 10 00" + goldenErrorRecovery},
		{"6: control", modeSense6(dbd, 0x0a, 0), "0f 00 10 00" + goldenControl},
		{"6: control extension", modeSense6(dbd, 0x0a, 1), "23 00 10 00" + goldenExtension},
		{"6: control with subpages", modeSense6(dbd, 0x0a, 0xff), "2f 00 10 00" + goldenControl + goldenExtension},
		{"6: informational exceptions", modeSense6(dbd, 0x1c, 0), "0f 00 10 00" + goldenExceptions},
		{"6: all pages", modeSense6(dbd, 0x3f, 0), "3b 00 10 00" + goldenPages},
		{"6: all pages and subpages", modeSense6(dbd, 0x3f, 0xff), "5b 00 10 00" + goldenSubpages},
		{"10: caching", modeSense10(dbd, 0x08, 0), "001a 00 10 00 00 0000" + goldenCaching},
		{"10: block descriptor", modeSense10(0, 0x08, 0), "0022 00 10 00 00 0008" + short + goldenCaching},
		{"10: long block descriptor", modeSense10(llbaa, 0x08, 0), "002a 00 10 01 00 0010" + long + goldenCaching},
		{"10: LLBAA without descriptor", modeSense10(llbaa|dbd, 0x08, 0), "001a 00 10 00 00 0000" + goldenCaching},
		{"6: caching, default", modeSense6(dbd, defaults|0x08, 0), "17 00 10 00" + goldenCaching},
		{
			"6: all, changeable", modeSense6(dbd, changeable|0x3f, 0xff), "5b 00 10 00" +
				"01 0a 00 00 00 00 00 00 00 00 00 00" +
				"08 12 04 00 0000 0000 0000 0000 00 00 0000 00 000000" +
				"0a 0a 04 00 08 00 0000 0000 0000" +
				"4a 01 001c 00 00 00 00000000000000000000000000000000000000000000000000" +
				"1c 0a 00 00 00000000 00000000",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { equal(t, d.good(tt.cdb, nil), tt.golden) })
	}
}

func TestModeSenseRefusals(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	for _, control := range []byte{0, changeable, defaults} {
		d.refused(modeSense6(0, control|0x02, 0), nil, sense.InvalidFieldInCDB(2, 5))    // no such page
		d.refused(modeSense6(0, control|0x02, 0xff), nil, sense.InvalidFieldInCDB(2, 5)) // nor subpages of it
		d.refused(modeSense6(0, control|0x0a, 2), nil, sense.InvalidFieldInCDB(3, 7))    // no such subpage
		d.refused(modeSense6(0, control|0x3f, 1), nil, sense.InvalidFieldInCDB(3, 7))    // reserved
	}
	d.refused(modeSense6(0, saved|0x08, 0), nil, sense.SaveNotSupported)
	d.refused(modeSense10(0, saved|0x3f, 0xff), nil, sense.SaveNotSupported)
	d.refused(modeSense6(llbaa, 0x08, 0), nil, sense.InvalidFieldInCDB(1, 4))
}

func TestModeSenseWriteProtected(t *testing.T) {
	protected := func(d *disk) bool { return d.good(modeSense6(dbd, 0x0a, 0), nil)[2]&0x80 != 0 }
	readOnly := diskInfo()
	readOnly.ReadOnly = true
	tests := []struct {
		name   string
		info   backstore.Info
		config LUConfig
		nexus  bool
		want   bool
	}{
		{"writable", diskInfo(), LUConfig{Name: "v"}, false, false},
		{"volume", diskInfo(), LUConfig{Name: "v", ReadOnly: true}, false, true},
		{"store", readOnly, LUConfig{Name: "v"}, false, true},
		{"mapping", diskInfo(), LUConfig{Name: "v"}, true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDisk(t, tt.info, tt.config)
			d.nexus.ReadOnly.Store(tt.nexus)
			if got := protected(d); got != tt.want {
				t.Errorf("WP %t", got)
			}
		})
	}
}

func TestModeSenseWriteThrough(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v", WriteThrough: true})
	const without = "08 12 00 00 0000 0000 0000 0000 00 00 0000 00 000000"
	for _, control := range []byte{0, changeable, defaults} {
		equal(t, d.good(modeSense6(dbd, control|0x08, 0), nil), "17 00 10 00"+without)
	}
}
