package buf

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxNodes bounds the node mask that mbind gets, in bits.
const maxNodes = 1024

// mapArena maps and touches size bytes. bound tells whether the NUMA policy took
// effect; it is false for node < 0.
func mapArena(size, node int) (mem []byte, bound bool, err error) {
	mem, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, false, fmt.Errorf("buffer pool: map %d bytes: %w", size, err)
	}
	if node >= 0 {
		if bound, err = prefer(mem, node); err != nil {
			return nil, false, errors.Join(err, unix.Munmap(mem))
		}
	}
	for i := 0; i < size; i += PageSize {
		mem[i] = 0
	}
	return mem, bound, nil
}

// prefer asks for the pages of mem on node. Preferring rather than binding lets a
// node without memory, or with too little, borrow from its neighbours instead of
// killing the process. Containers commonly forbid mbind (EPERM) and kernels
// without NUMA lack it (ENOSYS); both are not errors. Pages that are there already
// are moved: a huge page for the neighbour below or above, on another thread's
// node, may have covered the ends of a mapping that is just new.
func prefer(mem []byte, node int) (bool, error) {
	if node >= maxNodes {
		return false, fmt.Errorf("buffer pool on NUMA node %d: expected less than %d", node, maxNodes)
	}
	var mask [maxNodes / 64]uint64
	mask[node/64] = 1 << (node % 64)
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(&mem[0])), uintptr(len(mem)),
		unix.MPOL_PREFERRED, uintptr(unsafe.Pointer(&mask)), maxNodes+1, unix.MPOL_MF_MOVE) // the kernel counts one bit less
	switch errno {
	case 0:
		return true, nil
	case unix.EPERM, unix.ENOSYS:
		return false, nil
	}
	return false, fmt.Errorf("buffer pool: mbind %d bytes to NUMA node %d: %w", len(mem), node, errno)
}

func unmapArena(mem []byte) error {
	if mem == nil {
		return nil
	}
	if err := unix.Munmap(mem); err != nil {
		return fmt.Errorf("buffer pool: unmap %d bytes: %w", len(mem), err)
	}
	return nil
}
