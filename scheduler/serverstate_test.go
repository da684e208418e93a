package scheduler

import (
	"testing"
	"unsafe"
)

// TestClientLine: what each interval looks at for all clients is a cache line of each.
func TestClientLine(t *testing.T) {
	const line = 64
	if hot := unsafe.Offsetof(clientState{}.heardIn); hot > line {
		t.Errorf("found the first %d bytes, expected %d at most", hot, line)
	}
	if size := unsafe.Sizeof(clientState{}); size > 2*line {
		t.Errorf("found %d bytes, expected %d at most", size, 2*line)
	}
}
