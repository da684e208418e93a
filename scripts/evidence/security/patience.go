package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// patience ends after answerTime, of which a time that the whole machine stood still for
// counts as a second: nothing has crashed then.
func patience(ctx context.Context) (context.Context, context.CancelFunc) {
	soon, cancel := context.WithCancel(ctx)
	go func() {
		for range answerTime / time.Second {
			select {
			case <-soon.Done():
				return
			case <-time.After(time.Second):
			}
		}
		cancel()
	}()
	return soon, cancel
}

// errStarved is of a process that was killed because it had not ended in time, and had
// mostly waited for a CPU: a busy machine tells nothing of it.
var errStarved = errors.New("there was no CPU for it")

// starve kills a process that has not ended in time, and reports whether it waited for a CPU
// for most of that. One that waits for anything else hangs.
func starve(p *os.Process) bool {
	waited := waitedForCPU(p.Pid)
	_ = p.Kill() // it may have ended meanwhile
	return waited > answerTime/2
}

// waitedForCPU is for how long the thread of a process that waited longest was able to run,
// but did not: the second number of its schedstat.
func waitedForCPU(pid int) (longest time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, f := range files {
		text, _ := os.ReadFile(f) // empty of a thread that has ended
		var ran, waited int64
		if _, err := fmt.Sscan(string(text), &ran, &waited); err == nil {
			longest = max(longest, time.Duration(waited))
		}
	}
	return longest
}
