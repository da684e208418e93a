package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"lunar/internal/initiator"
	"lunar/internal/lint/structure"
)

// scene is a walk to be measured.
type scene struct {
	name    string
	config  string
	idle    time.Duration // how long an idle server is watched: its clocks tick meanwhile
	prepare int           // commands before each window
	command initiator.Command
	least   time.Duration // that the command takes, which shows that it waited
}

// throttled lets an initiator have two commands a second.
const throttled = `qos: {rules: [{name: slow, initiators: ["*"], limit: 2}]}
`

var scenes = []scene{
	{name: "READ of 4 KiB", idle: time.Second, command: transfer(0x88, nil, blocks*512)},
	{name: "WRITE of 4 KiB", idle: time.Second, command: transfer(0x8a, make([]byte, blocks*512), 0)},
	{name: "READ of 4 KiB that waits for tokens", idle: 3 * time.Second, config: throttled, prepare: 2,
		command: transfer(0x88, nil, blocks*512), least: 50 * time.Millisecond},
}

const (
	blocks  = 8
	windows = 5 // how often each is measured
)

// transfer is READ (16) or WRITE (16) of the first blocks.
func transfer(opcode byte, out []byte, in int) initiator.Command {
	cdb := make([]byte, 16)
	cdb[0] = opcode
	binary.BigEndian.PutUint32(cdb[10:], blocks)
	return initiator.Command{CDB: cdb, Out: out, InLen: in}
}

// measureWalks runs every scene on a server of its own.
func measureWalks(dir string, tree *structure.Tree, binary string) (all []walk, err error) {
	for i, scene := range scenes {
		at := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(at, 0o755); err != nil {
			return nil, err
		}
		s, err := start(binary, at, scene.config)
		if err != nil {
			return nil, err
		}
		c, err := scene.measure(s)
		if err := firstOf(err, s.stop()); err != nil {
			return nil, fmt.Errorf("%s: %w", scene.name, err)
		}
		all = append(all, newWalk(scene.name, tree, resolve(tree, c)))
	}
	return all, nil
}

func firstOf(errors ...error) error {
	for _, err := range errors {
		if err != nil {
			return err
		}
	}
	return nil
}

// measure returns the blocks that every command executes, of functions that do not run
// while the server has nothing to do.
func (s scene) measure(on *server) (counts, error) {
	for range 2 * windows { // what only the first ones do is no part of a walk
		if _, err := s.run(on.conn); err != nil {
			return nil, err
		}
	}
	common := counts(nil)
	for range windows {
		for range s.prepare {
			if _, err := s.run(on.conn); err != nil {
				return nil, err
			}
		}
		c, err := on.window(s.once)
		if err != nil {
			return nil, err
		}
		common = common.both(c)
	}
	for range windows {
		idle, err := on.window(func(*initiator.Conn) error { time.Sleep(s.idle); return nil })
		if err != nil {
			return nil, err
		}
		common.leaveOut(idle)
	}
	return common, nil
}

// once is a command that has to take as long as it should.
func (s scene) once(conn *initiator.Conn) error {
	took, err := s.run(conn)
	if err == nil && took < s.least {
		err = fmt.Errorf("the command took %v, expected it to wait", took)
	}
	return err
}

func (s scene) run(conn *initiator.Conn) (time.Duration, error) {
	began := time.Now()
	r, err := conn.Do(s.command)
	if err == nil && (r.Response != 0 || r.Status != initiator.StatusGood) {
		err = &initiator.StatusError{Opcode: s.command.CDB[0], Result: r}
	}
	return time.Since(began), err
}
