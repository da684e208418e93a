package prefetch

import (
	"bytes"
	"testing"
)

// TestBytes: any length and alignment is fine, nothing is changed, nothing is
// allocated.
func TestBytes(t *testing.T) {
	memory := bytes.Repeat([]byte{7}, 1<<16)
	Bytes(nil)
	for n := range 300 {
		Bytes(memory[n : 2*n])
		Bytes(memory[len(memory)-n:])
	}
	if n := testing.AllocsPerRun(100, func() { Bytes(memory) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if !bytes.Equal(memory, bytes.Repeat([]byte{7}, 1<<16)) {
		t.Error("memory changed")
	}
}
