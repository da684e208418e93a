package scheduler

// Patterns hold '*' for any text and '?' for any one byte; all other bytes
// stand for themselves, letter case included, as iSCSI names are compared.

// Matches reports whether a pattern of a Rule or Group matches a name.
func Matches(pattern, name string) bool { return matches(pattern, name) }

// matches reports whether a pattern matches a name.
func matches(pattern, name string) bool {
	star, mark, p, n := -1, 0, 0, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// overlap reports whether some name matches both patterns. Row i of the table
// says with which rests of b the rest a[i:] has a name in common.
func overlap(a, b string) bool {
	next, row := make([]bool, len(b)+1), make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		for j := len(b); j >= 0; j-- {
			row[j] = overlapAt(a, b, i, j, row, next)
		}
		next, row = row, next
	}
	return next[0]
}

func overlapAt(a, b string, i, j int, row, next []bool) bool {
	switch {
	case i == len(a) && j == len(b):
		return true
	case i < len(a) && a[i] == '*':
		return next[j] || j < len(b) && row[j+1]
	case j < len(b) && b[j] == '*':
		return row[j+1] || i < len(a) && next[j]
	case i == len(a) || j == len(b):
		return false
	}
	return (a[i] == '?' || b[j] == '?' || a[i] == b[j]) && next[j+1]
}

// specificity orders patterns: more literal bytes are more specific, and of as
// many the pattern without a '*'.
func specificity(pattern string) int {
	literal, exact := 0, 1
	for i := range len(pattern) {
		switch pattern[i] {
		case '*':
			exact = 0
		case '?':
		default:
			literal++
		}
	}
	return 2*literal + exact
}
