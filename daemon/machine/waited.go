package machine

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"
)

// Waited is for how long a thread of this process was ready to run and had no CPU (the
// run_delay of schedstat), 0 if the kernel does not tell.
func Waited(thread int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/schedstat", thread))
	var ran, waited time.Duration // ns
	if err == nil {
		_, err = fmt.Sscan(string(text), &ran, &waited)
	}
	if err != nil {
		return 0
	}
	return waited
}

// Stolen is for how long each CPU was ready to run something and the host ran something else
// (steal), since the machine was started. It is empty where the kernel does not tell.
func Stolen() map[int]time.Duration {
	const tick = 10 * time.Millisecond // USER_HZ of every architecture that Go knows
	out := map[int]time.Duration{}
	f, err := os.Open("/proc/stat")
	if err != nil {
		return out
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan() && strings.HasPrefix(lines.Text(), "cpu"); {
		var cpu int
		var of [8]int64 // user, nice, system, idle, iowait, irq, softirq, steal
		n, _ := fmt.Sscanf(lines.Text(), "cpu%d %d %d %d %d %d %d %d %d", &cpu, &of[0], &of[1], &of[2], &of[3], &of[4], &of[5], &of[6], &of[7])
		if n == 1+len(of) {
			out[cpu] = time.Duration(of[7]) * tick
		}
	}
	return out
}
