package scsi

import (
	"encoding/hex"
	"testing"

	"lunar/backstore"
	"lunar/target/scsi/sense"
)

func TestStandardInquiry(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v", Product: "VOLUME", Revision: "1.0\t\xff"})
	equal(t, d.good([]byte{0x12, 0, 0, 0, 0xff, 0}, nil), `
		00 00 06 32 5b 18 00 02
		4c554e4152202020
		564f4c554d4520202020202020202020
		312e3020
		0000000000000000000000000000000000000000 0000
		00a0 0460 04c0 0960 0000 0000 0000 0000
		00000000000000000000000000000000000000000000`)
}

func TestInquiryRefusals(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	d.refused([]byte{0x12, 0, 1, 0, 0xff, 0}, nil, sense.InvalidFieldInCDB(2, 7))    // page code without EVPD
	d.refused([]byte{0x12, 1, 0x81, 0, 0xff, 0}, nil, sense.InvalidFieldInCDB(2, 7)) // no such page
	d.refused([]byte{0x12, 2, 0, 0, 0xff, 0}, nil, sense.InvalidFieldInCDB(1, 1))    // CMDDT
	d.refused([]byte{0x12, 0, 0, 0, 0xff, 2}, nil, sense.InvalidFieldInCDB(5, 1))    // reserved in CONTROL
}

func TestInquiryWithoutLU(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	nobody := &Nexus{Map: func() []uint64 { return nil }}
	if r := d.runAs(nobody, []byte{0x12, 0, 0, 0, 36, 0}, nil); r.status != Good || len(r.data) != 36 || r.data[0] != 0x7f {
		t.Errorf("standard data: status %02x, %x", r.status, r.data)
	}
	if r := d.runAs(nobody, []byte{0x12, 1, 0x80, 0, 36, 0}, nil); r.sense != *sense.InvalidFieldInCDB(1, 0) {
		t.Errorf("VPD page: %+v", r.sense)
	}
	if r := d.runAs(nobody, []byte{0, 0, 0, 0, 0, 0}, nil); r.sense != *sense.LUNotSupported {
		t.Errorf("TEST UNIT READY: %+v", r.sense)
	}
}

func TestInquiryLeavesAttentionPending(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	d.nexus.Attention(sense.ASCReset)
	d.good([]byte{0x12, 0, 0, 0, 0xff, 0}, nil)
	d.refused([]byte{0, 0, 0, 0, 0, 0}, nil, &sense.Data{Key: sense.UnitAttention, ASC: 0x2900})
	d.good([]byte{0, 0, 0, 0, 0, 0}, nil)
}

// TestVPDPages holds every page against bytes written from SPC-4 clause 7.8
// and SBC-3 clause 6.6.
func TestVPDPages(t *testing.T) {
	thick := backstore.Info{Size: 1 << 20, BlockSize: 1, PhysicalBlock: 512, Rotational: true}
	unit := `02 01 00 1f  4c554e4152202020 5649525455414c204449534b20202020 73657269616c37
		01 03 00 08  3000000000000abc`
	config := LUConfig{Name: "v", Serial: "serial7", NAA: []byte{0x30, 0, 0, 0, 0, 0, 0x0a, 0xbc}}
	grouped := config
	grouped.GroupNumbers = true
	large := config
	large.BlockSize = 4096
	zeroes := func(n int) string { return hex.EncodeToString(make([]byte, n)) }
	tests := []struct {
		name   string
		info   backstore.Info
		config LUConfig
		target string
		page   byte
		golden string
	}{
		{"supported pages", diskInfo(), config, "", 0x00, `00 00 0009  00 80 83 86 87 8f b0 b1 b2`},
		{"unit serial number", diskInfo(), config, "", 0x80, `00 80 0007  73657269616c37`},
		{"device identification", diskInfo(), config, "", 0x83, `00 83 002f` + unit},
		{"device identification with target", diskInfo(), config, "iqn.2026-11.lunar:t", 0x83, `00 83 007b` + unit +
			`51 94 00 04  0000 0102
			 51 95 00 04  0000 0102
			 53 98 00 20  69716e2e323032362d31312e6c756e61723a742c742c3078303130 32 00000000
			 53 a8 00 14  69716e2e323032362d31312e6c756e61723a74 00`},
		{"device identification as configured", diskInfo(), LUConfig{Name: "v", Serial: "s\x00", Designators: []byte{1, 2, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8}}, "", 0x83, `00 83 000c  01 02 00 08 0102030405060708`},
		{"unit serial number with a NUL", diskInfo(), LUConfig{Name: "v", Serial: "s\x00"}, "", 0x80, `00 80 0002  7300`},
		{"extended INQUIRY", diskInfo(), config, "", 0x86, `00 86 003c  00 07 01` + zeroes(57)},
		{"extended INQUIRY, no cache", thick, config, "", 0x86, `00 86 003c  00 07 00` + zeroes(57)},
		{"extended INQUIRY, group numbers", diskInfo(), grouped, "", 0x86, `00 86 003c  00 17 01` + zeroes(57)},
		{"mode page policy", diskInfo(), config, "", 0x87, `00 87 0004  3f ff 00 00`},
		{"third-party copy", diskInfo(), config, "", 0x8f, `00 8f 0174
			0000 0020  000000000000 0040 00000258 0000003c 0000000000080000 0000000000020000
			0001 0010  0e  83 05 00 01 10 11 1c  84 05 00 03 04 05 07  00
			0004 001c  00000000 0010 0040 00000900 00000000` + zeroes(12) + `
			0008 0004  03 02 0a e4
			000c 0004  0000 0000
			0106 005c  00` + zeroes(11) + `00000000 00000258 00000258` + zeroes(18) + `0030
			00 00 002c 0000 0000 0000000010000000 0000000004000000 0000000004000000 0000000004000000 0000000000000000
			0108 0084  0000 0080  00800001 03 00 8000` + zeroes(56) + ` ffff0001 02 00 0000` + zeroes(56) + `
			8001 0020  00000040 00000040 10000000 09` + zeroes(19)},
		{"block characteristics", diskInfo(), config, "", 0xb1, `00 b1 003c  0001 00 40` + zeroes(56)},
		{"block characteristics, rotating", thick, config, "", 0xb1, `00 b1 003c  0000` + zeroes(58)},
		{"provisioning", diskInfo(), config, "", 0xb2, `00 b2 0004  00 e4 02 00`},
		{"provisioning, thick", thick, config, "", 0xb2, `00 b2 0004  00 00 00 00`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDisk(t, tt.info, tt.config)
			d.nexus.Target, d.nexus.TargetTag = tt.target, 0x102
			equal(t, d.good([]byte{0x12, 1, tt.page, 0x03, 0xff, 0}, nil), tt.golden)
		})
	}
}

func TestBlockLimitsPage(t *testing.T) {
	l := BlockLimits{
		MaxTransfer: 0x01020304, OptimalTransfer: 0x05060708, OptimalGranularity: 0x090a,
		MaxPrefetch: 0x0b0c0d0e, MaxCompareAndWrite: 0x0f, MaxUnmap: 0x10111213,
		MaxUnmapDescriptors: 0x14151617, UnmapGranularity: 0x18191a1b,
		MaxWriteSame: 0x1c1d1e1f20212223, WriteSameNonZero: true, MaxAtomic: 0x24252627, AtomicUnit: 0x28292a2b,
	}
	equal(t, blockLimitsPage(&l), `
		01 0f 090a 01020304 05060708 0b0c0d0e
		10111213 14151617 18191a1b 80000000
		1c1d1e1f20212223
		24252627 28292a2b 28292a2b 24252627 24252627`)
	equal(t, blockLimitsPage(new(BlockLimits)), hex.EncodeToString(make([]byte, 60)))
}

// TestBlockLimitsAgree: what INQUIRY says is what the commands enforce, and
// UNMAP has limits exactly if the unit has UNMAP.
func TestBlockLimitsAgree(t *testing.T) {
	thick := diskInfo()
	thick.Discard = false
	for _, info := range []backstore.Info{diskInfo(), thick} {
		d := newDisk(t, info, LUConfig{Name: "v"})
		page := d.good([]byte{0x12, 1, 0xb0, 0, 0xff, 0}, nil)
		equal(t, page, "00 b0 003c"+hex.EncodeToString(blockLimitsPage(d.lu.Limits())))
		if l := d.lu.Limits(); l.MaxUnmap > 1<<20 || l.MaxUnmapDescriptors > 1<<20 {
			t.Errorf("libiscsi takes these for too large: %+v", l)
		}
		if unmaps := d.lu.Limits().MaxUnmap != 0; unmaps != info.Discard {
			t.Errorf("discard %t, MaxUnmap %d", info.Discard, d.lu.Limits().MaxUnmap)
		}
	}
}

// TestDesignatorsFit: the longest names still make a well formed page.
func TestDesignatorsFit(t *testing.T) {
	long := string(make([]byte, 223))
	config := LUConfig{Vendor: "V", Product: "P", Serial: long + long}
	config.setDefaults()
	body := deviceIdentification(&Nexus{LU: &LogicalUnit{config: config}, Target: long, TargetTag: 0xffff})
	count := 0
	for ; len(body) > 0; count++ {
		if len(body) < 4 || len(body) < 4+int(body[3]) {
			t.Fatalf("descriptor %d is cut off", count)
		}
		body = body[4+int(body[3]):]
	}
	if count != 6 {
		t.Errorf("%d descriptors, want 6", count)
	}
}
