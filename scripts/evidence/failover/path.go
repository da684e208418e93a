package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"lunar/internal/initiator"
	"lunar/scripts/evidence/site"
)

const (
	sectors = blockBytes / 512
	silence = time.Second // after which a user takes another path
)

// path is a user's session with one node, which is made when it is needed.
type path struct {
	portal string
	isid   uint32
	conn   *initiator.Conn
}

// errElsewhere says that another path has to be used.
var errElsewhere = errors.New("the path does not serve")

// errAgain says that the command has to be sent again.
var errAgain = errors.New("to be sent again")

// do sends a command and awaits its answer.
func (p *path) do(c initiator.Command) (*initiator.Result, error) {
	if p.conn == nil {
		if err := p.login(); err != nil {
			return nil, fmt.Errorf("%w: %w", errElsewhere, err)
		}
	}
	r, err := p.conn.Do(c)
	if err != nil {
		p.drop()
		return nil, fmt.Errorf("%w: %w", errElsewhere, err)
	}
	return r, verdict(r)
}

func (p *path) login() error {
	o := initiator.Options{Target: site.Target, Initiator: fmt.Sprint("iqn.2026-11.example.lunar:user", p.isid)}
	o.ISID = [6]byte{0x80, 0, byte(p.isid >> 16), byte(p.isid >> 8), byte(p.isid), 1}
	socket, err := net.DialTimeout("tcp", p.portal, silence)
	if err != nil {
		return err
	}
	p.conn = initiator.NewConn(socket)
	p.conn.Timeout = silence
	if err = p.conn.Login(o); err != nil {
		p.drop()
	}
	return err
}

// drop ends the session; what is under way may be done all the same.
func (p *path) drop() {
	if p.conn != nil {
		p.conn.Close()
		p.conn = nil
	}
}

// verdict is what an initiator does about an answer.
func verdict(r *initiator.Result) error {
	const (
		busy, full    = 0x08, 0x28
		notReady      = 0x2
		unitAttention = 0x6
	)
	key, asc, ascq := r.SenseKey()
	switch {
	case r.Response == 0 && r.Status == 0:
		return nil
	case r.Status == busy || r.Status == full || key == unitAttention:
		return errAgain
	case key == notReady && asc == 0x04 && (ascq == 0x0a || ascq == 0x0b || ascq == 0x0c): // in transition, standby, unavailable
		return errElsewhere
	}
	return fmt.Errorf("response %d, status %#02x, sense %x/%02x/%02x", r.Response, r.Status, key, asc, ascq)
}

func command(write bool, block int, data []byte) initiator.Command {
	cdb := make([]byte, 16)
	cdb[0] = 0x88 // READ (16)
	if write {
		cdb[0] = 0x8a // WRITE (16)
	}
	binary.BigEndian.PutUint64(cdb[2:], uint64(block)*sectors)
	binary.BigEndian.PutUint32(cdb[10:], sectors)
	c := initiator.Command{CDB: cdb, Out: data}
	if !write {
		c.InLen = blockBytes
	}
	return c
}
