package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc (USER_HZ).
const tick = 10 * time.Millisecond

// spentBy is the CPU time of a process and of those of its children that have ended.
func spentBy(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	all, ticks := strings.Fields(rest), 0
	for i := 11; i < 15 && i < len(all); i++ { // utime, stime, cutime, cstime
		n, _ := strconv.Atoi(all[i]) // digits
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// commands is the CPU time of all commands that run has run.
var commands time.Duration

func run(name string, args ...string) error {
	c := exec.Command(name, args...)
	said, err := c.CombinedOutput()
	if c.ProcessState != nil {
		commands += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, said)
	}
	return nil
}
