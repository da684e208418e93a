package isertest

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"lunar/iser/verbs"
)

// Driver sends batches of commands over a Wire that has logged in, and allocates
// nothing while it does: for counting what the target allocates. The Wire serves
// nobody else until Close. Its memory stays registered, so the target must not
// invalidate keys.
type Driver struct {
	w        *Wire
	messages []byte // one for each command of a batch
	data     []byte
	sent, mr verbs.MR
	wrs      []verbs.WR
	sges     []verbs.SGE
	wcs      [64]verbs.WC
	again    [1]uint64 // the receive that is posted again
	into     [1]verbs.SGE
	cmdSN    uint32
}

// driverID is above the ids of all other work of a Wire.
const driverID = 1 << 40

// Drive takes the Wire over for commands that read, or write, size bytes each from
// LBA 0 on, depth at a time. immediate bytes of each write come with the command.
func (w *Wire) Drive(write bool, depth, size, blockSize, immediate int) *Driver {
	w.mu.Lock()
	w.driven = true
	_, _ = unix.Write(w.stop, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	w.mu.Unlock()
	<-w.ended
	if !write {
		immediate = 0
	}
	length := messageHead + immediate
	d := &Driver{w: w, messages: make([]byte, depth*length), data: make([]byte, depth*size), cmdSN: binary.BigEndian.Uint32(w.window[:])}
	d.sent = w.register(d.messages, 0)
	d.mr = w.register(d.data, verbs.AccessLocalWrite|verbs.AccessRemoteRead|verbs.AccessRemoteWrite)
	for i := range depth {
		m := d.messages[i*length:][:length]
		d.command(m, i, write, size, blockSize, immediate)
		d.wrs = append(d.wrs, verbs.WR{ID: driverID, Op: verbs.OpSend, Flags: verbs.FlagSignaled, NSGE: 1})
		d.sges = append(d.sges, verbs.SGE{Addr: verbs.Addr(m), Len: uint32(length), LKey: d.sent.LKey()})
	}
	return d
}

// command makes the message of the i-th command of a batch.
func (d *Driver) command(m []byte, i int, write bool, size, blockSize, immediate int) {
	at := verbs.Addr(d.data) + uint64(i*size)
	p := m[isrHeader:]
	m[0], p[0], p[1] = 0x10, opSCSICommand, final|0x40|1 // simple
	cdb := p[32:]
	cdb[0] = 0x88
	switch {
	case !write:
		m[0] |= 0x04
		binary.BigEndian.PutUint32(m[16:], d.mr.RKey())
		binary.BigEndian.PutUint64(m[20:], at)
	default:
		p[1], cdb[0] = final|0x20|1, 0x8a
		p[5], p[6], p[7] = byte(immediate>>16), byte(immediate>>8), byte(immediate)
		if immediate < size {
			m[0] |= 0x08
			binary.BigEndian.PutUint32(m[4:], d.mr.RKey())
			binary.BigEndian.PutUint64(m[8:], at+uint64(immediate))
		}
	}
	setU32(p, atITT, uint32(i)+1)
	setU32(p, 20, uint32(size))
	binary.BigEndian.PutUint64(cdb[2:], uint64(i*size/blockSize))
	binary.BigEndian.PutUint32(cdb[10:], uint32(size/blockSize))
}

// Batch sends the commands and takes their responses.
func (d *Driver) Batch() error {
	w := d.w
	w.mu.Lock()
	defer w.mu.Unlock()
	length := len(d.messages) / len(d.wrs)
	for i := range d.wrs {
		p := d.messages[i*length+isrHeader:]
		setU32(p, 24, d.cmdSN)
		setU32(p, 28, w.statSN)
		d.cmdSN++
	}
	if _, err := w.qp.PostSend(d.wrs, d.sges); err != nil {
		return err
	}
	for left := 2 * len(d.wrs); left > 0; {
		n, err := w.cq.Poll(d.wcs[:])
		if err != nil {
			return err
		}
		for i := range d.wcs[:n] {
			if err := d.complete(&d.wcs[i]); err != nil {
				return err
			}
			left--
		}
	}
	return nil
}

// complete takes the end of a command's SEND, or a response, whose receive it
// posts again.
func (d *Driver) complete(wc *verbs.WC) error {
	w := d.w
	if wc.Status != verbs.StatusOK {
		return fmt.Errorf("RDMA: %v", wc.Status)
	}
	if wc.ID == driverID {
		return nil
	}
	b := w.posted[wc.ID]
	p := b.mem[isrHeader:]
	if p[0] != opResponse || p[3] != 0 {
		return fmt.Errorf("opcode %#x with status %#x", p[0], p[3])
	}
	copy(w.window[:], p[atExpCmdSN:])
	w.statSN = u32(p, atStatSN) + 1
	d.again[0] = wc.ID
	d.into[0] = verbs.SGE{Addr: verbs.Addr(b.mem), Len: uint32(len(b.mem)), LKey: b.mr.LKey()}
	_, err := w.qp.PostRecv(d.again[:], d.into[:])
	return err
}

// Close gives the Wire back.
func (d *Driver) Close() {
	w := d.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release(d.sent)
	w.release(d.mr)
	var count [8]byte
	_, _ = unix.Read(w.stop, count[:])
	w.driven, w.ended = false, make(chan struct{})
	go w.run()
}
