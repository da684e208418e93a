package main

import (
	"fmt"
	"runtime"
	"slices"
	"time"
)

// multiplyLatency is how many cycles a 64-bit multiplication takes until the next
// can use its result, on amd64 of Intel since Nehalem and of AMD since Zen.
const multiplyLatency = 3

// coreClock measures the frequency at which a core runs under load, in GHz: a
// chain of multiplications each of which needs the one before. It returns 0 on
// processors for which the latency is not known here.
func coreClock() (ghz float64, how string) {
	if runtime.GOARCH != "amd64" {
		return 0, ""
	}
	const steps, runs = 10_000_000, 7
	var rates []float64
	for range runs {
		from := time.Now()
		product := chain(steps)
		took := time.Since(from)
		if product != 0 { // odd factors: never 0, but the compiler cannot know
			rates = append(rates, float64(steps*multiplyLatency)/float64(took.Nanoseconds()))
		}
	}
	return slices.Max(rates), fmt.Sprintf("a chain of %d dependent multiplications of %d cycles each, the fastest of %d runs", steps, multiplyLatency, runs)
}

//go:noinline
func chain(steps int) uint64 {
	product := uint64(3)
	for range steps {
		product *= 0x9e3779b97f4a7c15
	}
	return product
}

// clockText says what the column "cycles" of the cost tables is.
func clockText(ghz float64, how string) string {
	if ghz == 0 {
		return "Cycles are those that the processor counted for the benchmark's thread, where it has a counter that a program may use, and else left out.\n"
	}
	return fmt.Sprintf("Cycles are those that the processor counted for the benchmark's thread, where it has a counter that a program may use. "+
		"Virtual machines often have none: then they are ns × %.2f GHz, the core's clock as measured by %s.\n", ghz, how)
}
