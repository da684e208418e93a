package sense

import (
	"bytes"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// unhex decodes hexadecimal digits, in which white space means nothing.
func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatalf("golden bytes: %v", err)
	}
	return b
}

func TestSenseGolden(t *testing.T) {
	tests := []struct {
		name       string
		sense      *Data
		fixed      string
		descriptor string
	}{
		{
			"no sense", NoAdditionalSense,
			"70 00 00 00000000 0a 00000000 0000 00 000000",
			"72 00 00 00 000000 00",
		},
		{
			"unit attention", &Data{Key: UnitAttention, ASC: ASCReset},
			"70 00 06 00000000 0a 00000000 2900 00 000000",
			"72 06 29 00 000000 00",
		},
		{
			"field pointer into the CDB with a bit", InvalidFieldInCDB(2, 7),
			"70 00 05 00000000 0a 00000000 2400 00 cf0002",
			"72 05 24 00 000000 08  02 06 0000 cf0002 00",
		},
		{
			"field pointer into the CDB without a bit", InvalidFieldInCDB(10, NoBit),
			"70 00 05 00000000 0a 00000000 2400 00 c0000a",
			"72 05 24 00 000000 08  02 06 0000 c0000a 00",
		},
		{
			"field pointer into the parameter list", InvalidFieldInList(0x123, 0),
			"70 00 05 00000000 0a 00000000 2600 00 880123",
			"72 05 26 00 000000 08  02 06 0000 880123 00",
		},
		{
			"information", MiscompareAt(5),
			"f0 00 0e 00000005 0a 00000000 1d00 00 000000",
			"72 0e 1d 00 000000 0c  00 0a 80 00 0000000000000005",
		},
		{
			"information of the largest LBA that fits", &Data{Key: MediumError, ASC: ASCUnrecoveredReadError, InfoValid: true, Info: math.MaxUint32},
			"f0 00 03 ffffffff 0a 00000000 1100 00 000000",
			"72 03 11 00 000000 0c  00 0a 80 00 00000000ffffffff",
		},
		{
			"information that does not fit", &Data{Key: MediumError, ASC: ASCWriteError, InfoValid: true, Info: math.MaxUint32 + 1},
			"70 00 03 00000000 0a 00000000 0c00 00 000000",
			"72 03 0c 00 000000 0c  00 0a 80 00 0000000100000000",
		},
		{
			"progress", &Data{Key: NotReady, ASC: 0x0404, Progress: 0x8001, ProgressValid: true},
			"70 00 02 00000000 0a 00000000 0404 00 808001",
			"72 02 04 04 000000 08  02 06 0000 808001 00",
		},
		{
			"deferred", &Data{Key: MediumError, ASC: ASCWriteError, Deferred: true, InfoValid: true, Info: 7},
			"f1 00 03 00000007 0a 00000000 0c00 00 000000",
			"73 03 0c 00 000000 0c  00 0a 80 00 0000000000000007",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, want := tt.sense.Append(nil, false), unhex(t, tt.fixed); !bytes.Equal(got, want) {
				t.Errorf("fixed format\n got %x\nwant %x", got, want)
			}
			if got, want := tt.sense.Append(nil, true), unhex(t, tt.descriptor); !bytes.Equal(got, want) {
				t.Errorf("descriptor format\n got %x\nwant %x", got, want)
			}
		})
	}
}

// decodeSense reads sense data as SPC-4 clause 4.5 lays it out, in either
// format. It shares nothing with the encoder.
func decodeSense(t interface{ Fatalf(string, ...any) }, b []byte) Data {
	var s Data
	if len(b) < 8 || len(b) != int(b[7])+8 {
		t.Fatalf("sense data of %d bytes: % x", len(b), b)
	}
	specific := func(sks []byte) {
		switch {
		case sks[0]&0x80 == 0:
		case s.Key == IllegalRequest:
			s.FieldValid, s.FieldInCDB, s.BitValid = true, sks[0]&0x40 != 0, sks[0]&0x08 != 0
			s.Bit, s.Field = sks[0]&7, uint16(sks[1])<<8|uint16(sks[2])
		default:
			s.ProgressValid, s.Progress = true, uint16(sks[1])<<8|uint16(sks[2])
		}
	}
	switch b[0] & 0x7f {
	case 0x70, 0x71:
		s.Key, s.Deferred = Key(b[2]&0x0f), b[0]&1 != 0
		s.ASC = ASC(b[12])<<8 | ASC(b[13])
		for _, x := range b[3:7] {
			s.Info = s.Info<<8 | uint64(x)
		}
		s.InfoValid = b[0]&0x80 != 0
		specific(b[15:18])
	case 0x72, 0x73:
		s.Key, s.Deferred = Key(b[1]&0x0f), b[0]&1 != 0
		s.ASC = ASC(b[2])<<8 | ASC(b[3])
		for d := b[8:]; len(d) > 0; d = d[2+d[1]:] {
			switch {
			case d[0] == 0 && d[1] == 0x0a:
				s.InfoValid = d[2]&0x80 != 0
				for _, x := range d[4:12] {
					s.Info = s.Info<<8 | uint64(x)
				}
			case d[0] == 2 && d[1] == 6:
				specific(d[4:7])
			default:
				t.Fatalf("descriptor %x of %d bytes", d[0], d[1])
			}
		}
	default:
		t.Fatalf("response code %x", b[0])
	}
	return s
}

func drawSense(t *rapid.T) Data {
	s := Data{
		Key:      Key(rapid.IntRange(0, 15).Draw(t, "key")),
		ASC:      ASC(rapid.Uint16().Draw(t, "asc")),
		Deferred: rapid.Bool().Draw(t, "deferred"),
	}
	if rapid.Bool().Draw(t, "info") {
		s.InfoValid, s.Info = true, rapid.Uint64().Draw(t, "information")
	}
	specific := rapid.Bool().Draw(t, "specific")
	switch {
	case specific && s.Key == IllegalRequest:
		s.FieldValid, s.FieldInCDB = true, rapid.Bool().Draw(t, "cdb")
		s.Field = rapid.Uint16().Draw(t, "field")
		if rapid.Bool().Draw(t, "bitValid") {
			s.BitValid, s.Bit = true, uint8(rapid.IntRange(0, 7).Draw(t, "bit"))
		}
	case specific:
		s.ProgressValid, s.Progress = true, rapid.Uint16().Draw(t, "progress")
	}
	return s
}

func TestSenseDecodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSense(t)
		prefix := []byte("prefix")
		descriptor := s.Append(prefix, true)
		if !bytes.HasPrefix(descriptor, prefix) || len(descriptor)-len(prefix) > MaxLength {
			t.Fatalf("appended %x", descriptor)
		}
		if got := decodeSense(t, descriptor[len(prefix):]); got != s {
			t.Fatalf("descriptor format says %+v, want %+v", got, s)
		}
		if s.Info > math.MaxUint32 {
			s.InfoValid, s.Info = false, 0
		}
		if got := decodeSense(t, s.Append(nil, false)); got != s {
			t.Fatalf("fixed format says %+v, want %+v", got, s)
		}
	})
}

func TestInvalidFieldInCDBIsShared(t *testing.T) {
	for field := range maxCDB {
		for bit := NoBit; bit < 8; bit++ {
			s := InvalidFieldInCDB(field, bit)
			want := Data{Key: IllegalRequest, ASC: 0x2400, FieldValid: true, FieldInCDB: true, Field: uint16(field)}
			if bit != NoBit {
				want.BitValid, want.Bit = true, uint8(bit)
			}
			if *s != want || s != InvalidFieldInCDB(field, bit) {
				t.Errorf("byte %d bit %d: %+v", field, bit, *s)
			}
		}
	}
}

func TestSenseAppendDoesNotAllocate(t *testing.T) {
	dst := make([]byte, 0, MaxLength)
	s := InvalidFieldInCDB(1, 2)
	if n := testing.AllocsPerRun(100, func() { s.Append(dst, true); s.Append(dst, false) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The codes as SPC-4 annex D prints them.
func TestSenseCodes(t *testing.T) {
	tests := []struct {
		words string
		sense *Data
		key   Key
		asc   ASC
	}{
		{"NO ADDITIONAL SENSE INFORMATION", NoAdditionalSense, 0x0, 0x0000},
		{"LOGICAL UNIT NOT READY, INITIALIZING COMMAND REQUIRED", InitializingCommandRequired, 0x2, 0x0402},
		{"LOGICAL UNIT NOT READY, MANUAL INTERVENTION REQUIRED", ManualInterventionRequired, 0x2, 0x0403},
		{"INVALID FIELD IN COMMAND INFORMATION UNIT", InvalidFieldInIU, 0x5, 0x0e03},
		{"WRITE ERROR - UNEXPECTED UNSOLICITED DATA", UnexpectedUnsolicitedData, 0xb, 0x0c0c},
		{"WRITE ERROR - NOT ENOUGH UNSOLICITED DATA", NotEnoughUnsolicitedData, 0xb, 0x0c0d},
		{"PARAMETER LIST LENGTH ERROR", ParameterListLengthError, 0x5, 0x1a00},
		{"MISCOMPARE DURING VERIFY OPERATION", MiscompareAt(0), 0xe, 0x1d00},
		{"INVALID COMMAND OPERATION CODE", InvalidOpcode, 0x5, 0x2000},
		{"LOGICAL BLOCK ADDRESS OUT OF RANGE", LBAOutOfRange, 0x5, 0x2100},
		{"LOGICAL UNIT NOT SUPPORTED", LUNotSupported, 0x5, 0x2500},
		{"WRITE PROTECTED", WriteProtected, 0x7, 0x2700},
		{"LOGICAL UNIT SOFTWARE WRITE PROTECTED", SoftwareWriteProtected, 0x7, 0x2702},
		{"SPACE ALLOCATION FAILED WRITE PROTECT", SpaceAllocationFailed, 0x7, 0x2707},
		{"SAVING PARAMETERS NOT SUPPORTED", SaveNotSupported, 0x5, 0x3900},
		{"PROTOCOL SERVICE CRC ERROR", ProtocolServiceCRCError, 0xb, 0x4705},
		{"INSUFFICIENT RESOURCES", InsufficientResources, 0xb, 0x5503},
	}
	for _, tt := range tests {
		if tt.sense.Key != tt.key || tt.sense.ASC != tt.asc {
			t.Errorf("%s: key %x, code %04x; want %x, %04x", tt.words, tt.sense.Key, tt.sense.ASC, tt.key, tt.asc)
		}
	}
}
