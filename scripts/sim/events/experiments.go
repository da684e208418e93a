// Package events simulates event threads on more cores than a test machine has:
// one loop for all connections against one for each logical unit (Ren, section
// 5.3), queueing before a loop (5.4.5), and digests computed beside the loop.
// Which responses leave together is decided by the server's scheduler/batch.
package events

import "lunar/scripts/sim/experiment"

// Streams of random numbers.
const (
	elsewhere = iota
	arrival
	service
)

// Experiments lists the rows of the evaluation (algorithms B4, A6 to A8).
func Experiments() []experiment.Experiment {
	return []experiment.Experiment{
		{
			ID: "events-5-12", Setup: "512 B random reads from the cache, 1..64 clients with one outstanding; 32 cores",
			Paper: "one loop for all caps at 160K; one for each LU: 940K, linear, 32 to 64 clients +15 %",
			Check: "160±5K, 940±30K, linear to 32 within 10 % (fitted: only order and trend are a test)", Run: experiment.Try(runClients),
		}, {
			ID: "events-scaling", Setup: "1, 2, 4, 8 LUs with a loop and a core each; 1..64 connections to each LU",
			Paper: "linear", Check: "throughput per core within 10 % for any number of LUs; one loop for all stays where it is", Run: experiment.Try(runScaling),
		}, {
			ID: "events-t5.2", Setup: "table 5.2, figure 5-14: 24K to 216K offered, Poisson, 162K possible",
			Paper: "serves what is offered up to 160K; delay grows as M/M/1 from 20 us", Check: "the printed rows ±3 % (the page cache's is its rate by load); delay within 15 % of 20 us + 1/(μ-λ) up to ρ = 0.9", Run: experiment.Try(runOffered),
		}, {
			ID: "events-5-15", Setup: "as events-t5.2 with all ready responses in one post",
			Paper: "responses per post rise with the load, above 120K the delay falls", Check: "responses per post more than one and than at a smaller load; above 120K less delay than with a post each", Run: experiment.Try(runPosts),
		}, {
			ID: "events-batching", Setup: "1..64 connections to a loop whose posts cost 2.05 us and its requests 4.2 us; intervals of 16 ms, 50 us",
			Paper: "none: the server's use of Tyche's batch level", Check: "adaptive at least 0.95 of the better of a post each and one for all", Run: experiment.Try(runBatching),
		}, {
			ID: "events-integrity", Setup: "digests in the loop, and by 4 threads beside it: as measured here, and of 10 us",
			Paper: "+140 % for small requests", Check: "+100 % with the costs of this server, or it differs", Run: experiment.Try(runIntegrity),
		}, {
			ID: "events-real", Setup: "figure 5-12 on this machine", Paper: "6 times",
			Excluded: "a real run: initiators compete for the cores",
		},
	}
}
