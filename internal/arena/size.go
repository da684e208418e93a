package arena

import (
	"strconv"
	"strings"
)

// Bytes writes a number of bytes for people: "4 GiB", "1.5 MiB".
func Bytes(n int64) string {
	unit, name := int64(1), "bytes"
	for _, u := range []struct {
		unit int64
		name string
	}{{1 << 10, "KiB"}, {1 << 20, "MiB"}, {1 << 30, "GiB"}, {1 << 40, "TiB"}} {
		if n >= u.unit {
			unit, name = u.unit, u.name
		}
	}
	return strings.TrimSuffix(strconv.FormatFloat(float64(n)/float64(unit), 'f', 1, 64), ".0") + " " + name
}
