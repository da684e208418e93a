// Package confine takes from the process what it does not need: core dumps, which
// would write initiators' data and keys to a disk, and system calls that no part of a
// running server makes. An attacker who takes over the process then cannot start
// programs, trace others, mount, load modules or enter other namespaces. It can still
// use the files, sockets and devices that the process's user may use.
//
// Nothing of it is needed to serve: where the kernel or a container refuses it, the
// caller logs that and goes on.
package confine
