// Package batch decides how many small requests are gathered before they go on
// together, and for how long the first of them may wait: Tyche's adaptive batch
// level. Like the rest of the scheduler it has no I/O, no goroutine and no clock
// of its own: time is int64 nanoseconds from the caller's clock, never falling.
// Nothing here allocates, locks or depends on chance, so the server and the
// simulator make the same decisions. All of it belongs to one thread.
//
// # The parts
//
//   - Level is the controller: fed with the bytes that were completed and with how
//     many requests wait, it says every interval how many to gather.
//   - Batch is one gathering point: it counts those that wait and says when they
//     leave. It has a Level of its own. The requests themselves stay with the caller.
//     Who keeps nothing waiting for others, as the event threads with their
//     responses, needs only a Level.
//
// # At a gathering point
//
// There is one Batch for each connection group, that is for what is sent together:
// the responses of an event thread's connections that leave in one writev or one
// post list, the requests of a thread that are executed together, the operations
// that one io_uring_enter submits.
//
//	if !b.Gathers(bytes, urgent) {
//		send it, and where order matters all that wait before it: b.Sent(b.Waiting(), 0, now)
//	} else if b.Add(more, now); b.Ready(now) > 0 {
//		send all that wait; b.Sent(b.Waiting(), 0, now)
//	} else if at, ok := b.Deadline(); ok {
//		have a timer at that time do the same
//	}
//
// A thread that works on requests before they wait here, one after the other, says
// how many it has left: b.Backlog(n, now). Without that none ever seem to wait while
// the level is 1, and only probes can raise it.
//
// And for each request that is done, where it is known: b.Completed(bytes, now).
// What more means is up to the caller: whether others are under way that may still
// join, such as commands of the same connections that have no response yet. If there
// are none, nothing is gained by waiting and Ready says so: who has one request at a
// time is never delayed. Call Expect when the last of them went away otherwise.
//
// A sender that is slower than its requests, as Tyche's batch thread, calls Ready
// when it can send and takes as many as it says.
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
