package foreign

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// Fields of a designation descriptor (SPC-4 clause 7.8.6.1).
const (
	binaryCode = 0x1
	asciiCode  = 0x2
	utf8Code   = 0x3

	t10Type   = 0x1
	euiType   = 0x2
	naaType   = 0x3
	groupType = 0x6
	nameType  = 0x8
	uuidType  = 0xa

	protocolValid = 0x80
)

// descriptor is a designation descriptor of a logical unit.
func descriptor(code, kind byte, id []byte) []byte {
	id = id[:min(len(id), 255)]
	return append([]byte{code, kind, 0, byte(len(id))}, id...)
}

// padded cuts text to n bytes, or fills it up.
func padded(text string, n int, fill byte) []byte {
	out := []byte(text)
	for len(out) < n {
		out = append(out, fill)
	}
	return out[:n]
}

// unitGroup is the designator of a logical unit group.
func unitGroup(code byte, piv byte, group uint16) []byte {
	return descriptor(code, piv|groupType, binary.BigEndian.AppendUint16([]byte{0, 0}, group))
}

// onlyHex is a text without what is no hexadecimal digit, in lower case.
func onlyHex(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789abcdef", r) {
			return r
		}
		return -1
	}, strings.ToLower(text))
}

// hexDigits are the digits of a text as n bytes, with zeroes behind them. What is no
// digit is left out.
func hexDigits(text string, n int) []byte {
	digits := onlyHex(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(text)), "0x"))
	out, _ := hex.DecodeString(digits + "0"[:len(digits)%2])
	return append(out, make([]byte, n)...)[:n]
}

// be64 is a number as eight bytes.
func be64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// hexOf writes descriptors as digits.
func hexOf(all [][]byte) string {
	var b strings.Builder
	for _, one := range all {
		b.WriteString(hex.EncodeToString(one) + " ")
	}
	return b.String()
}
