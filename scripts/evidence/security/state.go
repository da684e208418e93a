package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"lunar/internal/initiator"
)

// The attacks of this file leave state behind, or change somebody else's.

// two are sessions of the attacker and of somebody else with the same volume.
func (s *scene) two(ctx context.Context) (attacker, other *initiator.Conn, err error) {
	attacker, err = s.ready(ctx, malloryAddress, mallory(canaryTarget, 1))
	if err != nil {
		return nil, nil, err
	}
	other, err = s.ready(ctx, honestAddress, as("iqn.2026-11.example.host:honest", openTarget, nil, 2))
	return attacker, other, err
}

// serve counts whether others are served.
func (t *tally) serve(served bool) {
	if served {
		t.add(othersServed, 1)
	} else {
		t.add(othersNot, 1)
	}
}

// worked reports whether a command ended well.
func worked(c *initiator.Conn, cdb, out []byte) (bool, error) {
	r, err := c.Command(cdb, 0, out, 0)
	return err == nil && r.Response == 0 && r.Status == initiator.StatusGood, err
}

// reserveOut is PERSISTENT RESERVE OUT.
func reserveOut(action byte, n int) []byte {
	c := []byte{0x5f, action, 0, 0, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(c[5:], uint32(n))
	return c
}

// registrationList are the parameters of REGISTER, and TransportIDs of initiators from one
// number up to another.
func registrationList(key, action uint64, from, to int) []byte {
	list := make([]byte, 24)
	binary.BigEndian.PutUint64(list, key)
	binary.BigEndian.PutUint64(list[8:], action)
	if from == to {
		return list
	}
	list[20] = 0x08 // SPEC_I_PT
	var ids []byte
	for i := from; i < to; i++ {
		id := fmt.Appendf([]byte{0x45, 0, 0, 0}, "iqn.2026-11.example.made-up:x,i,0x80%010x\x00", i)
		id = append(id, make([]byte, -len(id)&3)...)
		binary.BigEndian.PutUint16(id[2:], uint16(len(id)-4))
		ids = append(ids, id...)
	}
	return append(binary.BigEndian.AppendUint32(list, uint32(len(ids))), ids...)
}

// registrations takes all of a volume, most of them in one command.
func registrations(ctx context.Context, s *scene) (figures, error) {
	attacker, other, err := s.two(ctx)
	if err != nil {
		return nil, err
	}
	second, err := s.ready(ctx, malloryAddress, mallory(canaryTarget, 5))
	if err != nil {
		return nil, err
	}
	t := newTally()
	for c, to := range map[*initiator.Conn]int{attacker: 1023, second: 1024} {
		list := registrationList(0, 1, to/1024*1023, to)
		all, err := worked(c, reserveOut(0, len(list)), list)
		if err != nil {
			return nil, err
		}
		if all {
			t.add("registrations made", float64(to%1024+to/1024))
		}
	}
	own := registrationList(0, 2, 0, 0)
	served, err := worked(other, reserveOut(0, len(own)), own)
	if err != nil {
		return nil, err
	}
	t.serve(served)
	<-ctx.Done()
	return t.figures(), s.clear()
}

// clear ends the registrations, with whatever key made them.
func (s *scene) clear() error {
	ctx, cancel := context.WithTimeout(context.Background(), answerTime)
	defer cancel()
	attacker, other, err := s.two(ctx)
	if err != nil {
		return err
	}
	for c, key := range map[*initiator.Conn]uint64{attacker: 1, other: 2} {
		list := registrationList(key, 0, 0, 0)
		if _, err := worked(c, reserveOut(3, len(list)), list); err != nil {
			return err
		}
	}
	return nil
}

// tokens makes as many as it can.
func tokens(ctx context.Context, s *scene) (figures, error) {
	attacker, _, err := s.two(ctx)
	if err != nil {
		return nil, err
	}
	other, err := s.ready(ctx, honestAddress, as(fmt.Sprintf("iqn.2026-11.example.host:honest-%d", s.Seed), openTarget, nil, 2))
	if err != nil {
		return nil, err
	}
	t := newTally()
	go func() { // a few, for somebody who has none yet
		for i := uint32(0); i < 4 && pause(ctx, 100*time.Millisecond); i++ {
			_, err := populate(other, 1<<20|i, 0, 1)
			if ctx.Err() == nil {
				t.serve(err == nil)
			}
		}
	}()
	for i := uint32(0); pause(ctx, 2*time.Millisecond); i++ {
		if _, err := populate(attacker, i, int(i)%1024, 1); err == nil {
			t.add("tokens made/s", 1)
		}
	}
	return t.figures(), nil
}

// copies keeps long copies going in the background.
func copies(ctx context.Context, s *scene) (figures, error) {
	attacker, other, err := s.two(ctx)
	if err != nil {
		return nil, err
	}
	unit, err := designator(other, 0)
	if err != nil {
		return nil, err
	}
	t := newTally()
	go func() {
		for i := uint32(0); pause(ctx, 50*time.Millisecond); i++ {
			list := backgroundCopy(1<<20|i, unit, 1)
			done, err := worked(other, listCDB(0x83, 0x01, 0, len(list)), list)
			if ctx.Err() == nil && err == nil {
				t.serve(done)
			}
		}
	}()
	for id := uint32(1); pause(ctx, 2*time.Millisecond); id++ {
		list := backgroundCopy(id, unit, 64)
		begun, err := worked(attacker, listCDB(0x83, 0x01, 0, len(list)), list)
		if err != nil {
			break
		}
		if begun {
			t.add("copies begun/s", 1)
		}
	}
	return t.figures(), nil
}

// backgroundCopy is the list of EXTENDED COPY(LID4) with IMMED: so often 32 MiB within a
// volume.
func backgroundCopy(id uint32, unit []byte, segments int) []byte {
	list := make([]byte, 48)
	list[0], list[15] = 1, 1
	binary.BigEndian.PutUint32(list[20:], id)
	binary.BigEndian.PutUint16(list[42:], 32)
	binary.BigEndian.PutUint16(list[44:], uint16(segments*28))
	list = append(list, cscds([][]byte{unit})...)
	for range segments {
		list = append(list, copySegment(0, 0, 0xffff, 0, 1<<16)...)
	}
	return list
}

// manages sends a task management function again and again.
func manages(function byte) func(context.Context, *scene) (figures, error) {
	return func(ctx context.Context, s *scene) (figures, error) {
		t := newTally()
		crowd(ctx, 1, func(int) error {
			c, err := s.login(ctx, malloryAddress, mallory(readerTarget, 3))
			if err != nil {
				return err
			}
			defer c.Close()
			for pause(ctx, 100*time.Millisecond) {
				code, err := c.TaskManagement(initiator.TaskRequest{Function: function})
				if err != nil {
					return err
				}
				t.add(fmt.Sprintf("responses %d", code), 1)
			}
			return nil
		})
		return t.figures(), nil
	}
}

// changesByReader tries all that changes what others see.
func changesByReader(ctx context.Context, s *scene) (figures, error) {
	f := figures{changed: 0}
	key := registrationList(0, 5, 0, 0)
	now := []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0}
	caching := append([]byte{0, 0, 0, 0, 0x08, 0x12}, make([]byte, 18)...)
	for _, c := range []struct{ cdb, out []byte }{
		{reserveOut(0, len(key)), key},
		{reserveOut(1, 24), append([]byte{7: 5}, make([]byte, 16)...)},
		{[]byte{0x16, 0, 0, 0, 0, 0}, nil},
		{[]byte{0x15, 0x10, 0, 0, byte(len(caching)), 0}, caching},
		{[]byte{0xa4, 0x0f, 0, 0, 0, 0, 0, 0, 0, byte(len(now)), 0, 0}, now},
		{[]byte{0xa4, 0x0a, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0}, []byte{0, 0, 0, 0, 0, 0, 0, 1}},
		{[]byte{0x1e, 0, 0, 0, 1, 0}, nil},
		{[]byte{0x48, 0x82, 0, 0, 0, 0, 0, 0, 0, 0}, nil},
	} {
		session, err := s.ready(ctx, malloryAddress, mallory(readerTarget, 4))
		if err != nil {
			return nil, err
		}
		done, err := worked(session, c.cdb, c.out)
		if err != nil {
			return nil, fmt.Errorf("command %#02x: %w", c.cdb[0], err)
		}
		if done {
			f[changed]++
		}
		pause(ctx, 100*time.Millisecond)
		session.Close()
	}
	<-ctx.Done()
	return f, nil
}
