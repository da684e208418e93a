package target

import (
	"sync"
	"testing"
	"time"

	"lunar/internal/evloop"
	"lunar/scheduler"
)

// TestQoSAfterShutdown: who asks the scheduler, or changes it, while the server
// ends and after it gets an answer.
func TestQoSAfterShutdown(t *testing.T) {
	s := serverOf(t, time.Minute, newMemstore(t))
	p, err := scheduler.NewPolicy([]scheduler.Rule{{Initiators: []string{"*"}, Limit: scheduler.Rate{IOPS: 10}}}, nil, scheduler.Cost{})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var asking sync.WaitGroup
	for range 3 {
		asking.Go(func() {
			for ended := false; !ended; {
				select {
				case <-over:
					ended = true // once more
				default:
				}
				s.SetQoS(p)
				s.QoS("")
			}
		})
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	close(over)
	asking.Wait()
	if s.QoSPolicy() != p || len(s.QoS("").Flows) != 0 {
		t.Error("expected the last policy and no flows")
	}
}

// TestLateReport: a thread that answers too late writes to a report that nobody else
// looks at. The race detector is the judge, so that nothing may bring the two in order.
func TestLateReport(t *testing.T) {
	s := serverOf(t, time.Minute, newMemstore(t))
	q, th, ended := s.qos, s.threads[0], make(chan struct{})
	th.loop.Post(evloop.Func(func() { time.Sleep(answerTime + 200*time.Millisecond) }))
	q.mu.Lock()
	before := q.mu.reports[0]
	if answered := q.ask(0); !answered && q.mu.reports[0] == before {
		t.Error("the report is the coordinator's still")
	}
	q.mu.Unlock()
	th.loop.Post(evloop.Func(func() { close(ended) }))
	<-ended
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
