package target_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/target"
)

// A connection follows the logical unit that carries most of its commands to
// that unit's event thread, and no command notices.
func TestConnectionMovesToItsBusiestUnit(t *testing.T) {
	var log eventually.Output
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := newRig(t, rigOptions{lus: 2, config: target.Config{Threads: 2, Logger: logger}})
	c := r.login(initiator.Options{})
	if err := c.Ready(1); err != nil {
		t.Fatal(err)
	}
	for lun, until := uint64(1), time.Now().Add(patience); ; {
		if time.Now().After(until) {
			t.Fatal("the connection has not moved twice")
		}
		data := pattern(8192, byte(lun))
		res, err := c.Command(cdbWrite16(3, 16), lun, data, 0)
		mustGood(t, res, err)
		res, err = c.Command(cdbRead16(3, 16), lun, nil, 8192)
		if !bytes.Equal(mustGood(t, res, err).In, data) {
			t.Fatal("read back other data")
		}
		moved := log.Count("connection moved")
		if moved == 2 {
			return
		}
		lun = uint64(1 - moved%2) // after the first move, load the unit that was left
	}
}

// Task management reaches a connection wherever it is.
func TestTaskManagementDuringMoves(t *testing.T) {
	r := newRig(t, rigOptions{lus: 2, config: target.Config{Threads: 2}})
	a := r.login(initiator.Options{ISID: [6]byte{1}})
	b := r.login(initiator.Options{ISID: [6]byte{2}})
	if err := b.Ready(1); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(1500 * time.Millisecond); time.Now().Before(until); {
		if code, err := a.TaskManagement(initiator.TaskRequest{Function: initiator.ClearTaskSet, LUN: 1}); err != nil || code != 0 {
			t.Fatalf("response %d, %v", code, err)
		}
		for range 20 {
			res, err := b.Command(cdbRead16(0, 8), 1, nil, 4096)
			if err != nil {
				t.Fatal(err)
			}
			if key, _, _ := res.SenseKey(); res.Status != 0 && key != 6 {
				t.Fatalf("status %#x sense %x", res.Status, res.Sense)
			}
		}
	}
}

// A connection whose initiator always keeps commands outstanding moves too.
func TestConnectionMovesUnderLoad(t *testing.T) {
	var log eventually.Output
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := newRig(t, rigOptions{lus: 2, config: target.Config{Threads: 2, Logger: logger, Limits: target.Limits{QueueDepth: 16}}})
	c := r.login(initiator.Options{})
	if err := c.Ready(1); err != nil {
		t.Fatal(err)
	}
	var running []*initiator.Task
	for until := time.Now().Add(patience); log.Count("connection moved") == 0; {
		if time.Now().After(until) {
			t.Fatal("the connection has not moved")
		}
		for len(running) < 12 && c.WindowOpen() {
			running = append(running, start(t, c, initiator.Command{CDB: cdbRead16(0, 8), LUN: 1, InLen: 4096}))
		}
		if len(running) == 0 { // only a NOP-In can open the window now
			if _, err := c.Step(patience); err != nil {
				t.Fatal(err)
			}
			continue
		}
		res, err := c.Wait(running[0])
		mustGood(t, res, err)
		running = running[1:]
	}
	for _, task := range running {
		res, err := c.Wait(task)
		mustGood(t, res, err)
	}
}
