// The probe is compiled into a copy of cmd/tgtd whose statements are counted: it clears
// the counters, and writes them to a directory, as it is told on a unix socket.
package main

import (
	"bufio"
	"net"
	"os"
	"runtime/coverage"
)

func init() {
	path := os.Getenv("STRUCTURE_PROBE")
	if path == "" {
		return // another process that the server starts
	}
	os.Unsetenv("STRUCTURE_PROBE")
	l, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	go probe(l)
}

// probe takes lines: none clears, others are directories. It answers with a line.
func probe(l net.Listener) {
	conn, err := l.Accept()
	if err != nil {
		panic(err)
	}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if dir := lines.Text(); dir == "" {
			err = coverage.ClearCounters()
		} else if err = coverage.WriteMetaDir(dir); err == nil {
			err = coverage.WriteCountersDir(dir)
		}
		if err != nil {
			panic(err)
		}
		if _, err := conn.Write([]byte("\n")); err != nil {
			panic(err)
		}
	}
}
