// Package mem keeps a cluster's state in the process, for tests: Store is its contents as
// a pure machine that is told the time, Network has the nodes that reach it, with delays,
// partitions, answers that are lost, members that have no quorum and clocks that run
// apart.
//
// A Network waits by package time alone, so that a test within testing/synctest decides
// about all of its time. Model tests use Store, and order what happens themselves.
package mem
