package net

import "lunar/scripts/sim/experiment"

// Experiments lists the rows on networks of the end-to-end thesis (chapter 4). Those with
// storage behind the network are in sim/nest.
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{
		{
			ID: "qtcp-dtm", Setup: "High, Medium, Low offer 90, 60, 30 Gb/s to 100 Gb/s, round trip 25 us",
			Paper: "49.9, 33.3, 16.8; the model is the simulation", Check: "±1.5, in all at least 99; with packets, too", Run: runModel,
		}, {
			ID: "qtcp-dctcp", Setup: "the same without quality",
			Paper: "about 33 each, Low has its 30", Check: "35, 35, 30 ±1.5", Run: runPlain,
		}, {
			ID: "qtcp-conv", Setup: "the same with round trips of 25, 62 and 98 us",
			Paper: "Q stays in 0.9-1.1 after 50, 30-40, 30-40 slots, then 0.95-1", Check: "at most 100, 150, 220 slots, differs if above the thesis; then 0.95-1.05", Run: runConvergence,
		}, {
			ID: "qtcp-join", Setup: "a second Low flow for a third of the run",
			Paper: "Low's share is split, the others keep theirs", Check: "49.8, 33.3, 8.5, 8.5 ±1, and back", Run: runJoin,
		}, {
			ID: "qtcp-interf", Setup: "round trip 98 us; a DCTCP flow of up to 40 Gb/s from 75 to 250 ms",
			Paper: "flows back off, then recover", Check: "34.1, 24.3, 12.3 and 29.4 ±2 meanwhile, 49.5, 33.3, 17.1 ±2 afterwards", Run: runInterference,
		}, {
			ID: "qtcp-lat", Setup: "messages of 2 MB, Poisson, 80 %, targets 5, 6, 8 ms; normal: High has 10, Medium 20 % of the traffic, stressed: a third each",
			Paper: "stressed, misses of High: DCTCP 30-65 %, D2TCP about 35, QTCP 15-18", Check: "QTCP < D2TCP < DCTCP, QTCP at most half of DCTCP, or it differs", Run: runLatency,
		}, {
			ID: "qtcp-server", Setup: "three readers through 200 Mb/s, and through 10 Mb/s with 30 ms, whose server sees delay, a queue that marks all from K on, or receivers that echo a mark for a round trip; tgtd over its kernel's cubic or dctcp, or lunar_qtcp in place of that; by delay also readers of which low begins first",
			Paper: "3:2:1", Check: "each share ±10 %, in all at least 95 % of what the kernel's control has alone; the same with the server is docs/reports/network-classes.md", Run: runServer,
		}, {
			ID: "qrdma-share", Setup: "as qtcp-dtm with rates, every 50 us, R_AI 1 % of the line",
			Paper: "as QTCP", Check: "47.9, 33.6, 18.5 ±2; DCQCN 34.8, 34.8, 29.9 ±2", Run: runRates,
		}, {
			ID: "qrdma-ratio", Setup: "four greedy flows, 1 : 1.5 : 2 : 3",
			Paper: "about the ratio", Check: "each within 15 % of its share", Run: runRatio,
		}, {
			ID: "qrdma-lat", Setup: "as qtcp-lat stressed",
			Paper: "43-80 % fewer misses than DCQCN, more than QTCP", Check: "both", Run: runRateLatency,
		}, {
			ID: "qrdma-coexist", Setup: "DCTCP and DCQCN on one link; then QTCP and DCQCN",
			Paper: "DCQCN grabs first, DCTCP wins later; equal halves with QTCP", Check: "both; 50:50 ±10 %", Run: runCoexistence,
		},
	}
}
