// Package rbd is a store on an image of a Ceph cluster (RADOS block device),
// through librbd. Package native has the library, package fake a cluster inside
// the process; rbdtest has the tests that both must pass.
//
// # One instance
//
// A server has one client instance of each cluster (Clients), which all of its
// images share: an entry of the cluster's blocklist is about an instance, so that
// one entry fences all volumes of a server.
//
// # One owner
//
// A store that may be written holds the exclusive lock of its image, without
// librbd's automatic hand-over: while it has it, writes of others fail. What is
// fenced fails with backstore.ErrFenced from then on, and so does an instance that
// comes back after a pause of any length: the cluster refuses it, whatever its own
// clock says. Who takes the lock from a dead server, and when, is decided by
// judge, in lock.go.
//
// # Stable
//
// librbd's cache is off, and an image that insists on one is refused. A write has
// ended when all replicas have it, so that a flush has nothing to do. Operations
// have no timeouts: a cluster that does not answer holds them, and they end when it
// does. An operation that was given up could still happen later.
//
// # Threads
//
// Operations start on the event thread that submits them. librbd ends them on a
// thread of its own, whose callback pushes them on the list of the event thread's
// Queue. The event thread looks there in each pass (station), and is woken through a
// descriptor only while it sleeps. Control calls block, and belong on other
// goroutines.
package rbd
