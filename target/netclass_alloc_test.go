package target_test

import (
	"encoding/binary"
	"io"
	"testing"

	"lunar/internal/eventually"
	"lunar/internal/initiator"
	"lunar/scheduler"
	"lunar/target"
	"lunar/target/pdu"
)

// asked returns what has depth writes of size bytes, whose data are sent when they are asked
// for.
func (c *benchConn) asked(depth, size int) func() {
	data := make([]byte, size)
	cdb := cdbWrite16(0, uint32(size/512))
	return func() {
		for i := range depth {
			binary.BigEndian.PutUint64(cdb[2:], uint64(i*size/512))
			c.request(cdb, data, 0)
			command := (*pdu.SCSICommand)(c.out[len(c.out)-size-pdu.BHSLength:])
			command.BHS().SetDataSegmentLength(0)
			c.out = c.out[:len(c.out)-size]
		}
		for left := depth; left > 0; {
			c.exchangeHeader()
			switch r2t := (*pdu.R2T)(c.in); r2t.BHS().Opcode() {
			case pdu.OpR2T:
				c.answer(r2t, data)
			case pdu.OpSCSIResponse:
				left--
			}
		}
	}
}

// exchangeHeader sends what there is and reads the header of a PDU without data.
func (c *benchConn) exchangeHeader() {
	_, err := c.stream.Write(c.out)
	if err == nil {
		c.out = c.out[:0]
		_, err = io.ReadFull(c.stream, c.in[:pdu.BHSLength])
	}
	if err != nil {
		c.b.Fatal(err)
	}
}

// answer queues what an R2T asks for.
func (c *benchConn) answer(r2t *pdu.R2T, data []byte) {
	from, n := int(r2t.BufferOffset()), int(r2t.DesiredDataTransferLength())
	var p pdu.DataOut
	p.Init()
	p.BHS().SetFinal(true)
	p.BHS().SetITT(r2t.BHS().ITT())
	p.BHS().SetTTT(r2t.BHS().TTT())
	p.BHS().SetDataSegmentLength(n)
	p.SetBufferOffset(uint32(from))
	c.out = append(append(c.out, p[:]...), data[from:from+n]...)
}

// TestNetworkClassesDoNotAllocate: neither reads and writes of a connection that is governed,
// nor those of one beside others' classes, which has none.
func TestNetworkClassesDoNotAllocate(t *testing.T) {
	const depth, size, rounds = 16, 4096, 40
	others := rules(t, scheduler.Rule{Name: "others", Initiators: []string{"iqn.2026-11.lunar:others"}, Class: scheduler.Low})
	for name, policy := range map[string]*scheduler.Policy{
		"governed": governedPolicy(t),
		"none":     others.WithNetwork(*governedPolicy(t).Network()),
	} {
		r := newRig(t, rigOptions{config: target.Config{QoS: target.QoS{Policy: policy}}})
		for way, batch := range map[string]func(*benchConn) func(){
			"reads":                           func(c *benchConn) func() { return batchOf(c, false, depth, size) },
			"writes with data":                func(c *benchConn) func() { return batchOf(c, true, depth, size) },
			"writes whose data are asked for": func(c *benchConn) func() { return c.asked(depth, size) },
		} {
			o := initiator.Options{CmdSN: 1}
			if way == "writes whose data are asked for" {
				o.Keys = solicitedOnly
			}
			login := r.login(o)
			c := newBenchConn(t, login, depth, size)
			// The coordinator's reports are made anew: see TestGatedCommandsDoNotAllocate.
			allowed := uint64(rounds * depth / 10)
			if n := mallocs(batch(c), 20, rounds, allowed, 1200); n > allowed {
				t.Errorf("%s, %s: %d allocations in %d commands", name, way, n, rounds*depth)
			}
			if all := r.server.QoS("").Classes; (len(all) == 1) != (name == "governed") {
				t.Errorf("%s: found %+v", name, all)
			}
			login.Close()
			eventually.Finds(t, "queues", 0, func() int { return len(r.server.QoS("").Flows) })
		}
	}
}

// TestFloodOfGroupNumbers: an initiator that names every class at every turn, where it may,
// has one queue of each class for a LUN, and nothing is made for what it names later. With the
// session they are gone.
func TestFloodOfGroupNumbers(t *testing.T) {
	const depth, size, rounds = 32, 512, 20
	network := scheduler.Network{}
	for number := range network.Groups {
		network.Groups[number] = scheduler.Tag(number % (len(network.DSCP) + 1)) // some name none
	}
	all := scheduler.Rule{Name: "all", Initiators: []string{"*"}, GroupNumber: true}
	r := newRig(t, rigOptions{config: target.Config{QoS: target.QoS{Policy: rules(t, all).WithNetwork(network)}}})
	login := r.login(initiator.Options{CmdSN: 1})
	c := newBenchConn(t, login, depth, size)
	cdb := cdbRead16(0, size/512)
	turn := byte(0)
	flood := func() {
		for range depth {
			cdb[14] = turn % scheduler.GroupNumbers
			turn += 5
			c.request(cdb, nil, size)
		}
		c.exchange(depth * (pdu.BHSLength + size))
	}
	allowed := uint64(rounds * depth / 10)
	if n := mallocs(flood, 8, rounds, allowed, 1200); n > allowed {
		t.Errorf("%d allocations in %d commands", n, rounds*depth)
	}
	if found := r.server.QoS("").Flows; len(found) != len(network.DSCP) {
		t.Errorf("found %d queues, expected one of each of %d classes", len(found), len(network.DSCP))
	}
	login.Close()
	eventually.Finds(t, "queues", 0, func() int { return len(r.server.QoS("").Flows) })
}
