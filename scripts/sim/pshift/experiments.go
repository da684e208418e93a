package pshift

import "lunar/scripts/sim/experiment"

// Experiments lists the rows of pShift's evaluation (algorithms B2).
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{
		{
			ID: "pshift-1", Setup: "64 servers × 20,000 IOPS, 10,000 buckets, 5 s, all reserved by Zipf 0.5, demand 1.5 R on 8 servers, up to 2 changes",
			Paper: "99.5 % of buckets get at least 95 % of R", Check: "at least 99.5 %", Run: run1,
		}, {
			ID: "pshift-2", Setup: "16 servers, 2,000 buckets; 2, 4, 8 active servers; 0..10 changes; 5 runs",
			Paper: "error grows with changes and levels, falls with active servers, about 0 above 8",
			Check: "no change: within 0.5 points of max-flow; 2 active at least 8 active; 8 active at most 0.5 %", Run: run2,
		}, {
			ID: "pshift-par", Setup: "64 servers × 10,000 buckets, C = 100,000, r 0.9 and 1, m 1.1 and 2, 1 and 2 threads",
			Paper: "up to 5× with 12 threads, tens of ms", Check: "parallel equals serial; 2 threads at least 1.4× by the work that each has, 12 threads 4 to 6× or it differs; at most 3 s serial", Run: run2par,
		}, {
			ID: "pshift-fig7", Setup: "64 servers, 100..1000 buckets, r = 1, m = 1.1",
			Paper: "bQueue quadratic, pShift linear", Check: "exponent of pShift at most 1.3; Φ equals the maximum flow", Run: runFig7,
		}, {
			ID: "pshift-fig6", Setup: "64 servers × 10,000 buckets, r = 1, m = 1.1, top-M per server, Zipf s 0..2",
			Paper: "M = 2000 removes all weak excess, M = 500 over 70 %, five times as fast", Check: "of removable excess: 100 % and at least 90 %; top-M four times as fast or it differs", Run: runFig6,
		}, {
			ID: "pshift-3a", Setup: "4 servers × 50,000 IOPS, buckets on {1}, {1,2}, {1..3}, {1..4}, R = 30,000, round robin",
			Paper: "12,500; 29,166; 54,166; 104,166", Check: "within 0.5 %", Run: run3a,
		}, {
			ID: "pshift-3b", Setup: "as 3a with pShift, limit 200,000, 1 s, intervals of 200 ms",
			Paper: "all at least 30,000, B1 exactly", Check: "all at least 29,700", Run: run3b,
		}, {
			ID: "pshift-3c", Setup: "as 3b with limits of 60,000",
			Paper: "both hold", Check: "30,000..60,000, total at least 95 % of 200,000", Run: run3c,
		}, {
			ID: "pshift-3c-gates", Setup: "3c with the server's gates and coordinator, 4 devices × 2,000 IOPS that need 16 commands at once, R 1,200, limit 2,400, threads woken late",
			Paper: "both hold", Check: "in each second: reservations ≥98 %, limits ≤101 %, total ≥97 %, also if the capacity has to be learnt", Run: experiment.Try(run3cGates),
		}, {
			ID: "pshift-nodes", Setup: "3 nodes of 2 event threads and their elected controller, with the server's code, on one pool of 12,000 IOPS; R 6,000 and a limit of 1,500 whose demand moves every 2 s, beside others on all nodes; the controller dies for 1.5 s",
			Paper: "reservations and limits hold over all servers", Check: "each second from the second interval after a move: reservation ≥98 %, limit ≤101 %, ≤105 % while the controller changes", Run: experiment.Try(runOverNodes),
		}, {
			ID: "pshift-nodes-image", Setup: "as pshift-nodes on an image of Ceph whose throttle lets 952 commands per second pass in order, as in make evidence-promises: R 300 with a limit of 450 moves from node to node, a limit of 150 and two that want all on all nodes; a fifth of the reports up to 80 ms late",
			Paper: "reservations and limits hold over all servers", Check: "any second that begins 400 ms after a move or later: reservation ≥98 %; limits ≤101 % in any", Run: experiment.Try(runImage),
		}, {
			ID: "pshift-4a", Setup: "8 servers × 50,000 IOPS, 10 buckets, R 30,000, L 50,000, 2-6 random servers, 5 changes, 4 periods",
			Paper: "round robin violates, pShift never", Check: "pShift: none beyond 1 %; round robin: at least one", Run: run4a,
		}, {
			ID: "pshift-4b", Setup: "as 4a with 200 buckets, R 1,500, L 2,500",
			Paper: "no QoS: 68.5 % met R, 83.5 % under L; pShift 99.6 %, none over", Check: "at least 99 % met, none over; without QoS ±10 points or it differs", Run: run4b,
		}, {
			ID: "pshift-4c", Setup: "overhead of the controller over 15 minutes",
			Paper: "9 ms of communication per second (0.9 %)", Excluded: "a real run: virtual time has no cost of messages; the 1.8 ms per redistribution is an input of the model",
		}, {
			ID: "pshift-5", Setup: "8 servers × 1,000 IOPS, 200 buckets, r = 0.8 by Zipf 0.5, L = 1.5 R, 2 changes, 5 s in intervals of 1 s, 2 periods",
			Paper: "0.5 % of buckets miss R by over 1 %, none over L", Check: "at most 1 %, none over", Run: run5,
		}, {
			ID: "pshift-real", Setup: "3a-3c and 5 over throttled files of four logical units",
			Paper: "as 3 and 5", Excluded: "a real run: needs the server and its clock, not virtual time",
		},
	}
}
