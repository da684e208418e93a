// Package plm simulates devices with predictable latency: the windows of a pair, PLMC,
// which divides a window's reads among classes, and PLMLight, which does with ordinary SSDs
// (end-to-end thesis). The decisions are those of scheduler/plm; the devices and the traces
// are models.
package plm

import "lunar/scripts/sim/experiment"

// Experiments lists the rows of the evaluation.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{
		{
			ID: "plmc-u", Setup: "PLMC, 1.2 times the mean load, traces of three data sets, literal shares",
			Paper: "median 100 %; with an oracle p10 100 %, without much lower", Check: "median ≥ 0.9, p10 0.3 to 0.5; with an oracle 1",
			Run: runUse,
		}, {
			ID: "plmc-v", Setup: "PLMC, all data sets and configurations",
			Paper: "median small", Check: "median 0", Run: runBeyond,
		}, {
			ID: "plmc-order", Setup: "PLMC, 1.4 times the mean load, strict and fixed, literal shares",
			Paper: "p90 548, 773, 6589 us; with an oracle 417, 924, 7155", Check: "High < Medium < Low", Run: runOrder,
		}, {
			ID: "plmc-31", Setup: "PLMC, 1.4 times the mean load, strict, with headroom",
			Paper: "High 31 % above the oracle", Check: "High ≤ 1.35 of the oracle, Low ≥ 2 of High", Run: runOracle,
		}, {
			ID: "plmc-desync", Setup: "PLMC with an oracle, 1.2 times the mean load; bursts of Medium 200 ms and of Low 400 ms later",
			Paper: "30 times lower, classes alike", Check: "Low's p90 at most half", Run: runLag,
		}, {
			ID: "plm-pair", Setup: "a pair of sets under reads and writes",
			Paper: "one set is deterministic at any time", Check: "never both at work unless forced; with counts above the load never forced", Run: runPair,
		}, {
			ID: "plm-server", Setup: "this server: a mirrored pair of two throttled files",
			Paper: "-", Excluded: "a real run: make evidence-latency, docs/reports/latency.md",
		}, {
			ID: "plml-1", Setup: "PLMLight, workload I: 30 % reads, 4 KiB, three classes",
			Paper: "High below an SSD alone, Medium and Low above; writes alike, in us", Check: "High p95 deterministic, p99 ≤ 0.7; Medium, Low above at p95; writes within 10 %, p99 ≤ 0.05", Run: runLight1,
		}, {
			ID: "plml-2", Setup: "PLMLight, workload II: 70 % reads, 4 to 128 KiB, three classes",
			Paper: "High -80 % at p99, -55 % at p99.9", Check: "p99 ≤ 0.2, p99.9 ≤ 0.5", Run: runLight2,
		}, {
			ID: "plml-cap", Setup: "PLMLight, workload I, shares capped at the prediction",
			Paper: "-", Check: "High's p99 is not below that of an SSD alone", Run: runCapped,
		}, {
			ID: "plml-data", Setup: "this server: writes in excess, reads, flushes and losses of power",
			Paper: "-", Excluded: "unit tests: the model test of backstore/windows",
		},
	}
}
