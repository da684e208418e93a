// Package batch decides how many small requests are gathered before they go on
// together: Tyche's adaptive batch level. Like the rest of the scheduler it has no I/O,
// no goroutine and no clock of its own: time is int64 nanoseconds from the caller's
// clock, never falling. Nothing here allocates, locks or depends on chance, so runs
// repeat exactly. All of it belongs to one thread.
//
// A Level is the controller: fed with the bytes that were completed and with how many
// requests wait, it says every interval how many to gather. The simulator uses it
// (scripts/sim/gather). Event threads do not: their responses wait for nothing but the
// end of the pass (docs/reports/performance.md).
//
// # The rule
//
// X are the bytes completed in an interval, a is the mean number waiting in it. When
// X is more than 3 % above the interval before, level = ⌈(level + min(a, max)) / 2⌉;
// more than 3 % below, level = ⌊(1 + min(a, level)) / 2⌋; else it stays. After ten
// intervals in which the level did not change, the next one is tried with a level
// lower by one and the one after with one more; the better one is kept if it brings
// 3 % (Tyche; the rounding and where a probe ends are ours).
package batch
