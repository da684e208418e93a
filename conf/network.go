package conf

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"lunar/scheduler"
)

// classNetwork reads what classes are outside of the server.
func classNetwork(n *scheduler.Network) setter {
	return func(d *decoder, at node) {
		d.mapping(at, fields{
			"dscp":          byClass(&n.DSCP, wantDSCP, parseDSCP),
			"group-numbers": groupNumbers(&n.Groups),
			"governor":      word(&n.Governor, governors, "false, true, kernel"),
			"delay":         nanoseconds(&n.Delay, 50*time.Microsecond, time.Second),
			"links":         links(&n.Links),
			"targets":       byClass(&n.Targets, wantTarget, parseTarget),
		})
	}
}

// governors are the words of who governs.
var governors = map[string]scheduler.Governor{"false": scheduler.NoGovernor, "true": scheduler.ServerGovernor, "kernel": scheduler.KernelGovernor}

// byClass accepts a mapping from some of the classes.
func byClass[T any](to *scheduler.ByClass[T], expected string, parse func(string) (T, bool)) setter {
	return func(d *decoder, n node) {
		*to = scheduler.ByClass[T]{}
		known := fields{}
		for word, class := range classes {
			known[word] = parsed(&to[class], expected, parse)
		}
		d.mapping(n, known)
	}
}

// codePoints are the names of DSCP values (RFC 2474, 2597, 3246 and 5865).
var codePoints = map[string]uint8{
	"CS1": 8, "CS2": 16, "CS3": 24, "CS4": 32, "CS5": 40, "CS6": 48, "CS7": 56,
	"AF11": 10, "AF12": 12, "AF13": 14, "AF21": 18, "AF22": 20, "AF23": 22,
	"AF31": 26, "AF32": 28, "AF33": 30, "AF41": 34, "AF42": 36, "AF43": 38,
	"VA": 44, "EF": 46,
}

const wantDSCP = "a DSCP value from 1 to 63, or its name such as AF31 or EF"

func parseDSCP(s string) (uint8, bool) {
	if code, named := codePoints[strings.ToUpper(s)]; named {
		return code, true
	}
	code, ok := parseWhole(s, 1, 63)
	return uint8(code), ok
}

const wantTarget = "a time from 100us to 10s, such as 5ms"

func parseTarget(s string) (int64, bool) {
	v, err := time.ParseDuration(s)
	return int64(v), err == nil && v >= 100*time.Microsecond && v <= 10*time.Second
}

// nanoseconds accepts a time within a range.
func nanoseconds(to *int64, low, high time.Duration) setter {
	return func(d *decoder, n node) {
		v := time.Duration(*to)
		duration(&v, low, high)(d, n)
		*to = int64(v)
	}
}

// groupNumbers accepts a mapping from numbers to classes.
func groupNumbers(to *[scheduler.GroupNumbers]scheduler.Tag) setter {
	return func(d *decoder, n node) {
		*to = [scheduler.GroupNumbers]scheduler.Tag{}
		valid := func(s string) bool { _, ok := parseWhole(s, 0, scheduler.GroupNumbers-1); return ok }
		d.named(n, naming{valid, "a GROUP NUMBER from 0 to 31", aScalar}, func(name string, n node) {
			var class scheduler.Class
			parsed(&class, WantClass, ParseClass)(d, n)
			if number, ok := parseWhole(name, 0, scheduler.GroupNumbers-1); ok {
				to[number] = scheduler.TagOf(class)
			}
		})
	}
}

// maxDeviceName is the longest name of a network device (IFNAMSIZ).
const maxDeviceName = 15

// links accepts a mapping from network devices to rates.
func links(to *map[string]int64) setter {
	return func(d *decoder, n node) {
		*to = map[string]int64{}
		valid := func(s string) bool { return len(s) <= maxDeviceName && objectName.MatchString(s) }
		d.named(n, naming{valid, "the name of a network device", aScalar}, func(name string, n node) {
			rate := int64(0)
			parsed(&rate, "a size per second from 4KiB to 1TiB, such as 120MiB/s", parseBandwidth)(d, n)
			(*to)[name] = rate
		})
		if len(*to) == 0 {
			*to = nil
		}
	}
}

// byWord is of what some classes have, in the order of the classes.
func byWord[T comparable](values scheduler.ByClass[T], form func(T) any) any {
	var none T
	out := yaml.MapSlice{}
	for _, class := range []scheduler.Class{scheduler.Urgent, scheduler.High, scheduler.Medium, scheduler.Low} {
		if values[class] != none {
			out = append(out, yaml.MapItem{Key: wordOf(class), Value: form(values[class])})
		}
	}
	return unlessEmpty(out)
}

func unlessEmpty(out yaml.MapSlice) any {
	if len(out) == 0 {
		return nil
	}
	return out
}

func wordOf(class scheduler.Class) string {
	for word, c := range classes {
		if c == class {
			return word
		}
	}
	return ""
}

func codesForm(_, v reflect.Value) any {
	return byWord(v.Interface().(scheduler.ByClass[uint8]), func(code uint8) any { return code })
}

func targetsForm(_, v reflect.Value) any {
	return byWord(v.Interface().(scheduler.ByClass[int64]), func(ns int64) any { return time.Duration(ns).String() })
}

func durationForm(_, v reflect.Value) any { return time.Duration(v.Int()).String() }

func groupNumbersForm(_, v reflect.Value) any {
	out := yaml.MapSlice{}
	for number, tag := range v.Interface().([scheduler.GroupNumbers]scheduler.Tag) {
		if class, named := tag.Class(); named {
			out = append(out, yaml.MapItem{Key: strconv.Itoa(number), Value: wordOf(class)})
		}
	}
	return unlessEmpty(out)
}

func linksForm(_, v reflect.Value) any {
	rates := v.Interface().(map[string]int64)
	out := yaml.MapSlice{}
	for _, device := range slices.SortedFunc(maps.Keys(rates), cmp.Compare[string]) {
		out = append(out, yaml.MapItem{Key: device, Value: Size(rates[device]).String()})
	}
	return unlessEmpty(out)
}
