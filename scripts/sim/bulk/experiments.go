// Package bulk simulates bulk work: stages with threads (ACES, Ren, chapter 3) and blocks
// by credits over fast links (RFTP, chapters 4 and 6). Which stage takes which block, how
// many threads it has, what may be posted and who gets a credit is decided by the server's
// internal/pipeline and internal/pipeline/rftp.
package bulk

import "lunar/scripts/sim/experiment"

// The decisions, and what takes their places in a run with a stub.
const (
	// staging: one thread takes a block through all steps.
	staging experiment.Decision = "pipeline.Line: which stage takes which block"
	// adapting: threads stay as they are.
	adapting experiment.Decision = "pipeline.Adapt: threads of stages"
	// crediting: blocks are sent without credits, or none is answered, and each request with
	// one credit.
	crediting experiment.Decision = "rftp.Sink: credits"
)

// Experiments lists the rows of the evaluation (algorithms P.6 and P.7).
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{
		{
			ID: "aces-rate", Setup: "stages of 2, 6, 8, 2 ms with 1, 3, 4, 1 threads, 100 blocks",
			Paper: "line rate", Check: "216 ms; one thread for all 1800 ms", Run: experiment.Try(runRate),
		}, {
			ID: "aces-adapt", Setup: "the same with one thread each at first, 8 cores, of which stages of events have one",
			Paper: "threads follow the load", Check: "1, 3, 4, 1 within 8 s, 95 % of the rate, and 30 s without a change", Run: experiment.Try(runAdapt),
		}, {
			ID: "aces-stall", Setup: "8 blocks at the sink, whose store halts for a second",
			Paper: "the source stops", Check: "at most 8 blocks are sent; it goes on; none is lost", Run: experiment.Try(runStall),
		}, {
			ID: "aces-depth", Setup: "figures 2-4, 2-5: 40 Gb/s, 1 to 64 blocks of 4 KiB to 1 MiB in flight",
			Paper: "more in flight, more bandwidth", Check: "min(line, depth × size / time of one alone) ±3 %", Run: experiment.Try(runDepth),
		}, {
			ID: "rftp-wan10", Setup: "10 Gb/s, 49 ms, blocks of 4 MiB, 60 s", Paper: "as without a file system",
			Check: "pool of 30 ≥0.94 of the line, 37 ≥0.98, 15 0.46 ±0.02; ordered with 15 ≥0.88", Run: experiment.Try(runWAN10),
		}, {
			ID: "rftp-wan40", Setup: "40 Gb/s, 95 ms, blocks of 4 MiB, 60 s", Paper: "97 %",
			Check: "pool of 227 ≥0.965; ordered with 114 ≥0.97", Run: experiment.Try(runWAN40),
		}, {
			ID: "rftp-explicit", Setup: "as rftp-wan10 with a pool of 15, all that is free for each request and nothing else", Paper: "loses a round trip for each refill",
			Check: "≤0.45 of the line", Run: experiment.Try(runExplicit),
		}, {
			ID: "rftp-lan", Setup: "40 Gb/s, 25 us, blocks of 16 KiB to 4 MiB, 1 and 8 streams", Paper: "line rate with all sizes; CPU time falls with the size",
			Check: "≥0.99 of the line; messages per GB as 1/size", Run: experiment.Try(runLAN),
		}, {
			ID: "rftp-lan3", Setup: "3×40 Gb/s, hosts that load 94.8 Gb/s; both ways at once", Paper: "91 of 94.8 Gb/s; both ways +83 %",
			Check: "≥0.96 of the slowest stage; both ways ≥1.8 times", Run: experiment.Try(runLAN3),
		}, {
			ID: "aces-disks", Setup: "figure 3-7: RAID with 46 disks, 6 GB/s", Paper: "6 of 7.5 GB/s, scp 3", Excluded: "a real run, on loopback: make evidence-moves",
		}, {
			ID: "aces-ftp", Setup: "2×40 Gb/s, RAM disks", Paper: "80 Gb/s, 3 times scp", Excluded: "a real run, on loopback: make evidence-moves",
		}, {
			ID: "rftp-disk", Setup: "memory against disk with direct I/O", Paper: "the same bandwidth", Excluded: "a real run: needs a link that is slower than the disk",
		}, {
			ID: "rftp-hardware", Setup: "CPU time of RFTP and TCP, GridFTP, iSER bound to NUMA nodes", Paper: "RFTP 122 %, TCP 642 %; +7.6 % reads, +19 % writes",
			Excluded: "needs the paper's adapters and hosts",
		},
	}
}
