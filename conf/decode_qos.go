package conf

import (
	"fmt"
	"maps"
	"time"

	"github.com/goccy/go-yaml/ast"

	"lunar/scheduler"
)

// defaultQoS: the window keeps a fast device busy and is below what initiators
// keep outstanding together, so that the rest waits where order can be chosen.
var defaultQoS = QoS{Window: 32, Turn: scheduler.DefaultTurn, Cost: scheduler.Cost{Unit: 4096, WritePercent: 100}, Network: scheduler.Network{Delay: scheduler.DefaultDelay}}

// The words of the scheduler's choices.
var (
	poolModes    = map[string]scheduler.PoolMode{"soft": scheduler.SoftPool, "hard": scheduler.HardPool}
	arbitrations = map[string]scheduler.Arbitration{"equal": scheduler.EqualShare, "rprio": scheduler.ReservedFirst}
)

func (d *decoder) qos(n node, q *QoS) {
	known := ruleKeys(q)
	maps.Copy(known, fields{
		"capacity":    capacity(&q.Capacity),
		"capacities":  capacities(&q.Capacities),
		"profile":     profileTime(&q.Profile),
		"overcommit":  boolean(&q.Overcommit),
		"window":      number(&q.Window, 1, 4096),
		"turn":        duration(&q.Turn, time.Microsecond, 10*time.Millisecond),
		"pool":        word(&q.Pool, poolModes, "soft, hard"),
		"arbitration": word(&q.Arbitration, arbitrations, "equal, rprio"),
		"cost":        cost(&q.Cost),
		"network":     classNetwork(&q.Network),
	})
	d.mapping(n, known)
}

// ruleKeys are the keys that can change while the server runs.
func ruleKeys(q *QoS) fields {
	return fields{
		"groups": func(d *decoder, n node) { d.initiatorGroups(n, q) },
		"rules":  each(&q.Rules, qosRule),
	}
}

// word accepts one of the words of a map.
func word[T any](to *T, words map[string]T, known string) setter {
	return parsed(to, "one of "+known, func(s string) (T, bool) {
		v, ok := words[s]
		return v, ok
	})
}

// rate accepts a number of commands per second.
func rate(to *int64) setter {
	return parsed(to, fmt.Sprintf("a whole number from 1 to %d", int64(maxRate)), parseRate)
}

// capacity accepts auto or a rate.
func capacity(to *int64) setter {
	return parsed(to, fmt.Sprintf("auto or a whole number of IOPS from 1 to %d", int64(maxRate)), func(s string) (int64, bool) {
		if s == "auto" {
			return 0, true
		}
		return parseRate(s)
	})
}

// capacities accepts a mapping from volumes to rates.
func capacities(to *map[string]int64) setter {
	return func(d *decoder, n node) {
		*to = map[string]int64{}
		d.named(n, naming{objectName.MatchString, wantObjectName, aScalar}, func(name string, n node) {
			tokens := int64(0)
			rate(&tokens)(d, n)
			(*to)[name] = tokens
		})
	}
}

// profileTime accepts 0s or a time that is long enough to say something.
func profileTime(to *time.Duration) setter {
	const low, high = 100 * time.Millisecond, time.Minute
	return parsed(to, fmt.Sprintf("0s, or a time from %v to %v such as 2s", low, high), func(s string) (time.Duration, bool) {
		v, err := time.ParseDuration(s)
		return v, err == nil && (v == 0 || v >= low && v <= high)
	})
}

func cost(c *scheduler.Cost) setter {
	return func(d *decoder, n node) {
		unit, percent := Size(c.Unit), int(c.WritePercent)
		d.mapping(n, fields{
			"unit":          powerOfTwo(&unit, KiB, MiB),
			"write-percent": number(&percent, 1, 10000),
		})
		c.Unit, c.WritePercent = int64(unit), int64(percent)
	}
}

func (d *decoder) initiatorGroups(n node, q *QoS) {
	d.named(n, naming{objectName.MatchString, wantObjectName, aMapping}, func(name string, n node) {
		g := scheduler.Group{Name: name}
		if d.mapping(n, fields{"initiators": each(&g.Initiators, pattern)}) {
			d.require(n, "initiators", "a list of initiator names, or globs for them")
		}
		q.Groups = append(q.Groups, g)
	})
}

// qosRule reads one rule.
func qosRule(r *scheduler.Rule) setter {
	return func(d *decoder, n node) {
		lun := int64(noLUN)
		r.Weight = 1
		ok := d.mapping(n, fields{
			"name":        text(&r.Name, wantObjectName, objectName.MatchString),
			"initiators":  each(&r.Initiators, pattern),
			"group":       reference("a group of qos.groups")(&r.Group),
			"target":      parsed(&r.Target, WantRuleTarget, ParseRuleTarget),
			"lun":         parsed(&lun, WantRuleLUN, ParseRuleLUN),
			"reservation": rates(&r.Reservation),
			"limit":       rates(&r.Limit),
			"burst":       rates(&r.Burst),
			"weight":      parsed(&r.Weight, WantWeight, ParseWeight),
			"class":       parsed(&r.Class, WantClass, ParseClass),

			"group-number": boolean(&r.GroupNumber),
		})
		if ok {
			d.require(n, "name", "a name, by which qos commands and metrics tell the rule")
		}
		if lun != noLUN {
			number := uint64(lun)
			r.LUN = &number
		}
	}
}

// rates accepts what ParseRates does, or a mapping with one unit or both.
func rates(to *scheduler.Rate) setter {
	return func(d *decoder, n node) {
		if _, scalar := n.ast.(ast.ScalarNode); scalar {
			parsed(to, WantRates, ParseRates)(d, n)
			return
		}
		bandwidth := parsed(&to.Bytes, "a size per second from 4KiB to 1TiB, such as 20MiB or 20MiB/s", parseBandwidth)
		if d.mapping(n, fields{"iops": rate(&to.IOPS), "bandwidth": bandwidth}) && !d.has(n, "iops") && !d.has(n, "bandwidth") {
			d.fail(n.path, "neither iops nor bandwidth", "a number of IOPS, or {iops: 5000, bandwidth: 100MiB}")
		}
	}
}
