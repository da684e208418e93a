// Package rdmadev says what the kernel knows about the RDMA devices of this
// host: which there are, whether this process may use them, to which network
// device and NUMA node they belong, and what they have counted. It reads sysfs
// (through rdmamap) and opens no device for work.
package rdmadev
