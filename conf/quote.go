package conf

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What of a file a message may quote. A secret can stand anywhere in a broken
// file: a quote that is missing makes it part of another value, a wrong
// indentation another key's, and a slip of the mouse the name of a volume. So
// no line of a file is ever shown, and of its texts only what is known not to
// be a secret: keys that the schema has, names of objects whose definitions can
// be read, and values by the rules below. A message says where everything else
// stands, and how long it is.

// minSecret is the least length of a CHAP secret in bytes: 96 bits (RFC 7143 section
// 9.2.1).
const minSecret = 12

// unnamed stands in a path for a key or name that is not shown.
const unnamed = "?"

// secretive are the top-level keys below which no value is quoted.
var secretive = []string{"auth-groups", "discovery"}

// isSecretive reports whether a path is at or below one of them.
func isSecretive(path string) bool {
	for _, top := range secretive {
		rest, found := strings.CutPrefix(path, top)
		if found && (rest == "" || strings.ContainsAny(rest[:1], ".[")) {
			return true
		}
	}
	return false
}

// publicText matches what looks like an address, a network, an iSCSI name, an
// absolute path of several steps or a DNS name, and like no secret.
var publicText = regexp.MustCompile(`^(` + strings.Join([]string{
	`[0-9]{1,5}(\.[0-9]{1,5}){1,3}(:[0-9]+)?(/[0-9]+)?`,
	`\[?[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7}\]?(:[0-9]+)?(/[0-9]+)?`,
	`(?i:iqn\.[0-9]{4}-|eui\.|naa\.)[^ ]*`,
	`(/[A-Za-z0-9_-][A-Za-z0-9._-]*){2,}`,
	`[a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]{1,5})?`,
}, "|") + `)$`)

// quotable reports whether a value of a key that holds no secrets may be shown:
// one that is too short for a secret, or looks like something else.
func quotable(text string) bool {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return false
	}
	return len(text) < minSecret || len(text) <= maxName && publicText.MatchString(text)
}

// quote is how a message shows a value of a key that holds no secrets.
func quote(text string) string {
	if quotable(text) {
		return fmt.Sprintf("%q", text)
	}
	return notShown(text)
}

// notShown tells of a text what may be told.
func notShown(text string) string {
	if text == "" {
		return `""`
	}
	return fmt.Sprintf("text of %d bytes (not shown: it might be a secret)", len(text))
}

// shownKey is how a path shows a key that a mapping does not have: only if it is
// one of those that are known, or nearly.
func shownKey(name string, known []string) string {
	if _, ok := nearest(name, known); slices.Contains(known, name) || ok && quotable(name) {
		return name
	}
	return unnamed
}
