package main

import (
	"fmt"
	"strings"
)

// saturation is a load under which the server's event threads are what is scarce: its
// volume is in memory.
type saturation struct {
	name, title string
	parties     []party // the first is in the real-time class, so that it never waits for a CPU itself
	threads     int     // event threads; 0 is 1. Several share their CPUs with the clients, so they are in the real-time class
	goal        promise
	curve       bool // measured with turns of other lengths, too
}

// party is one process of clients, all alike.
type party struct {
	name        string // of its rule, and in tables
	connections int
	apart       bool // each connection is an initiator of its own
	depth       int
	rw          string
	kib         int
	reservation int64 // of each initiator; 0: none
	limit       int64 // of each initiator; 0: none
	rate        int   // commands per second that each connection asks for; 0: as many as its depth allows
}

// promise is what a saturation's first party is to reach with rules; 0: anything.
type promise struct {
	rate     float64 // of all its initiators, at least
	p50, p99 float64 // times alone, at most
	p99us    float64 // µs, at most
	total    float64 // part of all bytes without rules, at least
}

const (
	goldName   = "gold"
	hogName    = "hog"
	cappedName = "capped"
)

func gold(depth int) party {
	return party{name: goldName, connections: 1, depth: depth, rw: "randread", kib: 4, reservation: 20000}
}

// The neighbours without a promise.
var (
	readingHog = party{name: hogName, connections: 8, depth: 32, rw: "randread", kib: 4}
	writingHog = party{name: hogName, connections: 4, depth: 8, rw: "write", kib: 256}
	capped     = party{name: cappedName, connections: 1, depth: 8, rw: "randread", kib: 4, limit: 5000}
)

// leastTotal is what rules may leave of the rate of all while reserved work waits.
const leastTotal = 0.9

// saturations lists all loads.
func saturations() []saturation {
	many, crowd := gold(4), readingHog
	many.connections, many.apart, many.reservation = 8, true, 2500
	crowd.connections, crowd.apart, crowd.depth = 56, true, 8
	kept := promise{rate: 20000, p99: 3, total: leastTotal}
	asked := promise{rate: 0.99 * askedRate, p99: 3, total: leastTotal}
	return []saturation{
		{name: "reads-1", title: "depth 1, hog reads 8 × 32", parties: []party{gold(1), readingHog}, goal: promise{p50: 2, p99: 3, total: leastTotal}},
		{name: "reads-4", title: "depth 4, hog reads 8 × 32", parties: []party{gold(4), readingHog}, goal: kept, curve: true},
		{name: "reads-16", title: "depth 16, hog reads 8 × 32", parties: []party{gold(16), readingHog}, goal: kept},
		{name: "writes-4", title: "depth 4, hog writes 256 KiB, 4 × 8", parties: []party{gold(4), writingHog}, goal: promise{rate: 20000, p99us: 500, total: leastTotal}, curve: true},
		{name: "limit", title: "depth 4, hog reads 8 × 32, a third is limited to 5,000", parties: []party{gold(4), readingHog, capped}, goal: kept},
		{name: "threads", title: "depth 4 on each of 2 connections, hog reads 8 × 32, two event threads", parties: []party{twice(gold(4)), readingHog}, threads: 2, goal: promise{rate: kept.rate, p99: kept.p99}},
		{name: "many", title: "8 of 64 initiators with 2,500 reserved each, depth 4, the others read at depth 8", parties: []party{many, crowd}, goal: kept},
		{name: "asks-reads", title: "the second row, gold asks for 18,000", parties: []party{asking(gold(4)), readingHog}, goal: asked},
		{name: "asks-writes", title: "the fourth row, gold asks for 18,000", parties: []party{asking(gold(4)), writingHog}, goal: asked},
		{name: "asks-threads", title: "two event threads, gold asks for 9,000 of each", parties: []party{asking(twice(gold(4))), readingHog}, threads: 2, goal: promise{rate: asked.rate, p99: asked.p99}},
		{name: "asks-many", title: "8 of 64 initiators, who ask for 2,250 each", parties: []party{asking(many), crowd}, goal: asked},
	}
}

// askedRate is nine tenths of what gold has reserved.
const askedRate = 18000

// asking asks for less than was reserved, so that all of it is promised.
func asking(p party) party {
	p.rate = askedRate / p.connections
	return p
}

// twice has a connection for each of two event threads.
func twice(p party) party {
	p.connections = 2
	return p
}

// initiator is the iSCSI name of a party's initiators in a load.
func (s *saturation) initiator(p party) string {
	return fmt.Sprintf("iqn.2026-11.lunar.bench:%s-%s", s.name, p.name)
}

// saturationRules are those of all loads, as a configuration has them.
func saturationRules(all []saturation) string {
	var b strings.Builder
	for _, s := range all {
		for _, p := range s.parties {
			if p.reservation+p.limit == 0 {
				continue
			}
			fmt.Fprintf(&b, "    - {name: %s-%s, initiators: [%q]", s.name, p.name, s.initiator(p)+"*")
			if p.reservation > 0 {
				fmt.Fprintf(&b, ", reservation: %d", p.reservation)
			}
			if p.limit > 0 {
				fmt.Fprintf(&b, ", limit: %d", p.limit)
			}
			b.WriteString("}\n")
		}
	}
	return b.String()
}
