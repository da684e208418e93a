package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"lunar/internal/initiator"
)

// operation is a command as the server reports it (SPC-4 6.31).
type operation struct {
	opcode byte
	action int    // -1: it has none
	usage  []byte // CDB usage data
}

// operations asks the server which commands it has, and which bits of them mean something.
func operations(c *initiator.Conn) ([]operation, error) {
	ask := func(options, opcode byte, action int) []byte {
		cdb := []byte{0xa3, 0x0c, options, opcode, 0, 0, 0, 0, 0x40, 0, 0, 0}
		if action >= 0 {
			binary.BigEndian.PutUint16(cdb[4:], uint16(action))
		}
		return cdb
	}
	all, err := good(c, ask(0, 0, -1), 0, nil, 1<<14)
	if err != nil || len(all) < 4 {
		return nil, fmt.Errorf("REPORT SUPPORTED OPERATION CODES: %d bytes, %w", len(all), err)
	}
	var table []operation
	for d := all[4:]; len(d) >= 8; d = d[8:] {
		o := operation{opcode: d[0], action: -1}
		options := byte(1)
		if d[5]&1 != 0 {
			o.action, options = int(binary.BigEndian.Uint16(d[2:])), 2
		}
		one, err := good(c, ask(options, o.opcode, o.action), 0, nil, 1<<14)
		if err != nil || len(one) < 4 {
			return nil, fmt.Errorf("usage of command %#02x: %w", o.opcode, err)
		}
		o.usage = one[4:][:min(len(one)-4, int(binary.BigEndian.Uint16(one[2:])))]
		table = append(table, o)
	}
	return table, nil
}

// fuzzSCSI sends commands over a session that lives as long as it goes on.
func fuzzSCSI(s *scene) sender {
	var mu sync.Mutex
	var c *initiator.Conn
	var table []operation
	open := func(ctx context.Context) (err error) {
		if c != nil {
			return nil
		}
		c, err = s.login(ctx, malloryAddress, stranger(openTarget, 1<<21|rand.IntN(1<<16)))
		if err == nil {
			c.Timeout = 2 * time.Second
			_ = c.Ready(0) // which an input may have stopped
			if table == nil {
				table, err = operations(c)
			}
		}
		return err
	}
	return func(ctx context.Context, r *rand.Rand) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if err := open(ctx); err != nil {
			if c != nil {
				c.Close()
			}
			c = nil
			return "", err
		}
		o := table[r.IntN(len(table))]
		command := o.command(r)
		result, err := c.Do(command)
		if err != nil {
			c.Close()
			c = nil
			return fmt.Sprintf("%02x/%d %s", o.opcode, o.action, ended(err)), nil
		}
		key, asc, ascq := result.SenseKey()
		return fmt.Sprintf("%02x/%d %02x %02x/%02x/%02x", o.opcode, o.action, result.Status, key, asc, ascq), nil
	}
}

// command draws a CDB within the usage mask, mostly, and what goes with it.
func (o operation) command(r *rand.Rand) initiator.Command {
	cdb := make([]byte, max(6, len(o.usage)))
	for i, mask := range o.usage {
		switch {
		case i == 0:
			cdb[i] = o.opcode
		case odds(r, 2):
			cdb[i] = byte(r.Uint32()) & mask
		case odds(r, 60):
			cdb[i] = byte(r.Uint32())
		}
	}
	if o.action >= 0 {
		if len(o.usage) > 16 { // a variable length CDB
			binary.BigEndian.PutUint16(cdb[8:], uint16(o.action))
			cdb[7] = byte(len(cdb) - 8)
		} else {
			cdb[1] = cdb[1]&^0x1f | byte(o.action)&0x1f
		}
	}
	command := initiator.Command{CDB: cdb, Attr: pick[byte](r, 1, 1, 1, 2, 3, 0, 4), LUN: pick[uint64](r, 0, 0, 0, 0, 0, 0, 0, 1, 255, 300)}
	list := parameterList(r, o)
	switch r.IntN(8) {
	case 0, 1, 2:
		command.InLen = pick(r, 512, 4096, 65536, r.IntN(300))
	case 3: // neither
	default:
		command.Out = list
		if len(list) > 0 {
			putListLength(cdb, len(list))
		}
	}
	return command
}

// putListLength puts the length where CDBs of this size have it.
func putListLength(cdb []byte, n int) {
	switch {
	case len(cdb) == 6:
		cdb[4] = byte(n)
	case cdb[0] == 0x5f:
		binary.BigEndian.PutUint32(cdb[5:], uint32(n))
	case len(cdb) == 10:
		binary.BigEndian.PutUint16(cdb[7:], uint16(n))
	case len(cdb) == 12:
		binary.BigEndian.PutUint32(cdb[6:], uint32(n))
	case len(cdb) == 16 && cdb[0] == 0x83:
		binary.BigEndian.PutUint32(cdb[10:], uint32(n))
	case len(cdb) >= 16:
		binary.BigEndian.PutUint32(cdb[10:], uint32((n+511)/512))
	}
}

// lists draw parameter lists, by opcode.
var lists = map[byte]func(*rand.Rand) []byte{
	0x15: func(r *rand.Rand) []byte { return append(make([]byte, 4+8*r.IntN(2)), modePages(r)...) },
	0x55: func(r *rand.Rand) []byte { return append(make([]byte, 8+8*r.IntN(2)), modePages(r)...) },
	0x42: func(r *rand.Rand) []byte { return lengths(r, 8, ranges(r), 2, 0, 2) },
	0x5f: func(r *rand.Rand) []byte {
		from := r.IntN(4)
		return registrationList(uint64(r.IntN(3)), uint64(r.IntN(3)), from, from+pick(r, 0, 0, 1, 100))
	},
	0x83: copyLists,
	0xa4: func(r *rand.Rand) []byte {
		return append([]byte{0, 0, 0, 0}, noise(r, 4*pick(r, 0, 1, 2, 300))...)
	},
	0x48: func(r *rand.Rand) []byte { return append([]byte{byte(r.IntN(256)), 0, 0, 4}, noise(r, 4)...) },
}

// parameterList draws one for an operation: of its kind, or of any length.
func parameterList(r *rand.Rand, o operation) (list []byte) {
	if draw, ok := lists[o.opcode]; ok && !odds(r, 8) {
		list = draw(r)
	} else {
		list = noise(r, pick(r, 0, 1, 8, 24, 512, 1024, 4096, r.IntN(70000)))
	}
	for range r.IntN(3) {
		if len(list) > 0 {
			list[r.IntN(len(list))] = byte(number(r))
		}
	}
	if odds(r, 12) {
		list = list[:r.IntN(len(list)+1)]
	}
	return list
}

// modePages draws pages, with the lengths that they say or others.
func modePages(r *rand.Rand) (pages []byte) {
	for range r.IntN(4) {
		length := pick(r, 0x0a, 0x12, r.IntN(256))
		pages = append(append(pages, pick[byte](r, 0x01, 0x08, 0x0a, 0x1c, byte(r.Uint32())), byte(length)), noise(r, pick(r, length, r.IntN(64)))...)
	}
	return pages
}

// ranges draws block range descriptors.
func ranges(r *rand.Rand) (all []byte) {
	for range pick(r, 0, 1, 2, 8, 300) {
		all = append(all, blockRange(int(number(r)>>1), int(uint32(number(r))))...)
	}
	return all
}

// lengths puts a header before the body, with its length less by so much at one place,
// and the body's at another.
func lengths(r *rand.Rand, header int, body []byte, less, all, part int) []byte {
	list := append(make([]byte, header), body...)
	binary.BigEndian.PutUint16(list[all:], uint16(len(list)-less))
	binary.BigEndian.PutUint16(list[part:], uint16(len(body)))
	return list
}

// copyLists draws the lists of EXTENDED COPY, POPULATE TOKEN and WRITE USING TOKEN.
func copyLists(r *rand.Rand) []byte {
	unit := noise(r, 8)
	switch r.IntN(4) {
	case 0:
		return backgroundCopy(r.Uint32(), unit, r.IntN(70))
	case 1:
		return lengths(r, 16, ranges(r), 2, 0, 14)
	case 2:
		return lengths(r, 536, ranges(r), 2, 0, 534)
	}
	descriptors := cscds([][]byte{unit, noise(r, 16)})
	segment := copySegment(uint16(r.IntN(3)), uint16(r.IntN(3)), uint16(number(r)), number(r), number(r))
	list := make([]byte, 16)
	binary.BigEndian.PutUint16(list[2:], uint16(len(descriptors)))
	binary.BigEndian.PutUint32(list[8:], uint32(len(segment)))
	return append(append(list, descriptors...), segment...)
}
