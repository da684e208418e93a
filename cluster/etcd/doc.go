// Package etcd keeps a cluster's state in etcd, of its version 3.4 or later.
//
// It speaks etcd's JSON interface (the gRPC gateway, which every member serves beside
// gRPC) by net/http, and not by etcd's own client: docs/internals/dependencies.md says
// why. What that means is in few places:
//
//   - client.go asks one member at a time, the next one if that fails, and knows of which
//     failures nothing can have come;
//   - watch.go begins each stream behind the last revision that was delivered, and leaves
//     members that no longer hear of a leader;
//   - lease.go counts from when a keepalive was sent, and has a guard revoke leases of a
//     process that died;
//   - upkeep.go is what members are kept in order with.
package etcd
