package pipeline

import "time"

// MonitorInterval is how often threads are adapted.
const MonitorInterval = time.Second

const (
	// idle is the load of a stage's threads, if it had one less, below which it loses one.
	idle = 0.7
	// busy is the load of a stage's threads from which it may get one more. Below it they
	// wait for room in the next queue, and so do its blocks: the next stage is the slow one.
	busy = 0.9
)

// Adapt returns the numbers of threads that stages should have from now on. Of the parallel
// stages whose blocks wait longer than they are served, the one whose blocks wait longest
// gets one more, if its threads are busy and a core is spare; of equals the last. Those that would do with one less lose one. cores are those that parallel
// stages may use together.
func Adapt(stages []Sample, cores int) []int {
	threads := make([]int, len(stages))
	most := -1
	for i, s := range stages {
		threads[i] = s.Threads
		if s.Kind != Parallel {
			continue
		}
		cores -= s.Threads
		if s.Delay > s.Service && s.load(s.Threads) >= busy && (most < 0 || s.Delay >= stages[most].Delay) {
			most = i
		}
	}
	for i, s := range stages {
		switch {
		case s.Kind != Parallel:
		case i == most && cores > 0:
			threads[i]++
		case i != most && s.Threads > 1 && s.load(s.Threads-1) < idle:
			threads[i]--
		}
	}
	return threads
}

// load is the share of time that so many threads would work.
func (s *Sample) load(threads int) float64 {
	return s.Rate * s.Service.Seconds() / float64(threads)
}
