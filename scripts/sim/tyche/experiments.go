// Package tyche simulates Tyche's block protocol under load, with the batch level
// of the server (scheduler/batch). The costs of a request on its way are the paper's
// measurements; costs under load are fitted to its figures.
package tyche

import "lunar/scripts/sim/experiment"

// Experiments lists the rows of the evaluation (algorithms B3): two hosts with 10
// Gb/s Ethernet, a RAM disk, random I/O.
func Experiments() []experiment.Experiment {
	const load = "4 KiB, 1..128 threads with 4 outstanding; interval 1 s, at most 64, 5 ms"
	return []experiment.Experiment{
		{
			ID: "tyche-t2", Setup: "tables II, V, VI: one outstanding, 4 to 128 KiB; basic, Rec, NoWQ",
			Paper: "NoWQ: overhead -28 to -5 %, throughput +5 to +45 %", Check: "sums, size/total within 1.5 % of the throughput, changes within a point, 6, 4, 3 context switches",
			Run: runComponents,
		}, {
			ID: "tyche-path", Setup: "4 KiB: what the protocol itself takes, basic and NoWQ",
			Paper: "reads -56 %, writes -61.1 %", Check: "34.90 to 15.09 us, 35.13 to 14.01 us", Run: runPath,
		}, {
			ID: "tyche-t3", Setup: "table III: NBD's totals against NoWQ", Paper: "NBD is slower", Check: "at least 1.8 times", Run: runNBD,
		}, {
			ID: "tyche-fig1", Setup: "no batching, 128 threads with 4 outstanding, 4 KiB",
			Paper: "56 % of the link", Check: "±1 point; 100 % are 314.6K requests/s", Run: runUnbatched,
		}, {
			ID: "tyche-fig5-reads", Setup: load,
			Paper: "up to +44.2 %, peak 80.7 %; best static at most 8.6 % better", Check: "at least 0.92 of the best static level at each load, static 64 needs 5 ms at 4 outstanding; gains ±3 points or they differ",
			Run: func(env *experiment.Env) experiment.Result { return runLevels(env, &reads) },
		}, {
			ID: "tyche-fig5-writes", Setup: load,
			Paper: "up to +49.5 %, peak 79.2 %", Check: "as for reads",
			Run: func(env *experiment.Env) experiment.Result { return runLevels(env, &writes) },
		}, {
			ID: "tyche-fig6", Setup: "batch level by load", Paper: "reads: rises with the load; writes: flat to 256 outstanding, then rises",
			Check: "reads: at no load lower than at a smaller one; both: 8 times as high at 512 as at 4; writes flat to 128 or they differ", Run: runLevelByLoad,
		}, {
			ID: "tyche-fig7", Setup: "two 4 KiB payloads in a packet of 8 KiB, 128 threads with 4 outstanding",
			Paper: "+56.9 %, +53 %; 88.0 %, 81.1 % of the link", Check: "gains ±3 points or they differ", Run: runPacked,
		}, {
			ID: "tyche-fig8-reads", Setup: "32 threads with 4 outstanding of 4 KiB, one more of 128 KiB every 60 s for 360 s",
			Paper: "up to 91.3 %, mean 88.8 %, without batching up to 74.4 %, mean 56.7 %", Check: "mean with batching ±2 points, more than 1.2 times that without, 1.57 times ±5 % or it differs, no request of 128 KiB in a batch",
			Run: func(env *experiment.Env) experiment.Result { return runMixed(env, &reads) },
		}, {
			ID: "tyche-fig8-writes", Setup: "as fig8-reads", Paper: "up to 2 times", Check: "mean more than 1.2 times that without batching, twice ±5 % or it differs, no request of 128 KiB in a batch",
			Run: func(env *experiment.Env) experiment.Result { return runMixed(env, &writes) },
		}, {
			ID: "tyche-t4", Setup: "table IV: fake device with and without a context switch", Paper: "3.4 to 9.7 us, 10.5 to 18 us",
			Excluded: "a real run: what a context switch costs is an input of the model",
		}, {
			ID: "tyche-ctx", Setup: "two threads wake each other", Paper: "2.5 us on a node, 5 us across",
			Excluded: "a real run: needs the machine's scheduler, not virtual time",
		},
	}
}
