// Package arena maps the memory of one NUMA node, for cache blocks and I/O
// buffers: anonymous, or of a named file in a memory file system that other
// processes can map too. Memory is asked for on its node, with huge pages where
// there are any, and is all there when Open returns: an arena that does not fit
// is refused at the start, with numbers, rather than killing the process later.
//
// # Order of work
//
//	Check    does it fit: MemAvailable, free space, huge pages, locks
//	Open     map, Bind to the node, huge pages, Populate, lock
//
// Bind, Advise and Populate also serve who maps memory himself.
package arena
