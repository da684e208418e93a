package nest

import "lunar/scripts/sim/experiment"

// Experiments lists the rows on storage behind a network of the end-to-end thesis (chapters
// 4, 6 and 7).
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{
		{
			ID: "qtcp-thr", Setup: "one host with three classes, ten servers with an SSD each; High 17-98, Medium 13-75, Low 5-30 blocks of 4 KiB",
			Paper: "48/31/17 Gb/s where the bottleneck is", Check: "shares 3:2:1 ±8 %, in all at least 95, or it differs", Run: runThroughput,
		}, {
			ID: "qtcp-3srv", Setup: "three hosts, three servers whose devices are the bottleneck, DCTCP",
			Paper: "storage alone tells classes apart", Check: "High > Medium > Low", Run: runServers,
		}, {
			ID: "nest-base", Setup: "stations against queueing theory; 4 KiB over loopback by depth, with costs measured at depths 1 and 32",
			Paper: "accuracy 92.5 %", Check: "stations within 2 %, latencies at depths 2 to 16 within 7.5 % or it differs", Run: experiment.Try(runBase),
		}, {
			ID: "nest-joined", Setup: "one server with gate, cache, device and gathered responses; three hosts, one with a limit",
			Paper: "one clock for all", Check: "the limit holds, others have more, the cache hits", Run: experiment.Try(runJoined),
		}, {
			ID: "nest-windows", Setup: "reads and writes over the network, one SSD and a pair whose windows take turns",
			Paper: "deterministic reads", Check: "p99 of reads at most 0.3 of one device, no window forced", Run: runWindows,
		}, {
			ID: "nest-pm", Setup: "128 and 256 bytes of persistent memory",
			Paper: "0.9 us locally, 3-4 us over the network", Check: "3-4 us", Run: runMemory,
		}, {
			ID: "nest-scm", Setup: "4 KiB of storage-class memory beside three classes",
			Paper: "35-40 us", Check: "p99 at most 1.15 of unloaded", Run: runSCM,
		}, {
			ID: "nest-wrr", Setup: "8 chips with pages of 20 us, loads .45, .30, .15 in bursts of 8; no QoS, at the arbiter, at the chips, too",
			Paper: "S1 >85, <70, <40 us; S2 High still worst; S3 about 50, 60, worst", Check: "orderings; reference values ±25 % or it differs", Run: runWRR,
		}, {
			ID: "nest-tpcc", Setup: "High and Medium light, Low intense",
			Paper: "the arbiter suffices", Check: "in order; chips change at most 10 %, or it differs", Run: runTPCC,
		}, {
			ID: "nest-urgent", Setup: "storage of 90, 60, 30 Gb/s and urgent packets of 10 to 20 % of the link",
			Paper: "17-23 us without priority, 3-4 us with it (-82 %)", Check: "p50 = p99 ±15 %, at most 4.5 us, 75 % below; storage 3:2:1 ±8 %", Run: runUrgent,
		}, {
			ID: "nest-urgent-lat", Setup: "messages of 2 MB beside urgent packets of 10 % of the link",
			Paper: "p90 of High 10 to 11, Medium 13 to 15.3 ms", Check: "at most 20 % more; in order or it differs", Run: runUrgentLatency,
		}, {
			ID: "nest-tail", Setup: "three hosts write 40 Gb/s each; classes of network and storage agree or not",
			Paper: "disagree: App1 worst; agree: QTCP halves from class to class, DCTCP High 1.2 of Medium", Check: "the orderings", Run: runTail,
		}, {
			ID: "nest-mix", Setup: "30, 60, 90 Gb/s and urgent writes",
			Paper: "DCTCP: Medium worse than Low; QTCP: Urgent < High < Medium < Low", Check: "the orderings", Run: runMix,
		}, {
			ID: "nest-scale", Setup: "30 devices and 24 hosts at a fat tree of switches with 6 ports",
			Paper: "runs", Check: "at most 10 minutes for a simulated second", Run: runScale,
		},
	}
}
