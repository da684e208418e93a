package conf

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes.
type Size int64

// Binary units.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

// sizeUnits is ordered from the largest, which String prefers.
var sizeUnits = []struct {
	suffix string
	bytes  Size
}{{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}}

var errSize = errors.New("expected a whole number with KiB, MiB, GiB or TiB, such as 64MiB")

// ParseSize reads a whole number with a binary unit, such as 10GiB. Nothing,
// 0B, needs no other unit.
func ParseSize(text string) (Size, error) {
	if text == Size(0).String() {
		return 0, nil
	}
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(text, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimRight(digits, " "), 10, 63)
		if err != nil || n > uint64(math.MaxInt64/u.bytes) {
			return 0, errSize
		}
		return Size(n) * u.bytes, nil
	}
	return 0, errSize
}

// String writes the size in the largest unit that divides it.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && s%u.bytes == 0 {
			return strconv.FormatInt(int64(s/u.bytes), 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}
