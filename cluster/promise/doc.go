// Package promise has a node take part in keeping one promise over all nodes: it tells the
// node that keeps it what it has to do, obeys it, and is it when elected.
//
// The state elects: who stores Keys.Controller with a lease is the controller, and the
// revision of that is its term. Everything else goes over links. A controller whose lease
// etcd does not renew goes on until another one is known to have been elected, so a lost
// quorum changes nothing; one that others have left learns it from their answers.
//
// What is decided is scheduler/nodes; one goroutine asks it.
package promise
