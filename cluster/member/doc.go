// Package member runs a member of the cluster's own etcd on this machine: its directory,
// its certificates, how it is begun and how others join it, its process, and what keeps it
// in order.
//
// The process of Keeper (program lunar-etcd) outlives tgtd, which starts it, or somebody
// else does: a service manager, or a machine that is a witness and no more. Keeper has
// etcd as a process of its own, which it starts again when it ends; it knows of etcd by
// package cluster/etcd and a configuration file, and links none of it.
//
// Three ports in a row, from Node.Port on: etcd's members among themselves, etcd's clients,
// and joining.
package member
