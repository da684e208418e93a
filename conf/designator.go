package conf

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// naaDigits are the NAA designators of SPC-4 clause 7.8.6.6: IEEE extended, locally
// assigned and IEEE registered of 8 bytes, IEEE registered extended of 16.
var naaDigits = regexp.MustCompile(`^([235][0-9a-f]{15}|6[0-9a-f]{31})$`)

func naa(to *string) setter {
	return parsed(to, "16 hexadecimal digits that begin with 2, 3 or 5, or 32 that begin with 6", func(s string) (string, bool) {
		s = strings.TrimPrefix(strings.ToLower(s), "0x")
		return s, naaDigits.MatchString(s)
	})
}

// maxSerial is how much of a unit serial number there may be: other targets send up to
// 254 bytes.
const maxSerial = 252

// serial accepts what other targets make of a serial number besides text: spaces
// around it, and NULs at its end.
func serial(to *string) setter {
	return text(to, fmt.Sprintf("1 to %d printable ASCII characters, NULs (\\0) only at the end", maxSerial), func(s string) bool {
		printed := strings.TrimRight(s, "\x00")
		graphic := !strings.ContainsFunc(printed, func(r rune) bool { return r < ' ' || r > '~' })
		return graphic && strings.TrimSpace(printed) != "" && len(s) <= maxSerial
	})
}

// Designator types (SPC-5 clause 7.7.6) that name one logical unit in the world.
const (
	designatorT10Vendor = 0x1
	designatorEUI64     = 0x2
	designatorNAA       = 0x3
	designatorName      = 0x8
	designatorUUID      = 0xa
)

const wantDesignator = "a designation descriptor of VPD page 83h in hexadecimal digits, of the logical unit itself: 4 bytes of header and as many as the fourth of them says"

// designator accepts a descriptor with association 00b (SPC-4 clause 7.8.6.1).
func designator(to *string) setter {
	return parsed(to, wantDesignator, func(s string) (string, bool) {
		s = strings.ToLower(strings.ReplaceAll(s, " ", ""))
		raw, err := hex.DecodeString(s)
		return s, err == nil && len(raw) > 4 && len(raw) == 4+int(raw[3]) && raw[1]&0x30 == 0 && raw[2] == 0 && fits(raw)
	})
}

// fits checks the length of designators that have one by definition.
func fits(raw []byte) bool {
	switch raw[1] & 0x0f {
	case designatorEUI64:
		return slices.Contains([]int{8, 12, 16}, len(raw)-4)
	case designatorNAA:
		return naaDigits.MatchString(hex.EncodeToString(raw[4:]))
	}
	return true
}

// maxDesignators bounds how many descriptors a volume may have.
const maxDesignators = 16

// validateIdentity checks that no two volumes have one name, and that initiators find
// one to tell a volume by.
func (d *decoder) validateIdentity(seen map[string]string, v *Volume) {
	path := "volumes." + v.Name
	if v.NAA != "" {
		d.once(seen, path+".naa", naaDescriptor(v.NAA), v.Name)
	}
	named := false
	for i, text := range v.Designators {
		raw, _ := hex.DecodeString(text)
		if len(raw) < 4 {
			continue // it is reported as what it is
		}
		switch raw[1] & 0x0f {
		case designatorT10Vendor, designatorEUI64, designatorNAA:
			named = true
			fallthrough
		case designatorName, designatorUUID:
			d.once(seen, fmt.Sprintf("%s.designators[%d]", path, i), fmt.Sprintf("%x %x", raw[1]&0x0f, raw[4:]), v.Name)
		}
	}
	if v.Designators != nil && !named || len(v.Designators) > maxDesignators {
		d.fail(path+".designators", fmt.Sprintf("%d descriptors", len(v.Designators)), fmt.Sprintf("up to %d, one of them a T10 vendor identification, EUI-64 or NAA (type 1, 2 or 3)", maxDesignators))
	}
}

// naaDescriptor is how validateIdentity writes an NAA of the key naa.
func naaDescriptor(digits string) string { return fmt.Sprintf("%x %s", designatorNAA, digits) }
