// Package machine is what a server finds of the machine that it runs on: memory, NUMA
// nodes, and the directory of the cache's segments.
package machine
