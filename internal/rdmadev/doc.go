// Package rdmadev reports what the kernel knows about the RDMA devices of this
// host: their names, whether this process may use them, their network device and
// NUMA node, and their counters. It reads sysfs
// (through rdmamap) and opens no device for work.
package rdmadev
