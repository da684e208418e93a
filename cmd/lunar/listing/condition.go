package listing

import (
	"regexp"
	"strings"
)

// form is that of a condition. The first operator in it counts, so that a pattern may
// have others.
var form = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9/.-]*)(!=|<=|>=|=|<|>)(.*)$`)

// condition reads COLUMN=PATTERN, COLUMN!=PATTERN, or a comparison with a number. A
// pattern is about the text that the table shows, with * and ?, in upper or lower case.
func (t Table[R]) condition(text string) (func(*R) bool, error) {
	m := form.FindStringSubmatch(text)
	if m == nil {
		return nil, mistake("--filter: found %q, expected COLUMN=PATTERN, COLUMN!=PATTERN or COLUMN>NUMBER (<, >=, <=), such as state=ok or 'dirty>1GiB'", text)
	}
	c, err := t.column("filter", m[1])
	if err != nil {
		return nil, err
	}
	switch operator := m[2]; operator {
	case "=", "!=":
		pattern := glob(m[3])
		return func(r *R) bool { return pattern.MatchString(Text(c.Of(r))) == (operator == "=") }, nil
	default:
		n, ok := quantity(m[3])
		if !ok {
			return nil, mistake("--filter: found %q, expected a number behind %s, such as 5, 1GiB or 90%%", text, operator)
		}
		return func(r *R) bool {
			v, ok := number(c.Of(r))
			return ok && holds(v, operator, n)
		}, nil
	}
}

func holds(a float64, operator string, b float64) bool {
	switch operator {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	}
	return a >= b
}

// glob has * for any text and ? for one character. Slashes and brackets, which
// addresses and volumes have, are nothing special.
func glob(pattern string) *regexp.Regexp {
	pattern = strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile("(?is)^" + pattern + "$")
}
