package haechi

import "lunar/scripts/sim/experiment"

// Experiments lists the rows of Haechi's evaluation (algorithms B1): 11 hosts,
// one of them the data node; T = 1 s; thousands of I/Os per second (K).
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{
		{
			ID: "haechi-1a", Setup: "one client alone, 64 outstanding",
			Paper: "one-sided about 400K, two-sided about 327K", Check: "both within 1 %", Run: run1A,
		}, {
			ID: "haechi-1b", Setup: "1..10 clients, 64 outstanding, no QoS",
			Paper: "one-sided linear to 4 clients, 1570K; two-sided 427K from 2 clients on",
			Check: "400, 800, 1200, 1570K and 327, 427, 427K within 1 %", Run: run1B,
		}, {
			ID: "haechi-1c-a", Setup: "10 clients ask 158K each at once, no QoS",
			Paper: "about 157K each, 1570K", Check: "within 1 %", Run: run1Ca,
		}, {
			ID: "haechi-1c-b", Setup: "C1-3 ask 340K, C4-10 80K at once, no QoS",
			Paper: "C1-3 278K, others about 80K, total 1380K", Check: "276±4K, 80±1K, 1389±15K", Run: run1Cb,
		}, {
			ID: "haechi-1c-c", Setup: "as 1c-b at a constant rate",
			Paper: "C1-3 332K, total 1564K", Check: "C1-3 at least 326K, total at least 1550K", Run: run1Cc,
		}, {
			ID: "haechi-2a-uniform", Setup: "90 % reserved evenly, demand R + pool at once",
			Paper: "all reservations met, loss below 0.1 %", Check: "every N at least R in every period, loss at most 0.2 %", Run: run2AU,
		}, {
			ID: "haechi-2a-zipf", Setup: "90 % reserved by Zipf 0.6 over five pairs, demand R + pool at once",
			Paper: "bare about 158K each, C1, C2 miss 236K; Haechi: all met",
			Check: "bare 157K each; rprio: every N at least 0.995 R, total at least 0.998 C_G; equal: C1/R1 about 0.83", Run: run2AZ,
		}, {
			ID: "haechi-2b-uniform", Setup: "as 2a-uniform, C1 and C2 ask half of R; basic and full Haechi",
			Paper: "basic wastes, full gives C3-10 more", Check: "C3-10 more with full; totals 1429K and 1570K within 1 %", Run: run2BU,
		}, {
			ID: "haechi-2b-zipf", Setup: "as 2a-zipf, C1 and C2 ask half of R; basic and full Haechi",
			Paper: "basic wastes, full gives C3-10 more", Check: "C3-10 more with full; totals 1334K and 1570K within 1 %", Run: run2BZ,
		}, {
			ID: "haechi-fig11", Setup: "totals of 2b: bare, basic, full",
			Paper: "full about as bare, basic lower", Check: "full at least 0.99 of bare, basic lower", Run: runFig11,
		}, {
			ID: "haechi-2c", Setup: "50..90 % reserved, uniform and Zipf, at once",
			Paper: "all met; uniform flat at C_G; Zipf drops at high reserve",
			Check: "equal: Zipf total non-increasing; rprio: all met, Zipf at least 0.99 of uniform", Run: run2C,
		}, {
			ID: "haechi-3", Setup: "C1-3 reserve 285K and ask 340K, C4-10 reserve and ask 80K",
			Paper: "at once: C1-3 miss, throughput -12.9 %; constant rate: C1-3 exceed, -0.7 %",
			Check: "at once C1-3 276±4K, drop 9-14 %; constant at least 285K, drop at most 1.5 %", Run: run3,
		}, {
			ID: "haechi-3-latency", Setup: "latencies of set 3 from submission on",
			Paper: "constant rate far below burst", Check: "mean, p99 and p99.9 lower, mean at most half", Run: run3Latency,
		}, {
			ID: "haechi-4-over-uniform", Setup: "80 % reserved evenly, 10 % background load from period 15 on",
			Paper: "total and C1 drop, then flat; reservations still met",
			Check: "every N at least R; Ω within η of the new capacity in at most M+1 periods", Run: run4OverU,
		}, {
			ID: "haechi-4-over-zipf", Setup: "80 % reserved by Zipf, background load from period 15 on",
			Paper: "C1 misses first and recovers gradually",
			Check: "equal, 15 %: C1/R1 dips, then rises; rprio, 10 %: C1 at least R", Run: run4OverZ,
		}, {
			ID: "haechi-4-under-uniform", Setup: "80 % reserved evenly, background load for the first 15 periods",
			Paper: "throughput climbs by η per period, C1 rises", Check: "Ω grows by η while it is used up; C1 rises", Run: run4UnderU,
		}, {
			ID: "haechi-4-under-zipf", Setup: "80 % reserved by Zipf, background load for the first 15 periods",
			Paper: "C1 stays at R, low clients gain", Check: "Ω grows by η while it is used up; rprio, 10 %: C1 at least R; C10 gains", Run: run4UnderZ,
		}, {
			ID: "haechi-real", Setup: "10 initiators against a throttled backstore over loopback",
			Paper: "as 2a, 2b, 3, 4", Excluded: "a real run: needs the server and its clock, not virtual time",
		}, {
			ID: "haechi-hardware", Setup: "absolute rates of 11 hosts with ConnectX-3 adapters, 150 s YCSB runs",
			Paper: "C_L 400K, C_G 1570K", Excluded: "needs the paper's hosts and adapters; here the rates are inputs of the model",
		},
	}
}
