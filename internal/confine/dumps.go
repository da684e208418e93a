package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// CoreDumps says whether the process leaves a core dump when it crashes, and whether
// other processes of its user may trace it and read its memory (PR_SET_DUMPABLE).
// Root may do that all the same.
func CoreDumps(allowed bool) error {
	value := uintptr(0)
	if allowed {
		value = 1
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, value, 0, 0, 0); err != nil {
		return fmt.Errorf("core dumps: %w", err)
	}
	return nil
}
