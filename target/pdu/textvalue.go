package pdu

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrValue is the class of values that are not of their key's kind.
var ErrValue = errors.New("invalid value")

// ParseNumber reads a numerical value (RFC 7143 6.1): a decimal constant
// without leading zeros, or 0x and hexadecimal digits. Errors wrap ErrValue.
func ParseNumber(s string) (uint64, error) {
	digits, base := s, 10
	if hasPrefix(s, 'x') {
		digits, base = s[2:], 16
	} else if len(s) > 1 && s[0] == '0' {
		return 0, fmt.Errorf("%w: number %q has leading zeros", ErrValue, s)
	}
	if strings.ContainsAny(digits, "+-_") {
		return 0, fmt.Errorf("%w: %q, expected a number", ErrValue, s)
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %q, expected a number below 2^64", ErrValue, s)
	}
	return n, nil
}

// FormatNumber is the decimal constant of n.
func FormatNumber(n uint64) string { return strconv.FormatUint(n, 10) }

// ParseBoolean reads a boolean value: Yes or No. Errors wrap ErrValue.
func ParseBoolean(s string) (bool, error) {
	switch s {
	case ValueYes:
		return true, nil
	case ValueNo:
		return false, nil
	}
	return false, fmt.Errorf("%w: %q, expected Yes or No", ErrValue, s)
}

// FormatBoolean is Yes or No.
func FormatBoolean(v bool) string {
	if v {
		return ValueYes
	}
	return ValueNo
}

// ParseList splits a list of values; the empty string is the empty list.
func ParseList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

// ParseBinary decodes a binary value of at most limit bytes: 0x and
// hexadecimal digits, of which an odd first one is a byte by itself, or 0b and
// base64 (RFC 7143 6.1). Errors wrap ErrValue and do not quote the value,
// which may be derived from a secret.
func ParseBinary(s string, limit int) ([]byte, error) {
	if !isBinary(s) {
		return nil, fmt.Errorf("%w: expected 0x or 0b and binary data", ErrValue)
	}
	if len(s)-2 > 2*limit+1 {
		return nil, fmt.Errorf("%w: binary value of %d digits, expected at most %d bytes", ErrValue, len(s)-2, limit)
	}
	decoded, err := decodeBinary(s)
	if err != nil {
		return nil, err
	}
	if len(decoded) == 0 || len(decoded) > limit {
		return nil, fmt.Errorf("%w: binary value of %d bytes, expected 1 to %d", ErrValue, len(decoded), limit)
	}
	return decoded, nil
}

func decodeBinary(s string) ([]byte, error) {
	if hasPrefix(s, 'b') {
		b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s[2:], "="))
		if err != nil {
			return nil, fmt.Errorf("%w: not base64", ErrValue)
		}
		return b, nil
	}
	digits := s[2:]
	if len(digits)%2 != 0 {
		digits = "0" + digits
	}
	b, err := hex.DecodeString(digits)
	if err != nil {
		return nil, fmt.Errorf("%w: not hexadecimal", ErrValue)
	}
	return b, nil
}

// FormatBinary is the hexadecimal constant of b.
func FormatBinary(b []byte) string { return "0x" + hex.EncodeToString(b) }

// isBinary reports that s starts like a hexadecimal or base64 constant.
func isBinary(s string) bool { return hasPrefix(s, 'x') || hasPrefix(s, 'b') }

// hasPrefix reports that s starts with 0 and the letter in either case.
func hasPrefix(s string, letter byte) bool {
	return len(s) >= 2 && s[0] == '0' && s[1]|0x20 == letter
}
