package top

import (
	"math"
	"strconv"
	"strings"

	"lunar/internal/bytesize"
)

// perSecond is a number of things in a second.
type perSecond float64

// String has a comma before every third digit.
func (n perSecond) String() string { return grouped(int64(math.Round(float64(n)))) }

func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// tokens is an amount of them.
type tokens int64

// String has a comma before every third digit.
func (n tokens) String() string { return grouped(int64(n)) }

// bytesPerSecond is data in a second.
type bytesPerSecond float64

// String has three digits and a unit.
func (n bytesPerSecond) String() string { return bytesize.Text(int64(n)) + "/s" }

// wholePercent is a share without a fraction.
type wholePercent float64

// String is such as 63%.
func (n wholePercent) String() string { return strconv.Itoa(int(math.Round(100*float64(n)))) + "%" }

// marks are eighths of the height of a line.
var marks = []rune("▁▂▃▄▅▆▇█")

// curve draws the last values of a series in a line, in parts of the largest or of whole,
// whichever is more.
func curve(series []int64, whole int64, width int) string {
	series = series[max(0, len(series)-width):]
	for _, n := range series {
		whole = max(whole, n)
	}
	var b strings.Builder
	for _, n := range series {
		part := 0
		if whole > 0 {
			part = int(max(0, n) * int64(len(marks)-1) / whole)
		}
		b.WriteRune(marks[part])
	}
	return b.String()
}

// bar draws a share of a width.
func bar(share float64, width int) string {
	full := int(math.Round(min(1, max(0, share)) * float64(width)))
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}
