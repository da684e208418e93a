// Package numa simulates the NUMA-partitioned cache against a page cache whose
// pages lie anywhere (Ren, chapter 5). Partitions, geometry, Algorithm 1 and its
// router are those of the server; memory, links, ports and the disk are models.
package numa

import "lunar/scripts/sim/experiment"

// Streams of random numbers.
const (
	requests = iota
	placement
	choice
)

// Experiments lists the rows of the evaluation (algorithms B4): a target with
// four nodes, 18.9 GB/s to local memory, two ports.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{
		{
			ID: "numa-5.2", Setup: "formula (5.2): 18.9 GB/s locally, 3.3, 2.9, 3.3 remotely",
			Paper: "uniform 7.1, 90 % local 17.32 GB/s", Check: "±0.02 GB/s", Run: runBandwidths,
		}, {
			ID: "numa-5-9", Setup: "720 GB warm, blocks of 512 KiB, 36 partitions a node, G = 4; 10 requests a second at random",
			Paper: "equal when small, -13 % at 256 KiB, -23 % at 512 KiB",
			Check: "up to 32 KiB ±3 %; 256 and 512 KiB as formula (5.1) ±2 points, as measured ±3 points or it differs", Run: experiment.Try(runResponseTimes),
		}, {
			ID: "numa-5-10", Setup: "as 5-9 with 512 KiB, block size varied",
			Paper: "no notable change", Check: "spread at most 3 %", Run: experiment.Try(runBlockSizes),
		}, {
			ID: "numa-5-11", Setup: "8 LUs with 16 workers each, all cached, random, 10 partitions a node, blocks of 512 KiB",
			Paper: "up to +80 % above 64 KiB, not worse at 16 and 32 KiB",
			Check: "with the threshold that the Tuner finds under a mix of all sizes: gains from 64 KiB on, no smaller size loses 3 %; gains from 32 to 128 KiB on and +70 to +90 % or it differs", Run: experiment.Try(runThroughputs),
		}, {
			ID: "numa-t5.3", Setup: "PostMark, 512 KiB requests, 720 GB of cache, 32 partitions a node; 500 GB and 1 TB",
			Paper: "run time to page cache's .705 .653 .624, .704 .662 .564",
			Check: "0.5 to 0.8; ±10 % and falling with the number of files, or it differs", Run: experiment.Try(runPostmarks),
		},
	}
}
