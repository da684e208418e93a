package conf

import (
	"errors"
	"fmt"
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

var errShare = fmt.Errorf("expected a share from 1%% to %d%%", maxPercent)

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

// Amount is a number of bytes, or a share of a whole that the machine decides.
type Amount struct {
	Bytes   Size
	Percent int // 1 to 100; 0: Bytes
}

// Given reports whether the amount is more than nothing.
func (a Amount) Given() bool { return a != Amount{} }

// Of returns the bytes, of which a share is taken of whole.
func (a Amount) Of(whole Size) Size {
	if a.Percent == 0 {
		return a.Bytes
	}
	return whole/100*Size(a.Percent) + whole%100*Size(a.Percent)/100
}

// String writes the amount as a configuration does.
func (a Amount) String() string {
	if a.Percent == 0 {
		return a.Bytes.String()
	}
	return strconv.Itoa(a.Percent) + "%"
}

// maxPercent bounds shares: something must be left for everything else.
const maxPercent = 90

// ParseAmount reads a size or a share from 1% to 90%.
func ParseAmount(text string) (Amount, error) {
	digits, share := strings.CutSuffix(text, "%")
	if !share {
		bytes, err := ParseSize(text)
		return Amount{Bytes: bytes}, err
	}
	percent, err := strconv.Atoi(digits)
	if err != nil || percent < 1 || percent > maxPercent || strconv.Itoa(percent) != digits {
		return Amount{}, errShare
	}
	return Amount{Percent: percent}, nil
}
