package loglimit

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func journal() (*Journal, *bytes.Buffer, *clock) {
	var text bytes.Buffer
	c := &clock{time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)}
	return New(slog.New(slog.NewTextHandler(&text, nil)), c.now), &text, c
}

func lines(text *bytes.Buffer) int { return strings.Count(text.String(), "\n") }

// TestStrangersCannotFillTheLog: however many addresses write as fast as they can, the
// log grows by a fixed number of lines a second, and tells what is missing.
func TestStrangersCannotFillTheLog(t *testing.T) {
	j, text, c := journal()
	const seconds, perSecond = 100, 600
	written := 0
	for s := range seconds {
		for i := range perSecond {
			j.Logger(fmt.Sprint("10.0.0.", i%20), false).With("initiator", "x").Info("login failed")
			written++
		}
		c.Time = c.Add(time.Second)
		if s%10 == 9 {
			j.Tell()
		}
	}
	most := allStrangers.Burst + seconds*10 + seconds/10*(maxSummaries+1)
	if n := lines(text); n > most {
		t.Errorf("%d lines of %d, expected at most %d", n, written, most)
	}
	sum := strings.Count(text.String(), "login failed")
	for line := range strings.Lines(text.String()) {
		if _, more, ok := strings.Cut(line, " more="); ok {
			var n int
			fmt.Sscan(more, &n)
			sum += n
		}
	}
	if sum != written {
		t.Errorf("%d lines were logged or counted, expected %d", sum, written)
	}
}

// TestOneStranger: an address that writes much leaves room for others, and for those
// who are known.
func TestOneStranger(t *testing.T) {
	j, text, _ := journal()
	for range 10000 {
		j.Logger("10.0.0.66", false).Warn("noise")
	}
	if n := lines(text); n != eachStranger.Burst {
		t.Errorf("%d lines, expected %d", n, eachStranger.Burst)
	}
	j.Logger("10.0.0.2", false).Info("quiet")
	for range 1000 {
		j.Logger("10.0.0.66", true).Info("session opened")
	}
	j.Logger("10.0.0.66", false).Error("a fault of the server")
	for what, want := range map[string]int{"quiet": 1, "session opened": 1000, "a fault": 1} {
		if n := strings.Count(text.String(), what); n != want {
			t.Errorf("%d lines with %q, expected %d", n, what, want)
		}
	}
}

// TestForgottenPeers: of peers beyond what is remembered the sum is told.
func TestForgottenPeers(t *testing.T) {
	j, text, _ := journal()
	const peers = 2 * maxRemembered
	for i := range peers {
		j.Logger(fmt.Sprint(i), false).Info("noise")
	}
	j.Tell()
	if want := fmt.Sprintf("further addresses were held back\" more=%d\n", peers-allStrangers.Burst-maxSummaries); !strings.Contains(text.String(), want) {
		t.Errorf("found no %q at the end of\n%s", want, text)
	}
	text.Reset()
	if j.Tell(); text.Len() > 0 {
		t.Errorf("found %s, expected nothing", text)
	}
}
