package server

import "unsafe"

// pointer is that of a list for a system call.
func pointer(list []uint32) uintptr {
	if len(list) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(&list[0]))
}
