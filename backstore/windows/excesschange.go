package windows

import (
	"errors"
	"hash/crc32"

	"lunar/backstore"
)

// perform does what event threads leave to goroutines.
func (x *Excess) perform(op *backstore.Op) error {
	switch op.Kind {
	case backstore.Read:
		return x.read(op)
	case backstore.Write, backstore.WriteZeroes, backstore.Discard:
		return x.change(op)
	case backstore.Flush:
		return x.flush()
	case backstore.Map:
		return x.mapped(op)
	case backstore.Wipe:
		if err := x.wipe(); err != nil {
			return err
		}
	}
	part := *op
	return x.slow.do(&part)
}

// change writes, zeroes or releases. What touches the log goes there, for that goes before
// what the slow device has.
func (x *Excess) change(op *backstore.Op) error {
	mine := x.claims.take(op.Off, op.Length())
	defer x.claims.release(mine)
	logged := x.before(op.Off, op.Length())
	if slow := op.Kind != backstore.Write || x.takes(op.Length()); slow && !logged {
		return x.straight(op)
	}
	switch op.Kind {
	case backstore.WriteZeroes:
		return x.note(op, extent{off: op.Off, n: op.Len, at: zeroed}, nil)
	case backstore.Discard:
		return x.note(op, extent{off: op.Off, n: op.Len, at: discarded}, nil)
	}
	for done := int64(0); done < op.Length(); {
		n := min(recordMost, op.Length()-done)
		if err := x.note(op, extent{off: op.Off + done, n: n}, op.Data[done:done+n]); err != nil {
			return err
		}
		done += n
	}
	return nil
}

// straight has the slow device do it.
func (x *Excess) straight(op *backstore.Op) error {
	x.counts.slow.Add(1)
	defer x.unflushed.slow.end()
	part := *op
	return x.slow.do(&part)
}

// note appends a record to the log. If there is no place, and the log has nothing of the
// range, the slow device gets it. A write that the fast device fails at fails.
func (x *Excess) note(op *backstore.Op, e extent, data []byte) error {
	r := record{off: e.off, n: e.n, at: e.at, sum: crc32.Checksum(data, castagnoli)}
	b := x.memory.take()
	defer x.memory.give(b)
	for {
		x.gate.RLock()
		err, done := x.append(&r, op.FUA, data, b)
		x.gate.RUnlock()
		if done {
			return err
		}
		if data != nil && !x.before(e.off, e.n) {
			part := backstore.Op{Kind: backstore.Write, FUA: op.FUA, Off: e.off, Data: data}
			return x.straight(&part)
		}
		if err := x.waitForRoom(); err != nil {
			return err
		}
		r.at = e.at
	}
}

// append writes a record, if there is place for it.
func (x *Excess) append(r *record, fua bool, data, b []byte) (err error, done bool) {
	if !x.journal.reserve(r) {
		return nil, false
	}
	r.encode(b, &x.journal.label.identity)
	clear(b[page+copy(b[page:], data) : r.length()])
	e := extent{r.off, r.n, r.at, r.position}
	err = x.fast.write(r.position, b[:r.length()], fua)
	x.unflushed.fast.end()
	x.map_.Lock()
	defer x.map_.Unlock()
	if err != nil {
		x.map_.suspect.put(e)
		return x.broken(err), true
	}
	x.counts.fast.Add(1)
	x.map_.put(e)
	return nil, true
}

// broken notes that the fast device fails.
func (x *Excess) broken(err error) error {
	text := "the fast device fails: " + err.Error()
	if x.trouble.Swap(&text) == nil {
		x.log.Error("a fast device fails: what it has cannot be written back", "err", err)
	}
	return err
}

// flush makes stable what was written, on the devices that have it.
func (x *Excess) flush() error {
	return errors.Join(x.unflushed.fast.flush(x.fast), x.unflushed.slow.flush(x.slow))
}

// read joins what the log has with what the slow device has.
func (x *Excess) read(op *backstore.Op) error {
	x.gate.RLock()
	defer x.gate.RUnlock()
	b := x.memory.take()
	defer x.memory.give(b)
	for done := int64(0); done < op.Length(); {
		n := min(op.Length()-done, chunk)
		if err := x.readPart(op.Data[done:done+n], op.Off+done, b); err != nil {
			return err
		}
		done += n
	}
	return nil
}

func (x *Excess) readPart(data []byte, off int64, b []byte) error {
	var parts []extent
	sum := int64(0)
	x.map_.RLock()
	x.map_.each(off, int64(len(data)), func(e extent) {
		parts = append(parts, e)
		sum += e.n
	})
	x.map_.RUnlock()
	if sum < int64(len(data)) {
		if err := x.slow.read(off, data); err != nil {
			return err
		}
	}
	for _, e := range parts {
		part := data[e.off-off:][:e.n]
		if e.at < 0 {
			clear(part)
			continue
		}
		// Direct I/O wants whole blocks of the device, and pages of memory.
		from := e.at / page * page
		n := (e.at + e.n - from + page - 1) / page * page
		if err := x.fast.read(from, b[:n]); err != nil {
			return x.broken(err)
		}
		copy(part, b[e.at-from:])
	}
	return nil
}

// mapPieces bounds the pieces that one answer about what is provisioned joins.
const mapPieces = 256

// mapped says that what the log has is provisioned, but for zeroes.
func (x *Excess) mapped(op *backstore.Op) error {
	x.gate.RLock()
	defer x.gate.RUnlock()
	end, at := op.Off+op.Len, op.Off
	for i := 0; at < end && i < mapPieces; i++ {
		n, mapped, err := x.piece(at, end)
		if err != nil {
			return err
		}
		if at == op.Off {
			op.Mapped = mapped
		} else if mapped != op.Mapped {
			break
		}
		at += n
	}
	op.Len = at - op.Off
	return nil
}

// piece says how far the range at off is provisioned, or not, by what has it.
func (x *Excess) piece(off, end int64) (n int64, mapped bool, err error) {
	x.map_.RLock()
	e, found := x.map_.from(off, end)
	x.map_.RUnlock()
	switch {
	case found && e.off == off:
		return e.n, e.at >= 0, nil
	case found:
		end = e.off
	}
	part := backstore.Op{Kind: backstore.Map, Off: off, Len: end - off}
	err = x.slow.do(&part)
	return part.Len, part.Mapped, err
}
