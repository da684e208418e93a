// Package iscsiname checks the names of iSCSI nodes that peers claim (RFC 7143 section
// 4.2.7, RFC 3722), and makes text of peers fit to be shown.
package iscsiname

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/unicode/norm"
)

// Max is the greatest length of a name in bytes (RFC 7143 section 4.2.7.1).
const Max = 223

// formats are those of section 4.2.7: a date and a reversed domain, and what its owner
// has made of it; an EUI-64; an NAA identifier. AIX makes names of a domain and a host ID,
// without a date.
var formats = regexp.MustCompile(`^(iqn\.([0-9]{4}-(0[1-9]|1[0-2])\..+|.+\.hostid\.[0-9a-f]{1,8})|eui\.[0-9a-f]{16}|naa\.([0-9a-f]{16}|[0-9a-f]{32}))$`)

// punctuation is what RFC 3722 section 6.2 leaves of ASCII. The low line is not among
// it, but initiators make names of those of hosts and virtual machines, which have it.
const punctuation = "-.:_"

// Normal returns a name in lower case. The error tells why it is none, and what is
// wrong with it can be shown.
func Normal(name string) (string, error) {
	lower := strings.ToLower(name)
	if len(lower) > Max {
		return "", fmt.Errorf("a name of %d bytes, expected at most %d", len(lower), Max)
	}
	for i, r := range lower {
		if !allowed(r) {
			return "", fmt.Errorf("%U at byte %d of the name %q, expected letters, digits and %s written from left to right", r, i, Printable(name), punctuation)
		}
	}
	switch {
	case !formats.MatchString(lower):
		return "", fmt.Errorf("the name %q, expected iqn.YYYY-MM.reversed.domain:unique, eui. with 16 or naa. with 16 or 32 hexadecimal digits", Printable(name))
	case !norm.NFKC.IsNormalString(lower):
		return "", fmt.Errorf("the name %q, expected it as normal form KC (RFC 3722) has it", Printable(name))
	}
	return lower, nil
}

// allowed excludes what does not show, and letters written from right to left: every
// name begins with others, beside which RFC 3454 section 6 forbids them.
func allowed(r rune) bool {
	switch p, _ := bidi.LookupRune(r); {
	case strings.ContainsRune(punctuation, r):
		return true
	case p.Class() == bidi.R || p.Class() == bidi.AL:
		return false
	}
	return unicode.In(r, unicode.Letter, unicode.Digit, unicode.Mark)
}

// Printable replaces what would not show, or would show something else than is there:
// control characters, and those that change the direction of text.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}
