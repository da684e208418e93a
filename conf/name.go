package conf

import (
	"path"
	"regexp"
	"strings"
	"unicode"
)

// maxName is the longest iSCSI name in bytes (RFC 7143 section 4.2.7.1).
const maxName = 223

const wantName = "an iSCSI name: iqn.YYYY-MM.reversed.domain:unique, eui. with 16 or naa. with 16 or 32 hexadecimal digits, lower case, at most 223 bytes"

// The three formats of RFC 7143 section 4.2.7. The text after the naming
// authority of an iqn name is checked by nameRunes.
var (
	iqnName = regexp.MustCompile(`^iqn\.[0-9]{4}-(0[1-9]|1[0-2])\.[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*(:.+)?$`)
	euiName = regexp.MustCompile(`^eui\.[0-9a-f]{16}$`)
	naaName = regexp.MustCompile(`^naa\.[0-9a-f]{16}([0-9a-f]{16})?$`)
)

// ValidName reports whether name is an iSCSI name in its normal form
// (RFC 7143 section 4.2.7, RFC 3722: lower case, no spaces). RFC 3722 has no underscores;
// names of other targets and of initiators have them, behind the naming authority.
func ValidName(name string) bool {
	if len(name) > maxName || !nameRunes(name, "-.:_") {
		return false
	}
	return iqnName.MatchString(name) || euiName.MatchString(name) || naaName.MatchString(name)
}

// nameRunes reports whether text consists of lower-case letters, digits and
// the given punctuation.
func nameRunes(text, punctuation string) bool {
	for _, r := range text {
		letter := (unicode.IsLetter(r) || unicode.IsDigit(r)) && unicode.ToLower(r) == r
		if !letter && !strings.ContainsRune(punctuation, r) {
			return false
		}
	}
	return true
}

// WantPattern says what ValidPattern takes.
const WantPattern = wantName + ", or a glob for one with * and ?"

// ValidPattern reports whether text, in lower or upper case, is an iSCSI name or
// a glob for one.
func ValidPattern(text string) bool { return validPattern(strings.ToLower(text)) }

// validPattern reports whether text is an iSCSI name or a glob for one.
func validPattern(text string) bool {
	if strings.ContainsAny(text, "*?") {
		return len(text) <= maxName && nameRunes(text, "-.:_*?")
	}
	return ValidName(text)
}

// objectName is what portal groups, auth groups and volumes may be called.
var objectName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

const wantObjectName = "a name of up to 64 letters, digits, '.', '_' and '-'"

// matchesName compares as target.AccessRule does.
func matchesName(glob, name string) bool {
	name = strings.ToLower(name)
	ok, err := path.Match(glob, name)
	return glob == name || err == nil && ok
}
