// Package gather is a gathering point of Tyche: it counts the requests that wait and says
// when they leave, by the server's controller (scheduler/batch). The requests themselves
// stay with the caller. Nothing here allocates or depends on chance.
//
// # At a gathering point
//
// There is one Point for each connection group, that is for what is sent together:
// the responses of an event thread's connections that leave in one writev or one
// post list, the requests of a thread that are executed together, the operations
// that one io_uring_enter submits.
//
//	if !p.Gathers(bytes, urgent) {
//		send it, and where order matters all that wait before it: p.Sent(p.Waiting(), 0, now)
//	} else if p.Add(more, now); p.Ready(now) > 0 {
//		send all that wait; p.Sent(p.Waiting(), 0, now)
//	} else if at, ok := p.Deadline(); ok {
//		have a timer at that time do the same
//	}
//
// A thread that works on requests before they wait here, one after the other, says
// how many it has left: p.Backlog(n, now). Without that none ever seem to wait while
// the level is 1, and only probes can raise it.
//
// And for each request that is done, where it is known: p.Completed(bytes, now).
// The caller decides the meaning of more: whether others are under way that may still
// join, such as commands of the same connections that have no response yet. If there
// are none, nothing is gained by waiting and Ready says so: who has one request at a
// time is never delayed. Call Expect when the last of them went away otherwise.
//
// A sender that is slower than its requests, as Tyche's batch thread, calls Ready
// when it can send and takes as many as it says.
package gather
