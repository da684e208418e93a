package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"lunar/internal/initiator/load"
)

// On a shared machine another process's share of the two CPUs decides more than
// either server does. So every run notes how much of the machine was taken by
// others, and a disturbed pair is run again. In the real-time class that is not
// needed: others then get only what the benchmark leaves idle.
const quietBelow = 0.05 // share of the machine's CPU time

// busy is CPU time since the machine started: taken by programs and the kernel
// on their behalf, and stolen by the host of a virtual machine.
type busy struct {
	at            time.Time
	taken, stolen time.Duration
	server        time.Duration // the server's part of taken
}

// look notes the machine's load and that of a server.
func look(s *server) (busy, error) {
	b, err := lookAround()
	if err != nil {
		return b, err
	}
	b.server, err = load.ProcessTime(s.pid())
	return b, err
}

// lookAround notes the machine's load alone.
func lookAround() (busy, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return busy{}, fmt.Errorf("machine load: %w", err)
	}
	b, err := parseMachineLoad(text)
	b.at = time.Now()
	return b, err
}

// tick is 1/USER_HZ.
const tick = 10 * time.Millisecond

// parseMachineLoad reads user, nice, system and steal of the first line of
// /proc/stat. Interrupts are left out: the network's are the benchmark's own.
func parseMachineLoad(text []byte) (busy, error) {
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 9 || string(fields[0]) != "cpu" {
		return busy{}, fmt.Errorf("machine load %q, expected a line of cpu and 8 numbers or more", line)
	}
	var ticks [8]time.Duration
	for i := range ticks {
		n, err := strconv.ParseInt(string(fields[i+1]), 10, 63)
		if err != nil {
			return busy{}, fmt.Errorf("machine load: %w", err)
		}
		ticks[i] = time.Duration(n) * tick
	}
	return busy{taken: ticks[0] + ticks[1] + ticks[2], stolen: ticks[7]}, nil
}

// foreign returns the share of the machine that neither the server nor the
// client used between two looks, client being its CPU time.
func foreign(from, to busy, client time.Duration) float64 {
	others := (to.taken - from.taken) - (to.server - from.server) - client + (to.stolen - from.stolen)
	wall := to.at.Sub(from.at) * time.Duration(runtime.NumCPU())
	return max(0, float64(others)/float64(wall))
}
