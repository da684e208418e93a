// Package bytesize writes numbers of bytes for people, in logs, messages and tables. Sizes
// of a configuration, which are exact, are conf's.
package bytesize

import "strconv"

const units = "KMGTPE"

// Text writes bytes with three digits and a binary unit, such as 10.2MiB; none if they are
// negative.
func Text[N int64 | uint64](bytes N) string {
	if bytes < 1<<10 {
		return strconv.FormatInt(int64(max(bytes, 0)), 10) + "B"
	}
	value, unit := float64(bytes)/(1<<10), 0
	for value >= 999.5 && unit < len(units)-1 {
		value, unit = value/(1<<10), unit+1
	}
	return strconv.FormatFloat(value, 'g', 3, 64) + units[unit:unit+1] + "iB"
}
