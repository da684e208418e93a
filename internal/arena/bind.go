package arena

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"lunar/internal/bytesize"
)

// maxNodes bounds the node mask that mbind gets, in bits.
const maxNodes = 1024

// Bound tells how a request for a node's memory ended.
type Bound struct {
	OK     bool   // the kernel will take pages of that node while it has any
	Reason string // why not, for the log; empty if OK
}

// Bind asks for the pages of mem, which begins at a page, on the kernel's node.
// Preferring rather than binding strictly lets a node that runs out borrow from
// its neighbours instead of killing the process. Pages that are there already are
// moved: a huge page for the neighbour below or above, on another thread's node,
// may have covered the ends of a mapping that is just new. On memory of a shared file the
// request holds for every process that maps it. A kernel without NUMA and a
// container whose seccomp profile or missing CAP_SYS_NICE forbids mbind are not
// errors: the memory is then wherever the touching thread runs, and Reason says
// so.
func Bind(mem []byte, node int) (Bound, error) {
	if node < 0 || node >= maxNodes {
		return Bound{}, fmt.Errorf("arena: NUMA node %d: expected 0 to %d", node, maxNodes-1)
	}
	if len(mem) == 0 {
		return Bound{OK: true}, nil
	}
	var mask [maxNodes / 64]uint64
	mask[node/64] = 1 << (node % 64)
	_, _, errno := unix.Syscall6(unix.SYS_MBIND, uintptr(unsafe.Pointer(&mem[0])), uintptr(len(mem)),
		unix.MPOL_PREFERRED, uintptr(unsafe.Pointer(&mask)), maxNodes+1, unix.MPOL_MF_MOVE) // the kernel counts one bit less
	switch errno {
	case 0:
		return Bound{OK: true}, nil
	case unix.EPERM:
		return Bound{Reason: "mbind is forbidden here (EPERM): a container needs CAP_SYS_NICE or a seccomp profile that allows mbind; memory is not bound to its node"}, nil
	case unix.ENOSYS:
		return Bound{Reason: "this kernel has no NUMA support (mbind: ENOSYS)"}, nil
	}
	return Bound{}, fmt.Errorf("arena: mbind %s to NUMA node %d: %w", bytesize.Text(int64(len(mem))), node, errno)
}
