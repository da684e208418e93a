package main

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// query is how many pages the kernel is asked for at once.
const query = 4096

// maxNodes is how many nodes a kernel of Debian knows at most.
const maxNodes = 1024

// pagesOf asks for the node of every page of a mapping: move_pages(2) without a
// destination moves nothing. Unlike numa_maps it says of every page whether it
// is there at all.
func pagesOf(pid int, m mapping) (pages, error) {
	count := pages{}
	size := uint64(os.Getpagesize())
	var at [query]uint64
	var nodes [query]int32
	for first := m.start; first < m.end; first += query * size {
		n := min((m.end-first)/size, query)
		for i := range n {
			at[i] = first + i*size
		}
		_, _, errno := unix.Syscall6(unix.SYS_MOVE_PAGES, uintptr(pid), uintptr(n), uintptr(unsafe.Pointer(&at)), 0, uintptr(unsafe.Pointer(&nodes)), 0)
		if errno != 0 {
			return nil, fmt.Errorf("move_pages of process %d: %w", pid, errno)
		}
		for _, node := range nodes[:n] {
			count[max(int(node), -1)]++ // a negative node is an error number
		}
	}
	return count, nil
}
