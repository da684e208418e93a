package conf

import (
	"fmt"
	"strconv"
	"strings"

	"lunar/scheduler"
)

// Everything is the word for all targets, and for all LUNs, of a rule.
const Everything = "all"

// NoRate is the word for a rate that is not there.
const NoRate = "none"

// WantRates is what ParseRates expects.
const WantRates = "a whole number of IOPS from 1 to 1000000000 such as 5000, a size per second from 4KiB to 1TiB such as 20MiB or 20MiB/s, both with a comma between, or none"

// maxRate bounds commands per second, far above what one server can do.
const maxRate = 1e9

// ParseRates reads a reservation, limit or burst, in a file as in a flag: IOPS,
// bytes per second, both in any order with a comma between, or none.
func ParseRates(text string) (rate scheduler.Rate, ok bool) {
	if text == NoRate {
		return rate, true
	}
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		to := &rate.IOPS
		value, ok := parseRate(part)
		if !ok {
			to = &rate.Bytes
			value, ok = parseBandwidth(part)
		}
		if !ok || *to != 0 {
			return scheduler.Rate{}, false
		}
		*to = value
	}
	return rate, true
}

// parseRate reads a number of commands per second.
func parseRate(s string) (int64, bool) { return parseWhole(s, 1, maxRate) }

// parseBandwidth reads a size, with or without /s.
func parseBandwidth(s string) (int64, bool) {
	size, err := ParseSize(strings.TrimSuffix(s, "/s"))
	return int64(size), err == nil && size >= 4*KiB && size <= TiB
}

// noLUN stands for a LUN that could not be read, so that no rule takes it for
// LUN 0.
const noLUN = -1

// ParseRuleLUN reads a LUN of a rule; -1 is all of them.
func ParseRuleLUN(s string) (lun int64, ok bool) {
	if s == Everything {
		return noLUN, true
	}
	return parseWhole(s, 0, MaxLUN)
}

// WantRuleLUN is what ParseRuleLUN expects.
var WantRuleLUN = fmt.Sprintf("%s or a whole number from 0 to %d", Everything, MaxLUN)

// ParseRuleTarget reads the target of a rule, in lower case; empty is all of
// them.
func ParseRuleTarget(s string) (pattern string, ok bool) {
	if s == Everything {
		return "", true
	}
	pattern = strings.ToLower(s)
	return pattern, validPattern(pattern)
}

// WantRuleTarget is what ParseRuleTarget expects.
const WantRuleTarget = Everything + ", or " + WantPattern

// ParseWeight reads the weight of a rule.
func ParseWeight(s string) (int64, bool) { return parseWhole(s, 1, 1000) }

// WantWeight is what ParseWeight expects.
const WantWeight = "a whole number from 1 to 1000"

// classes are the words of the scheduler's classes.
var classes = map[string]scheduler.Class{"urgent": scheduler.Urgent, "high": scheduler.High, "medium": scheduler.Medium, "low": scheduler.Low}

// ParseClass reads the class of a rule.
func ParseClass(s string) (scheduler.Class, bool) {
	class, ok := classes[s]
	return class, ok
}

// WantClass is what ParseClass expects.
const WantClass = "one of urgent, high, medium, low"

// parseWhole reads a decimal integer of a range, written without sign, leading
// zeros or digit separators.
func parseWhole(s string, low, high int64) (int64, bool) {
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil && v >= low && v <= high && strconv.FormatInt(v, 10) == s
}
