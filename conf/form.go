package conf

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"lunar/scheduler"
)

// form writes the value of a field, of the struct that it is in, as the decoder of its
// key reads it; nil: the key is to be left out.
type form func(in, v reflect.Value) any

// forms are those of fields whose keys are not read as their Go values are printed.
// What has a form is one value, and is compared as such.
var forms = map[string]form{
	"Server.Threads":            zeroAs("auto"),
	"Server.CPUs":               cpusForm,
	"Server.PollBudget":         func(_, v reflect.Value) any { return fmt.Sprintf("%d%%", v.Int()) },
	"Server.Nodes":              nodesForm,
	"Server.Metrics":            unlessZero,
	"Server.MetricsToken":       unlessZero,
	"Server.MetricsCertificate": unlessZero,
	"Server.MetricsKey":         unlessZero,
	"Server.MemoryLimit":        memoryLimitForm,
	"Control.Listen":            unlessZero,
	"Link.Listen":               unlessZero,
	"Link.CA":                   unlessZero,
	"Link.Certificate":          unlessZero,
	"Link.Key":                  unlessZero,

	"Limits.LoginsPerAddress":   zeroAs("auto"),
	"Limits.LoginsPerNetwork":   zeroAs("auto"),
	"Limits.SessionsPerAddress": zeroAs("auto"),
	"Limits.SessionsPerNetwork": zeroAs("auto"),

	"Cache.Size":             cacheSizeForm,
	"Cache.BlockSize":        zeroAs("auto"),
	"Cache.Segment":          zeroAs(privateMemory),
	"Cache.ForwardThreshold": forwardThresholdForm,
	"VolumeCache.DirtyLimit": unlessZero,
	"Discovery.AuthGroup":    zeroAs(None),
	"Discovery.Portals":      zeroAs(ownPortals),
	"Access.AuthGroup":       zeroAs(None),

	"Volume.Size":              unlessZero,
	"Volume.PhysicalBlockSize": unlessZero,
	"Volume.SanitizeRate":      unlessZero,
	"Volume.SoftThreshold":     unlessZero,
	"Volume.Protection":        unlessZero,
	"Volume.Threads":           zeroAs("auto"),
	"Volume.Held":              unlessZero,
	"Volume.ExcessSize":        unlessZero,
	"Volume.ExcessWrites":      excessWritesForm,
	"Volume.Window":            unlessZero,

	"QoS.Capacity":     zeroAs("auto"),
	"QoS.Pool":         wordForm(poolModes),
	"QoS.Arbitration":  wordForm(arbitrations),
	"Cost.Unit":        bytesForm,
	"Rate.IOPS":        unlessZero,
	"Rate.Bytes":       bytesForm,
	"Rule.LUN":         func(_, v reflect.Value) any { return unlessZero(v, v) },
	"Rule.Class":       wordForm(classes),
	"Rule.GroupNumber": unlessZero,

	"Network.DSCP":     codesForm,
	"Network.Groups":   groupNumbersForm,
	"Network.Governor": wordForm(governors),
	"Network.Delay":    durationForm,
	"Network.Links":    linksForm,
	"Network.Targets":  targetsForm,
}

// formOf is the form of a field, or nil.
func formOf(in reflect.Type, f reflect.StructField) form { return forms[in.Name()+"."+f.Name] }

// plain is a value as its Go value is printed.
func plain(v reflect.Value) any {
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if s, ok := v.Interface().(fmt.Stringer); ok {
		return s.String()
	}
	return v.Interface()
}

// excessWritesForm is auto only of a volume that has the key.
func excessWritesForm(in, v reflect.Value) any {
	if in.Interface().(Volume).Excess == "" {
		return nil
	}
	return zeroAs("auto")(in, v)
}

func unlessZero(_, v reflect.Value) any {
	if v.IsZero() {
		return nil
	}
	return plain(v)
}

// zeroAs has a word for the zero value.
func zeroAs(word string) form {
	return func(_, v reflect.Value) any {
		if v.IsZero() {
			return word
		}
		return plain(v)
	}
}

// bytesForm is of a number of bytes that is no Size.
func bytesForm(_, v reflect.Value) any {
	if v.IsZero() {
		return nil
	}
	return Size(v.Int()).String()
}

// wordForm is of one of the words of a map.
func wordForm[T comparable](words map[string]T) form {
	return func(_, v reflect.Value) any {
		for word, value := range words {
			if value == v.Interface().(T) {
				return word
			}
		}
		return nil
	}
}

func cpusForm(_, v reflect.Value) any {
	if v.Len() == 0 {
		return nil
	}
	return cpuRanges(v.Interface().([]int))
}

// cpuRanges writes ascending CPUs as parseCPUs reads them.
func cpuRanges(cpus []int) string {
	var parts []string
	for len(cpus) > 0 {
		n := 1
		for n < len(cpus) && cpus[n] == cpus[0]+n {
			n++
		}
		part := strconv.Itoa(cpus[0])
		if n > 1 {
			part += "-" + strconv.Itoa(cpus[n-1])
		}
		parts, cpus = append(parts, part), cpus[n:]
	}
	return strings.Join(parts, ",")
}

func nodesForm(_, v reflect.Value) any {
	n := v.Interface().(Nodes)
	if n.Count > 0 {
		return n.Count
	}
	var lists []any
	for _, cpus := range n.CPUs {
		lists = append(lists, cpuRanges(cpus))
	}
	if lists == nil {
		return "auto"
	}
	return lists
}

func cacheSizeForm(in, v reflect.Value) any {
	size := unlessZero(in, v)
	if in.Interface().(Cache).PerNode {
		return yaml.MapSlice{{Key: "per-node", Value: size}}
	}
	return size
}

func forwardThresholdForm(_, v reflect.Value) any {
	switch s := v.Interface().(Size); s {
	case 0:
		return "auto"
	case NeverForward:
		return "never"
	default:
		return s.String()
	}
}

func memoryLimitForm(_, v reflect.Value) any {
	switch s := v.Interface().(Size); s {
	case 0:
		return "auto"
	case NoMemoryLimit:
		return "off"
	default:
		return s.String()
	}
}

// fitting leaves out keys that a decoded object may not have, although its Go value has
// them, and adds those that it must have.
var fitting = map[reflect.Type]func(v reflect.Value, keys yaml.MapSlice) yaml.MapSlice{
	reflect.TypeFor[Cache]():           fittingCache,
	reflect.TypeFor[Volume]():          fittingVolume,
	reflect.TypeFor[AuthGroup]():       fittingAuthGroup,
	reflect.TypeFor[scheduler.Group](): fittingGroup,
}

func without(keys yaml.MapSlice, unfit func(key string) bool) yaml.MapSlice {
	return slices.DeleteFunc(keys, func(item yaml.MapItem) bool { return unfit(item.Key.(string)) })
}

// fittingCache leaves a section out without which there is no cache either.
func fittingCache(v reflect.Value, keys yaml.MapSlice) yaml.MapSlice {
	c := v.Interface().(Cache)
	if c.Size.Given() {
		return keys
	}
	if c.SegmentGiven = defaultCache.SegmentGiven; c == defaultCache {
		return nil
	}
	return keys
}

func fittingVolume(v reflect.Value, keys yaml.MapSlice) yaml.MapSlice {
	volume := v.Interface().(Volume)
	for i := range keys {
		if behind, ok := keys[i].Value.(yaml.MapSlice); ok && keys[i].Key == "cache" && volume.Write != WriteBack {
			keys[i].Value = without(behind, func(key string) bool { return slices.Contains(writeBackKeys, key) })
		}
	}
	return without(keys, func(key string) bool {
		if key == "direct" && volume.MayBuffer {
			return true // a default that gives way, as the key would not
		}
		return !volume.may(key)
	})
}

func fittingAuthGroup(v reflect.Value, keys yaml.MapSlice) yaml.MapSlice {
	g := v.Interface().(AuthGroup)
	if len(g.CHAP) == 0 {
		return without(keys, func(key string) bool { return key == "algorithms" })
	}
	if len(g.Algorithms) == 0 {
		keys = append(keys, yaml.MapItem{Key: "algorithms", Value: []any{}})
	}
	return keys
}

func fittingGroup(v reflect.Value, keys yaml.MapSlice) yaml.MapSlice {
	if len(v.Interface().(scheduler.Group).Initiators) == 0 {
		keys = append(keys, yaml.MapItem{Key: "initiators", Value: []any{}})
	}
	return keys
}
