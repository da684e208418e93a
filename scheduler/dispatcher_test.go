package scheduler

import (
	"slices"
	"testing"
)

func TestPShift6Scheduler(t *testing.T) {
	d := NewDispatcher(ReservedFirst, NoPool, nil)
	tokens := [][2]int64{{1, 1}, {0, 1}, {2, 0}}
	var queues []*Queue
	for i, pending := range []int{2, 2, 3} {
		q := d.Add(QueueConfig{})
		d.SetTokens(q, tokens[i][0], tokens[i][1], 0)
		for range pending {
			d.Enqueue(q, &Task{Cost: 1}, 0)
		}
		queues = append(queues, q)
	}
	var order []int
	for task := d.Next(0); task != nil; task = d.Next(0) {
		order = append(order, task.Queue().slot)
	}
	if !slices.Equal(order, []int{0, 2, 2, 0, 1}) {
		t.Errorf("found order %v", order)
	}
	for i, want := range []int{0, 1, 1} {
		if got := queues[i].Pending(); got != want {
			t.Errorf("queue %d: found %d pending, expected %d", i, got, want)
		}
	}
}

// TestPShift8RoundRobin: four servers, bucket i on the first i+1 of them, all
// with work for ever: each server divides itself evenly.
func TestPShift8RoundRobin(t *testing.T) {
	const perServer = 50_000
	var served [4]int64
	for server := range 4 {
		d := NewDispatcher(ReservedFirst, NoPool, nil)
		bucket := map[*Queue]int{}
		for i := server; i < 4; i++ {
			q := d.Add(QueueConfig{})
			bucket[q] = i
			d.Enqueue(q, &Task{Cost: 1}, 0)
			d.Enqueue(q, &Task{Cost: 1}, 0)
		}
		for range perServer {
			task := d.Next(0)
			served[bucket[task.Queue()]]++
			d.Done(task, 0)
			d.Enqueue(task.Queue(), task, 0)
		}
	}
	for i, twelfths := range []int64{3, 7, 13, 25} {
		within(t, "bucket", served[i], perServer*twelfths/12, 3)
	}
}

func TestWeightedRoundRobin(t *testing.T) {
	d := NewDispatcher(ReservedFirst, NoPool, nil)
	for _, c := range []struct {
		class   Class
		pending int
	}{{Urgent, 2}, {High, 4}, {Medium, 3}, {Low, 2}} {
		q := d.Add(QueueConfig{Class: c.class})
		for range c.pending {
			d.Enqueue(q, &Task{Cost: 1}, 0)
		}
	}
	order := ""
	for task := d.Next(0); task != nil; task = d.Next(0) {
		order += map[Class]string{Urgent: "U", High: "H", Medium: "M", Low: "L"}[task.Queue().class]
	}
	if order != "UUHHHMMLHML" {
		t.Errorf("found %s, expected UUHHHMMLHML", order)
	}
}
