package arena

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestMap(t *testing.T) {
	for _, node := range []int{-1, 0} {
		mem, err := Map(3*4096, node)
		if err != nil {
			t.Fatal(err)
		}
		for i := range mem {
			if mem[i] != 0 {
				t.Fatalf("node %d: byte %d is %d", node, i, mem[i])
			}
			mem[i] = 1
		}
		if err := unix.Munmap(mem); err != nil {
			t.Error(err)
		}
	}
	if _, err := Map(4096, maxNodes); err == nil {
		t.Error("memory of a node that cannot be was mapped")
	}
}
