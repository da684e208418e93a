package pdu

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Limits of text negotiation (RFC 7143 6.1).
const (
	// MaxKeyLength is the greatest length of a key in bytes.
	MaxKeyLength = 63
	// MaxValueLength is the greatest length in bytes of one value, that is
	// of one element of a list; large binary values are not bound by it.
	MaxValueLength = 255
	// MaxBinaryLength is the greatest length in bytes of a large binary value
	// after decoding.
	MaxBinaryLength = 1024
	// MaxTextLength bounds the text that an Accumulator gathers, in bytes.
	MaxTextLength = 64 << 10
)

// Constant values with which a peer answers a key (RFC 7143 6.2).
const (
	ValueNone          = "None"
	ValueReject        = "Reject"
	ValueIrrelevant    = "Irrelevant"
	ValueNotUnderstood = "NotUnderstood"
	ValueYes           = "Yes"
	ValueNo            = "No"
)

// Classes of text errors.
var (
	// ErrText is the class of malformed text segments.
	ErrText = errors.New("malformed text")
	// ErrTextTooLong tells that continued text exceeds MaxTextLength.
	ErrTextTooLong = errors.New("continued text too long")
)

// Pair is one key=value of a text segment.
type Pair struct {
	Key, Value string
}

// maxEncodedBinary is the length of the longest large binary value: "0x" and
// two digits a byte.
const maxEncodedBinary = 2 + 2*MaxBinaryLength

// ParseText splits a text segment, with all its continuations, into pairs in
// their order. Empty strings between NULs are skipped. Duplicate keys are
// allowed, since a SendTargets answer repeats TargetName; see DuplicateKey.
// Errors wrap ErrText. The pairs do not alias text.
func ParseText(text []byte) ([]Pair, error) {
	var pairs []Pair
	for len(text) > 0 {
		end := bytes.IndexByte(text, 0)
		if end < 0 {
			return nil, fmt.Errorf("%w: last pair of %d bytes has no NUL", ErrText, len(text))
		}
		if end > 0 {
			p, err := parsePair(string(text[:end]))
			if err != nil {
				return nil, err
			}
			pairs = append(pairs, p)
		}
		text = text[end+1:]
	}
	return pairs, nil
}

func parsePair(s string) (Pair, error) {
	key, value, ok := strings.Cut(s, "=")
	if !ok {
		return Pair{}, fmt.Errorf("%w: pair of %d bytes has no '='", ErrText, len(s))
	}
	if err := checkKey(key); err != nil {
		return Pair{}, err
	}
	if err := checkValue(key, value); err != nil {
		return Pair{}, err
	}
	return Pair{key, value}, nil
}

// checkKey enforces RFC 7143 6.1's key-name: a letter, then letters, digits and
// .-+@_. Lower-case first letters are accepted because iSCSIProtocolLevel has
// one, '#' because extension keys start with X#.
func checkKey(key string) error {
	if key == "" || len(key) > MaxKeyLength {
		return fmt.Errorf("%w: key of %d bytes, expected 1 to %d", ErrText, len(key), MaxKeyLength)
	}
	if c := key[0] | 0x20; c < 'a' || c > 'z' {
		return fmt.Errorf("%w: key %q does not start with a letter", ErrText, key)
	}
	for i := range len(key) {
		if !isKeyByte(key[i]) {
			return fmt.Errorf("%w: key %q has the character %q", ErrText, key, key[i])
		}
	}
	return nil
}

func isKeyByte(c byte) bool {
	switch {
	case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		return true
	}
	return strings.IndexByte(".-+@_#", c) >= 0
}

// checkValue accepts UTF-8 without control characters, since names and
// aliases may be international (RFC 7143 6.1). The value may be a secret's
// image, so no error quotes it.
func checkValue(key, value string) error {
	if !utf8.ValidString(value) {
		return fmt.Errorf("%w: value of %s is not UTF-8", ErrText, key)
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' || c == 0x7f {
			return fmt.Errorf("%w: value of %s has the control character 0x%02x", ErrText, key, c)
		}
	}
	for element := range strings.SplitSeq(value, ",") {
		limit := MaxValueLength
		if isBinary(element) {
			limit = maxEncodedBinary
		}
		if len(element) > limit {
			return fmt.Errorf("%w: value of %s has %d bytes, expected at most %d", ErrText, key, len(element), limit)
		}
	}
	return nil
}

// DuplicateKey returns the first key that occurs twice in pairs.
func DuplicateKey(pairs []Pair) (key string, found bool) {
	seen := make(map[string]bool, len(pairs))
	for _, p := range pairs {
		if seen[p.Key] {
			return p.Key, true
		}
		seen[p.Key] = true
	}
	return "", false
}

// AppendPair appends key=value and its NUL to dst.
func AppendPair(dst []byte, key, value string) []byte {
	dst = append(dst, key...)
	dst = append(dst, '=')
	dst = append(dst, value...)
	return append(dst, 0)
}

// AppendText appends pairs in their order to dst.
func AppendText(dst []byte, pairs []Pair) []byte {
	for _, p := range pairs {
		dst = AppendPair(dst, p.Key, p.Value)
	}
	return dst
}

// Accumulator joins the text of PDUs that are continued by the C bit. The zero
// value is ready.
type Accumulator struct {
	text []byte
}

// Add takes the data segment of one PDU; more is its C bit. When the text is
// complete, done is true and text is the whole, which stays valid until the
// next Add; segment itself is not kept. Text beyond MaxTextLength is dropped
// with ErrTextTooLong, and the Accumulator is empty again.
func (a *Accumulator) Add(segment []byte, more bool) (text []byte, done bool, err error) {
	if n := len(a.text) + len(segment); n > MaxTextLength {
		a.text = nil
		return nil, false, fmt.Errorf("%w: %d bytes, expected at most %d", ErrTextTooLong, n, MaxTextLength)
	}
	a.text = append(a.text, segment...)
	if more {
		return nil, false, nil
	}
	text, a.text = a.text, a.text[:0]
	return text, true, nil
}

// Len is the number of bytes that wait for their continuation.
func (a *Accumulator) Len() int { return len(a.text) }
