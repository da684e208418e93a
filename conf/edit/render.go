package edit

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// plainText needs no quotes; in braces and brackets also no colon may be in it.
var plainText = regexp.MustCompile(`^[A-Za-z0-9/_]([A-Za-z0-9/_.+%-]|:[A-Za-z0-9/_.+%-])*$`)

// word writes a key or a scalar.
func word(text string, flow bool) string {
	switch text {
	case "null", "Null", "NULL", "y", "n":
		return quoted(text)
	}
	if !plainText.MatchString(text) || flow && strings.Contains(text, ":") {
		return quoted(text)
	}
	return text
}

// quoted writes a text in double quotes.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02X`, r)
		case !unicode.IsPrint(r) && r < 0x10000:
			fmt.Fprintf(&b, `\u%04X`, r)
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\U%08X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// flow writes a value on one line.
func flow(v any) string {
	switch v := v.(type) {
	case nil:
		return "{}"
	case Object:
		parts := make([]string, 0, len(v))
		for _, key := range inOrder(keysOf(v)) {
			parts = append(parts, word(key, true)+": "+inner(v[key]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, 0, len(v))
		for _, e := range v {
			parts = append(parts, inner(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return scalarText(v, false)
}

// inner writes a value in braces or brackets.
func inner(v any) string {
	switch v.(type) {
	case nil, Object, []any:
		return flow(v)
	}
	return scalarText(v, true)
}

// scalarText quotes what would be something else without quotes to other readers of
// YAML.
func scalarText(v any, flow bool) string {
	text, _ := textOf(v)
	if s, ok := v.(string); ok && s != "" && (plainValue(s) != any(s)) {
		return quoted(s)
	}
	return word(text, flow)
}

// isFlat reports whether a value is better on one line: a scalar, or a collection of
// them.
func isFlat(v any) bool {
	switch v := v.(type) {
	case Object:
		for _, e := range v {
			if _, ok := e.(Object); ok || !isFlat(e) {
				return false
			}
		}
	case []any:
		for _, e := range v {
			switch e.(type) {
			case Object, []any:
				return false
			}
		}
	}
	return true
}

// openLevels is how deep mappings have a line for each key: those of sections, and of
// the objects with names.
const openLevels = 2

// block writes an entry of a mapping in block style. level is how deep the mapping is.
func (s *splicer) block(b *strings.Builder, key string, v any, indent, level int) {
	b.WriteString(strings.Repeat(" ", indent) + word(key, false) + ":")
	s.blockValue(b, v, indent, level)
}

// blockValue writes what follows a colon.
func (s *splicer) blockValue(b *strings.Builder, v any, indent, level int) {
	o, isObject := v.(Object)
	list, isList := v.([]any)
	switch {
	case isEmpty(v) || isFlat(v) && !(isObject && level < openLevels):
		b.WriteString(" " + flow(v) + "\n")
	case isObject:
		b.WriteString("\n")
		for _, k := range inOrder(keysOf(o)) {
			s.block(b, k, o[k], indent+2, level+1)
		}
	case isList:
		b.WriteString("\n")
		for _, e := range list {
			b.WriteString(strings.Repeat(" ", indent+2) + "- " + flow(e) + "\n")
		}
	}
}
