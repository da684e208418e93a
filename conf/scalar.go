package conf

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// parsed makes a setter from a function that reads a scalar's text.
func parsed[T any](to *T, expected string, parse func(string) (T, bool)) setter {
	return func(d *decoder, n node) {
		text, isScalar := n.scalar()
		if isScalar {
			if value, ok := parse(text); ok {
				*to = value
				return
			}
		}
		if _, colon := n.ast.(ast.MapNode); colon {
			expected += " (in quotes if it holds a colon)"
		}
		d.fail(n.path, n.describe(), expected)
	}
}

// text accepts any scalar that valid does.
func text(to *string, expected string, valid func(string) bool) setter {
	return parsed(to, expected, func(s string) (string, bool) { return s, valid(s) })
}

// printable accepts ASCII graphic characters and inner spaces, up to limit.
func printable(to *string, limit int) setter {
	return text(to, fmt.Sprintf("1 to %d printable ASCII characters", limit), func(s string) bool {
		graphic := !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
		return graphic && s != "" && len(s) <= limit && s == strings.TrimSpace(s)
	})
}

// number accepts a decimal integer of a range.
func number(to *int, low, high int) setter {
	return parsed(to, fmt.Sprintf("a whole number from %d to %d", low, high), func(s string) (int, bool) {
		v, err := strconv.Atoi(s)
		return v, err == nil && v >= low && v <= high && strconv.Itoa(v) == s
	})
}

// count is number or auto, which is stored as 0.
func count(to *int, high int) setter {
	return parsed(to, fmt.Sprintf("auto or a whole number from 1 to %d", high), func(s string) (int, bool) {
		if s == "auto" {
			return 0, true
		}
		v, err := strconv.Atoi(s)
		return v, err == nil && v >= 1 && v <= high
	})
}

// size accepts a multiple of unit within a range.
func size(to *Size, unit, low, high Size) setter {
	expected := fmt.Sprintf("a size from %v to %v, such as %v", low, high, max(low, 64*MiB))
	if unit > 1 {
		expected = fmt.Sprintf("a multiple of %v from %v to %v", unit, low, high)
	}
	return parsed(to, expected, func(s string) (Size, bool) {
		v, err := ParseSize(s)
		return v, err == nil && v >= low && v <= high && v%unit == 0
	})
}

// amount accepts a size within a range, or a share.
func amount(to *Amount, low, high Size, also string) setter {
	expected := fmt.Sprintf("a size from %v to %v, or a share from 1%% to %d%%%s", low, high, maxPercent, also)
	return parsed(to, expected, func(s string) (Amount, bool) {
		a, err := ParseAmount(s)
		return a, err == nil && (a.Percent > 0 || a.Bytes >= low && a.Bytes <= high)
	})
}

// powerOfTwo accepts a size within a range that is a power of two.
func powerOfTwo(to *Size, low, high Size) setter {
	return parsed(to, fmt.Sprintf("a power of two from %v to %v", low, high), func(s string) (Size, bool) {
		return parsePowerOfTwo(s, low, high)
	})
}

func parsePowerOfTwo(s string, low, high Size) (Size, bool) {
	v, err := ParseSize(s)
	return v, err == nil && v >= low && v <= high && v&(v-1) == 0
}

// percent accepts a share such as 20%.
func percent(to *int, low, high int) setter {
	return parsed(to, fmt.Sprintf("a share from %d%% to %d%%", low, high), func(s string) (int, bool) {
		digits, share := strings.CutSuffix(s, "%")
		v, err := strconv.Atoi(digits)
		return v, share && err == nil && v >= low && v <= high && strconv.Itoa(v) == digits
	})
}

// duration accepts a time with a unit within a range.
func duration(to *time.Duration, low, high time.Duration) setter {
	return parsed(to, fmt.Sprintf("a time from %v to %v, such as 15s", low, high), func(s string) (time.Duration, bool) {
		v, err := time.ParseDuration(s)
		return v, err == nil && v >= low && v <= high
	})
}

// oneOf accepts one of some words.
func oneOf[T ~string](to *T, words ...T) setter {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = string(w)
	}
	return parsed(to, "one of "+strings.Join(names, ", "), func(s string) (T, bool) {
		return T(s), slices.Contains(words, T(s))
	})
}

// boolean accepts true and false, and none of YAML 1.1's other words for them.
func boolean(to *bool) setter {
	return parsed(to, "true or false", func(s string) (bool, bool) {
		return s == "true", s == "true" || s == "false"
	})
}

// each accepts a list whose elements one makes setters for.
func each[T any](to *[]T, one func(*T) setter) setter {
	return func(d *decoder, n node) {
		*to = nil
		d.list(n, func(e node) {
			var v T
			one(&v)(d, e)
			*to = append(*to, v)
		})
	}
}

// pattern accepts an initiator name or a glob, folded to lower case as
// RFC 3722 does.
func pattern(to *string) setter {
	return parsed(to, WantPattern, func(s string) (string, bool) {
		s = strings.ToLower(s)
		return s, validPattern(s)
	})
}

// network accepts a CIDR block or a single address.
func network(to *netip.Prefix) setter {
	return parsed(to, "an IPv4 or IPv6 network such as 192.0.2.0/24, or an address", func(s string) (netip.Prefix, bool) {
		if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
			a = a.Unmap()
			return netip.PrefixFrom(a, a.BitLen()), true
		}
		p, err := netip.ParsePrefix(s)
		return p.Masked(), err == nil && !p.Addr().Is4In6()
	})
}

// cpuList accepts the kernel's list format, such as 0-3,8.
func cpuList(to *[]int) setter {
	return parsed(to, "a list of CPUs such as 0-3,8", parseCPUs)
}

// maxCPU bounds a CPU number; Linux has no kernel with more.
const maxCPU = 8191

func parseCPUs(s string) ([]int, bool) {
	var cpus []int
	for part := range strings.SplitSeq(s, ",") {
		first, last, ranged := strings.Cut(strings.TrimSpace(part), "-")
		if !ranged {
			last = first
		}
		low, err1 := strconv.Atoi(first)
		high, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || low < 0 || low > high || high > maxCPU {
			return nil, false
		}
		for c := low; c <= high; c++ {
			cpus = append(cpus, c)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), true
}

func validPath(s string) bool { return s != "" && !strings.ContainsRune(s, 0) }
