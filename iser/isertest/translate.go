package isertest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"

	"lunar/iser/verbs"
	"lunar/iser/verbs/fake"
)

// Opcodes, flags and places of fields (RFC 7143 section 11).
const (
	opSCSICommand  = 0x01
	opLoginRequest = 0x03
	opDataOut      = 0x05
	opResponse     = 0x21
	opLogin        = 0x23
	opDataIn       = 0x25
	opR2T          = 0x31

	atITT, atTTT, atStatSN, atExpCmdSN = 16, 20, 24, 28
	atDataSN, atOffset, atLength       = 36, 40, 44
	final                              = 0x80
)

// task is a command with data.
type task struct {
	itt   uint32
	lun   [8]byte
	mem   []byte // of the initiator's data
	mr    verbs.MR
	reads bool
	fetched
	pdus uint32 // Data-In and R2T PDUs that were made
}

// take takes a PDU of the initiator.
func (w *Wire) take(p []byte) {
	p = bytes.Clone(p)
	switch p[0] & 0x3f {
	case opLoginRequest:
		w.takeLogin(p)
	case opSCSICommand:
		w.takeCommand(p)
	case opDataOut:
		w.takeDataOut(p)
	default:
		w.forward(p, 0x10)
	}
}

// forward sends a PDU behind an iSER header.
func (w *Wire) forward(p []byte, flags byte) {
	m := make([]byte, isrHeader+len(p))
	m[0] = flags
	copy(m[isrHeader:], p)
	w.send(m)
}

// takeLogin adds the keys of iSER to the operational stage of a normal session,
// and posts what ib_iser posts before a login request.
func (w *Wire) takeLogin(p []byte) {
	text := string(p[bhsLength:][:dataLength(p)])
	operational := p[1]>>2&3 == 1
	w.discovery = w.discovery || bytes.Contains(p, []byte("SessionType=Discovery"))
	if operational && !w.discovery {
		keys := dropKeys(text, "MaxRecvDataSegmentLength", "HeaderDigest", "DataDigest")
		most := 262144
		if n, ok := keyOf(text, "MaxRecvDataSegmentLength"); ok {
			w.segment, most = n, n
		}
		if keys != "" {
			keys += fmt.Sprintf("RDMAExtensions=Yes\x00InitiatorRecvDataSegmentLength=%d\x00TargetRecvDataSegmentLength=8192\x00", most)
		}
		text = keys
	}
	p = append(p[:bhsLength:bhsLength], text...)
	p[5], p[6], p[7] = byte(len(text)>>16), byte(len(text)>>8), byte(len(text))
	p = append(p, make([]byte, -len(text)&3)...)
	w.receive(loginBuffer)
	if p[1]&0x83 == 0x83 && !w.discovery {
		for range commands - 1 {
			w.receive(fullBuffer)
		}
	}
	if w.discovery {
		w.receive(loginBuffer) // of the text response that is to come
	}
	w.forward(p, 0x10)
}

// dropKeys leaves keys out of a text.
func dropKeys(text string, names ...string) string {
	var out []byte
pairs:
	for _, pair := range bytes.Split([]byte(text), []byte{0}) {
		for _, name := range names {
			if bytes.HasPrefix(pair, []byte(name+"=")) {
				continue pairs
			}
		}
		if len(pair) > 0 {
			out = append(append(out, pair...), 0)
		}
	}
	return string(out)
}

// keyOf is the number that a key has in a text.
func keyOf(text, name string) (int, bool) {
	for _, pair := range bytes.Split([]byte(text), []byte{0}) {
		if value, ok := bytes.CutPrefix(pair, []byte(name+"=")); ok {
			n, err := strconv.Atoi(string(value))
			return n, err == nil
		}
	}
	return 0, false
}

// takeCommand registers the command's memory and sends the command. What did not come
// with it is asked of the initiator when the target fetches it.
func (w *Wire) takeCommand(p []byte) {
	edtl := int(u32(p, 20))
	reads, writes := p[1]&0x40 != 0, p[1]&0x20 != 0
	itt := u32(p, atITT)
	if edtl == 0 || !reads && !writes || w.tasks[itt] != nil {
		w.forward(p, 0x10)
		return
	}
	t := &task{itt: itt, lun: [8]byte(p[8:16]), mem: make([]byte, edtl), reads: reads}
	if reads {
		t.mr = w.register(t.mem, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	} else {
		t.mr = w.register(t.mem, verbs.AccessRemoteRead)
		t.there = copy(t.mem, p[bhsLength+int(p[4])*4:][:dataLength(p)])
	}
	if t.mr == nil {
		return
	}
	w.tasks[itt] = t
	if !reads && t.there < edtl {
		fake.Withhold(t.mr, func(addr uint64, n uint32) { w.begun.add(t, addr, n) })
	}
	w.sendCommand(t, p)
}

// sendCommand sends a command with the names of its memory.
func (w *Wire) sendCommand(t *task, p []byte) {
	n := dataLength(p)
	if w.options.Hollow && n > 0 {
		p, n = p[:bhsLength], 0
	}
	m := make([]byte, isrHeader+len(p))
	m[0] = 0x10
	switch {
	case t.reads:
		m[0] |= 0x04
		binary.BigEndian.PutUint32(m[16:], t.mr.RKey())
		binary.BigEndian.PutUint64(m[20:], verbs.Addr(t.mem))
	case n < len(t.mem):
		m[0] |= 0x08
		binary.BigEndian.PutUint32(m[4:], t.mr.RKey())
		binary.BigEndian.PutUint64(m[8:], verbs.Addr(t.mem)+uint64(n))
	}
	copy(m[isrHeader:], p)
	w.send(m)
}

// arrived takes a message of the target. inv is the key that it has made invalid.
func (w *Wire) arrived(m []byte, inv uint32) error {
	if len(m) < messageHead || m[0] != 0x10 || !bytes.Equal(m[1:isrHeader], make([]byte, isrHeader-1)) {
		return fmt.Errorf("message of %d bytes with an iSER header of %x", len(m), m[:min(len(m), isrHeader)])
	}
	p := bytes.Clone(m[isrHeader:])
	n := bhsLength + dataLength(p)
	if len(p) < n || len(p) > n+3 {
		return fmt.Errorf("message with a PDU of %d bytes, expected %d", len(p), n)
	}
	p = append(p[:n:n], make([]byte, -dataLength(p)&3)...)
	copy(w.window[:], p[atExpCmdSN:])
	if p[0] != 0x31 {
		w.statSN = u32(p, atStatSN) + 1
	}
	t := w.tasks[u32(p, atITT)]
	if err := w.invalidated(t, p, inv); err != nil {
		return err
	}
	switch p[0] {
	case opLogin:
		p = w.login(p)
	case opResponse:
		if t != nil {
			w.finish(t, p)
		}
	}
	w.in = append(w.in, p...)
	return nil
}

// invalidated judges an invalidation as ib_iser does: only of the command's own key,
// only with its response.
func (w *Wire) invalidated(t *task, p []byte, inv uint32) error {
	if inv == 0 {
		return nil
	}
	w.Counts.Invalidated++
	if t == nil || p[0] != opResponse || inv != t.mr.RKey() || w.refused {
		return fmt.Errorf("opcode %#x has invalidated the key %#x", p[0], inv)
	}
	return nil
}

// login takes a Login Response: the stream's initiator hears of nothing that is
// iSER's.
func (w *Wire) login(p []byte) []byte {
	text := string(p[bhsLength:][:dataLength(p)])
	if n, ok := keyOf(text, "MaxBurstLength"); ok {
		w.burst = n
	}
	if n, ok := keyOf(text, "MaxOutstandingR2T"); ok {
		w.r2ts = n
	}
	rdma := bytes.Contains(p, []byte("RDMAExtensions=Yes"))
	text = dropKeys(text, "RDMAExtensions", "InitiatorRecvDataSegmentLength", "TargetRecvDataSegmentLength")
	if rdma {
		text += "MaxRecvDataSegmentLength=8192\x00HeaderDigest=None\x00DataDigest=None\x00"
	}
	if p[1]&0x83 == 0x83 && rdma {
		w.full = true
		w.receive(fullBuffer)
	}
	p = append(p[:bhsLength:bhsLength], text...)
	p[5], p[6], p[7] = byte(len(text)>>16), byte(len(text)>>8), byte(len(text))
	return append(p, make([]byte, -len(text)&3)...)
}

// finish makes Data-In of what has come for a read, and has the response count
// what was made.
func (w *Wire) finish(t *task, p []byte) {
	itt := u32(p, atITT)
	delete(w.tasks, itt)
	w.release(t.mr)
	if t.reads {
		moved := len(t.mem)
		if p[1]&0x02 != 0 { // underflow
			moved -= int(u32(p, atLength))
		}
		w.dataIn(t, p, t.mem[:moved])
	}
	setU32(p, atDataSN, t.pdus)
}

// dataIn makes Data-In PDUs.
func (w *Wire) dataIn(t *task, response, data []byte) {
	burst := 0
	for off := 0; off < len(data); {
		n := min(len(data)-off, w.segment, w.burst-burst)
		burst += n
		d := make([]byte, bhsLength)
		d[0] = opDataIn
		if off+n == len(data) || burst == w.burst {
			d[1], burst = final, 0
		}
		d[5], d[6], d[7] = byte(n>>16), byte(n>>8), byte(n)
		copy(d[atITT:], response[atITT:atITT+4])
		setU32(d, atTTT, 1<<32-1)
		copy(d[atExpCmdSN:], response[atExpCmdSN:atExpCmdSN+8])
		setU32(d, atDataSN, t.pdus)
		setU32(d, atOffset, uint32(off))
		t.pdus++
		w.in = append(append(w.in, d...), data[off:off+n]...)
		w.in = append(w.in, make([]byte, -n&3)...)
		off += n
	}
}
