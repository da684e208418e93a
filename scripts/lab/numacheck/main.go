// Command numacheck tells where the memory of a process is: for every mapping
// that was asked of a NUMA node it asks the kernel for the node of every page.
//
//	numacheck PID
//
// It prints a line per mapping and then the sums,
//
//	mapping START BYTES NODE KIND
//	total NODE KIND BYTES
//
// where KIND is "anonymous" or the path of the mapped file. Pages that are
// missing or on another node than was asked for are said on stderr, and the exit
// status is 1. It needs the right to trace the process.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "numacheck:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("found %d arguments, expected the number of a process", len(args))
	}
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("found process %q, expected a number", args[0])
	}
	mappings, err := placed(pid)
	if err != nil {
		return err
	}
	return check(pid, mappings, out)
}

// check prints mappings and sums and reports the pages that are not where they
// should be.
func check(pid int, mappings []mapping, out io.Writer) error {
	type place struct {
		node int
		kind string
	}
	var order []place
	sums := map[place]uint64{}
	astray := 0
	for _, m := range mappings {
		at := place{m.node, m.kind}
		if sums[at] == 0 {
			order = append(order, at)
		}
		sums[at] += m.end - m.start
		fmt.Fprintf(out, "mapping %x %d %d %s\n", m.start, m.end-m.start, m.node, m.kind)
		pages, err := pagesOf(pid, m)
		if err != nil {
			return err
		}
		if pages.astray(m.node) {
			astray++
			fmt.Fprintf(os.Stderr, "%x (%s): found %v, expected all on node %d\n", m.start, m.kind, pages, m.node)
		}
	}
	for _, at := range order {
		fmt.Fprintf(out, "total %d %s %d\n", at.node, at.kind, sums[at])
	}
	if astray > 0 {
		return fmt.Errorf("%d of %d mappings have pages astray", astray, len(mappings))
	}
	return nil
}
