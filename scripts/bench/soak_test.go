package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// TestSoakVerdict: steady is fine, warming up is not growth, growth is named.
func TestSoakVerdict(t *testing.T) {
	at := func(goroutines func(i int) float64) (looks []holding) {
		for i := range 40 {
			looks = append(looks, holding{resident: 100 << 20, heap: 10 << 20, threads: 9, descriptors: 30, goroutines: goroutines(i)})
		}
		return looks
	}
	for _, c := range []struct {
		name       string
		goroutines func(i int) float64
		counts     soakCounts
		fails      string
	}{
		{"steady", func(i int) float64 { return 20 + float64(i%4) }, soakCounts{}, ""},
		{"warm-up", func(i int) float64 { return 20 + 2*min(float64(i), 10) }, soakCounts{}, ""},
		{"leak", func(i int) float64 { return 20 + float64(i) }, soakCounts{}, "goroutines"},
		{"wrong data", func(int) float64 { return 20 }, soakCounts{miscompares: 1}, "1 miscompares"},
	} {
		text, err := soakText(at(c.goroutines), c.counts, time.Minute)
		if failed := errors.Is(err, errGrew); failed != (c.fails != "") || failed && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: found %v, expected %q in\n%s", c.name, err, c.fails, text)
		}
	}
	if _, err := soakText(at(func(int) float64 { return 1 })[:7], soakCounts{}, time.Minute); err == nil {
		t.Error("a soak of 7 looks was judged")
	}
}

func TestReadProcess(t *testing.T) {
	var l holding
	if err := l.readProcess(os.Getpid()); err != nil || l.resident == 0 || l.threads == 0 {
		t.Errorf("%+v, %v", l, err)
	}
}
