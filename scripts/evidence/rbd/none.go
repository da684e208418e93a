//go:build !(linux && cgo && rbd)

// Command rbd measures the store on images of a Ceph cluster; it is built with the tag rbd.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "rbd: built without the tag rbd")
	os.Exit(1)
}
