package events

import (
	"bytes"
	"math"
	"testing"

	"pgregory.net/rapid"

	"lunar/scheduler/batch"
	"lunar/scripts/sim/experiment"
	"lunar/scripts/sim/experiment/experimenttest"
	"lunar/scripts/sim/kernel"
)

// TestExperiments: every row's reduced size meets its criteria.
func TestExperiments(t *testing.T) {
	experimenttest.Run(t, Experiments())
}

// TestSharers: 40 loops on 32 cores: eight cores have two.
func TestSharers(t *testing.T) {
	shared := 0
	for i := range 40 {
		if sharers(i, 40) == 2 {
			shared++
		}
	}
	if shared != 16 || sharers(0, 32) != 1 || sharers(63, 64) != 2 {
		t.Errorf("found %d loops of 40 that share a core, expected 16", shared)
	}
}

// TestLoopIsStation: M/M/1 at 100K of 162K; the loop adds nothing of its own.
func TestLoopIsStation(t *testing.T) {
	l, err := offered(&experiment.Env{Seed: 3}, 100e3, markov(possible), each, 4e9)
	if err != nil {
		t.Fatal(err)
	}
	if want := 1e6 / (possible - 100e3); math.Abs(l.stay()-want) > 0.03*want {
		t.Errorf("mean stay of %.2f us, expected %.2f ±3 %%", l.stay(), want)
	}
}

// TestSameLog: the same seed decides the same, byte for byte, and another does not.
func TestSameLog(t *testing.T) {
	logOf := func(seed uint64) []byte {
		var log bytes.Buffer
		if _, err := (&scaled{&experiment.Env{Seed: seed, Log: &log}, 3, 2, 4, passes}).run(5e6); err != nil {
			t.Fatal(err)
		}
		return log.Bytes()
	}
	a := logOf(1)
	if !bytes.Equal(a, logOf(1)) || !bytes.Contains(a, []byte(" post 1 ")) {
		t.Error("two logs of one seed differ, or have no posts")
	}
	if bytes.Equal(a, logOf(2)) {
		t.Error("two seeds give the same log")
	}
}

// TestEachRequestIsAnsweredInOrderAndTime: whatever comes and however it is gathered, each request is answered
// once, in order, none later than its turn and the batch's delay allow, and a lone
// one without any delay.
func TestEachRequestIsAnsweredInOrderAndTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var k kernel.Kernel
		c := batch.Config{
			Mode: batch.Mode(rapid.IntRange(0, 2).Draw(t, "mode")), Level: rapid.IntRange(1, 8).Draw(t, "level"),
			Delay: rapid.Int64Range(0, 50_000).Draw(t, "delay"), Interval: 1e6,
		}
		const serve, post = 4000, 2000
		l := newLoop(&k, 0, fixed(serve, post), c, nil)
		n := rapid.IntRange(1, 60).Draw(t, "requests")
		var answered []int
		came := make([]int64, n+1)
		for i := range n {
			came[i] = rapid.SampledFrom([]int64{0, 1000, 6000, 100_000}).Draw(t, "pause")
			if i > 0 {
				came[i] += came[i-1]
			}
		}
		came[n] = math.MaxInt64
		for i := range n {
			k.After(came[i], kernel.Arrival, func() {
				alone := !l.busy && l.inbox.len()+l.ready.len() == 0 && came[i+1] > came[i]+serve+post
				l.accept(func() {
					answered = append(answered, i)
					took := k.Now() - came[i]
					if took > int64(n)*(serve+post)+c.Delay || alone && took != serve+post {
						t.Fatalf("request %d took %d ns, alone: %v", i, took, alone)
					}
				})
			})
		}
		k.Drain()
		if len(answered) != n || l.batch.Waiting() != 0 {
			t.Fatalf("found %d answers to %d requests, %d wait", len(answered), n, l.batch.Waiting())
		}
		for i, a := range answered {
			if a != i {
				t.Fatalf("found request %d answered as number %d", a, i)
			}
		}
	})
}
