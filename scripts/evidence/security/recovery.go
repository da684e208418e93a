package main

import (
	"context"
	"errors"
	"io"
	"time"

	"lunar/internal/initiator"
)

// The attacks of this file need ErrorRecoveryLevel 1 or 2.

// recovering are the keys of a session at a level, with several connections.
func recovering(level string) initiator.Keys {
	return initiator.Keys{{Name: "ErrorRecoveryLevel", Value: level}, {Name: "MaxConnections", Value: "4"}, {Name: "DefaultTime2Wait", Value: "0"}, {Name: "DefaultTime2Retain", Value: "60"}}
}

// read256K is a read whose data are worth keeping.
var read256K = initiator.Command{CDB: cdb16(0x88, 0, 512), InLen: 256 << 10, Attr: initiator.AttrSimple}

// inquiry is a command of which data and status are kept, and little else.
var inquiry = initiator.Command{CDB: []byte{0x12, 0, 0, 0, 36, 0}, InLen: 36, Attr: initiator.AttrSimple}

// acknowledge lets responses pile up and acknowledges them in one PDU.
func acknowledge(ctx context.Context, s *scene) (figures, error) {
	t := newTally()
	crowd(ctx, 1, func(int) error {
		o := stranger(openTarget, 1)
		o.Keys = recovering("2")
		c, err := s.ready(ctx, malloryAddress, o)
		if err != nil {
			return err
		}
		defer c.Close()
		n, err := pileUp(ctx, c, inquiry, 10000)
		if err != nil {
			return err
		}
		t.atLeast("responses acknowledged at once", float64(n))
		begin := time.Now()
		err = c.Ping(nil)
		t.atLeast("longest acknowledgement, ms", float64(time.Since(begin).Milliseconds()))
		return err
	})
	return t.figures(), nil
}

// pileUp has up to most commands answered, the window's worth at a time, and tells the
// target of none of the answers.
func pileUp(ctx context.Context, c *initiator.Conn, command initiator.Command, most int) (n int, err error) {
	told := c.ExpStatSN
	for n < most && ctx.Err() == nil {
		var last *initiator.Task
		seen := c.ExpStatSN
		c.ExpStatSN = told
		for range min(64, most-n) {
			task, err := c.Start(command)
			if errors.Is(err, initiator.ErrWindowClosed) {
				break
			}
			if err != nil {
				return n, err
			}
			last = task
			n++
		}
		c.ExpStatSN = seen
		if last == nil { // the target lets no more pile up
			return n, nil
		}
		if _, err := c.Wait(last); err != nil {
			return n, err
		}
	}
	return n, nil
}

// snacks has the data of one read sent again and again.
func snacks(ctx context.Context, s *scene) (figures, error) {
	t := newTally()
	in, out := 0.0, 0.0
	crowd(ctx, 1, func(int) error {
		o := stranger(openTarget, 1)
		o.Keys = recovering("1")
		c, err := s.ready(ctx, malloryAddress, o)
		if err != nil {
			return err
		}
		defer c.Close()
		told := c.ExpStatSN
		task, err := c.Start(read256K)
		if err == nil {
			_, err = c.Wait(task)
		}
		if err != nil {
			return err
		}
		c.ExpStatSN = told
		received := make(chan int64)
		go func() {
			n, _ := io.Copy(io.Discard, c.Transport())
			received <- n
		}()
		for ctx.Err() == nil && err == nil {
			if err = c.SNACK(initiator.SNACKData, task.ITT, initiator.NoTag, 0, 0); err == nil {
				in += 48
			}
			pause(ctx, time.Millisecond)
		}
		c.Close()
		out += float64(<-received)
		return err
	})
	t.add("SNACKs/s", in/48)
	t.add("bytes sent again/s", out)
	if in > 0 {
		t.add(amplified, out/in)
	}
	return t.figures(), nil
}

// lostConnections leaves one after the other behind, each with what it has not
// acknowledged.
func lostConnections(ctx context.Context, s *scene) (figures, error) {
	t := newTally()
	crowd(ctx, 4, func(i int) error {
		o := stranger(openTarget, i)
		o.Keys = recovering("2")
		lead, err := s.login(ctx, malloryAddress, o)
		if err != nil {
			return err
		}
		defer lead.Close()
		for cid := uint16(1); ctx.Err() == nil; cid++ {
			nc, err := dialFrom(ctx, malloryAddress, s.Portal)
			if err != nil {
				return err
			}
			c, err := lead.JoinOver(nc, initiator.Options{Target: openTarget, Initiator: strangerName, CID: cid})
			if err != nil {
				nc.Close()
				return err
			}
			_, err = pileUp(ctx, c, read256K, 16)
			nc.Close()
			t.add("connections lost/s", 1)
			if err := errors.Join(err, lead.Ping(nil)); err != nil {
				return err
			}
		}
		return nil
	})
	return t.figures(), nil
}
