// Package cluster is what the nodes of a cluster know together: keys with values that
// change by compare and swap, in one order that all see, and leases that end with their
// holder.
//
// State is the interface. cluster/etcd keeps it in etcd, cluster/mem in the process, for
// tests; cluster/clustertest has the tests that both must pass. Keys says which keys
// there are.
//
// Nothing here decides who may write: Ceph does that. State says who should, and a lease
// for how long data in a cache are known to be the newest.
package cluster
