package scsi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"lunar/backstore"
	"lunar/target/scsi/reservation"
	"lunar/target/scsi/sense"
	"lunar/target/scsi/thirdparty"
)

// mediumLane is a thread's lane into another medium than its own.
type mediumLane struct {
	*thread
	medium *medium
}

func (l mediumLane) TryNow(op *backstore.Op) bool { return l.tryNow(l.medium, op) }
func (l mediumLane) Submit(op *backstore.Op) bool { return l.submit(l.medium, op) }

func (th *thread) laneOf(n *Nexus) backstore.Lane {
	if m, ok := n.LU.store.(*medium); ok && m != th.medium {
		return mediumLane{th, m}
	}
	return th
}

// naaCSCD is an identification descriptor CSCD with the unit's NAA designator.
func naaCSCD(lu *LogicalUnit) []byte {
	d := make([]byte, thirdparty.CSCDLength)
	d[0] = thirdparty.CSCDIdentification
	d[4], d[5], d[7] = codeBinary, designatorNAA, 8
	copy(d[8:], lu.config.NAA)
	d[30], d[31] = byte(lu.config.BlockSize>>8), byte(lu.config.BlockSize)
	return d
}

func blocksSegment(source, dest, blocks uint16, from, to uint64, flags byte) []byte {
	be, d := binary.BigEndian, make([]byte, copyBlocksLength)
	d[0], d[1] = copyBlocks, flags
	be.PutUint16(d[2:], copyBlocksLength-4)
	be.PutUint16(d[4:], source)
	be.PutUint16(d[6:], dest)
	be.PutUint16(d[10:], blocks)
	be.PutUint64(d[12:], from)
	be.PutUint64(d[20:], to)
	return d
}

func offsetSegment(source, dest uint16, n uint32, from, to uint64, skipFrom, skipTo uint16) []byte {
	be, d := binary.BigEndian, make([]byte, copyBlocksOffsetLength)
	d[0] = copyBlocksOffset
	be.PutUint16(d[2:], copyBlocksOffsetLength-4)
	be.PutUint16(d[4:], source)
	be.PutUint16(d[6:], dest)
	be.PutUint32(d[8:], n)
	be.PutUint64(d[12:], from)
	be.PutUint64(d[20:], to)
	be.PutUint16(d[28:], skipFrom)
	be.PutUint16(d[30:], skipTo)
	return d
}

// copyLID1 and copyLID4 return parameter lists.
func copyLID1(id byte, cscds, segments [][]byte) []byte {
	be, l := binary.BigEndian, make([]byte, copyHeaderLID1)
	l[0] = id
	be.PutUint16(l[2:], uint16(len(cscds)*thirdparty.CSCDLength))
	body := bytes.Join(segments, nil)
	be.PutUint32(l[8:], uint32(len(body)))
	return append(append(l, bytes.Join(cscds, nil)...), body...)
}

func copyLID4(id uint32, cscds, segments [][]byte) []byte {
	be, l := binary.BigEndian, make([]byte, copyHeaderLID4)
	l[0] = 1
	be.PutUint32(l[20:], id)
	be.PutUint16(l[42:], uint16(len(cscds)*thirdparty.CSCDLength))
	body := bytes.Join(segments, nil)
	be.PutUint16(l[44:], uint16(len(body)))
	return append(append(l, bytes.Join(cscds, nil)...), body...)
}

func copyCDB(action byte, list []byte) []byte {
	cdb := make([]byte, 16)
	cdb[0], cdb[1] = 0x83, action
	binary.BigEndian.PutUint32(cdb[10:], uint32(len(list)))
	return cdb
}

// receiveCDB is one of RECEIVE COPY RESULTS' CDBs.
func receiveCDB(action byte, id uint32) []byte {
	cdb := make([]byte, 16)
	cdb[0], cdb[1] = 0x84, action
	if action == 0x05 || action == 0x07 {
		binary.BigEndian.PutUint32(cdb[2:], id)
	} else {
		cdb[2] = byte(id)
	}
	binary.BigEndian.PutUint32(cdb[10:], 1024)
	return cdb
}

// copyUnits are two units, of 512 and 4096 bytes to a block, on one thread that
// may copy between them.
func copyUnits(t testing.TB, seed uint64) (*thread, [2]*Nexus, [2]*medium) {
	m := [2]*medium{newMedium(3 << 20), newMedium(2 << 20)}
	n := [2]*Nexus{
		newUnit(t, m[0], LUConfig{Name: "a", BlockSize: 512}),
		newUnit(t, m[1], LUConfig{Name: "b", BlockSize: 4096}),
	}
	th := newThread(t, m[0], seed)
	th.reach = n[:]
	return th, n, m
}

// TestCopyAgainstModel: whatever is copied, within a unit, over itself, and
// between units of different block lengths, the media are what copying the
// bytes of a model gives.
func TestCopyAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		th, n, m := copyUnits(t, rapid.Uint64().Draw(rt, "seed"))
		th.starve = rapid.IntRange(0, 60).Draw(rt, "starve")
		th.part = rapid.SampledFrom([]int64{0, 64 << 10, 8 << 10}).Draw(rt, "part")
		th.defers, th.dear = rapid.IntRange(0, 100).Draw(rt, "defers"), rapid.IntRange(0, 80).Draw(rt, "dear")
		var model [2][]byte
		for i := range m {
			copy(m[i].mu.bytes, th.fresh(len(m[i].mu.bytes)))
			model[i] = bytes.Clone(m[i].mu.bytes)
		}
		var segments [][]byte
		for range rapid.IntRange(1, 5).Draw(rt, "segments") {
			source, dest := rapid.IntRange(0, 1).Draw(rt, "source"), rapid.IntRange(0, 1).Draw(rt, "dest")
			unit := max(n[source].LU.config.BlockSize, n[dest].LU.config.BlockSize)
			room := min(len(model[source]), len(model[dest])) / unit
			count := min(rapid.SampledFrom([]int{0, 1, 9, 64, 100, 300}).Draw(rt, "count"), room)
			from := rapid.IntRange(0, len(model[source])/unit-count).Draw(rt, "from") * unit
			to := rapid.IntRange(0, len(model[dest])/unit-count).Draw(rt, "to") * unit
			bytes := count * unit
			a, b := uint64(from)>>n[source].LU.blockShift, uint64(to)>>n[dest].LU.blockShift
			switch rapid.IntRange(0, 2).Draw(rt, "kind") {
			case 0:
				segments = append(segments, blocksSegment(uint16(source), uint16(dest), uint16(bytes>>n[source].LU.blockShift), a, b, 0))
			case 1:
				segments = append(segments, blocksSegment(uint16(source), uint16(dest), uint16(bytes>>n[dest].LU.blockShift), a, b, 0x02))
			case 2:
				segments = append(segments, offsetSegment(uint16(source), uint16(dest), uint32(bytes), 0, b, 0, 0))
				from = 0
			}
			copy(model[dest][to:to+bytes], model[source][from:from+bytes])
		}
		cscds := [][]byte{naaCSCD(n[0].LU), naaCSCD(n[1].LU)}
		list, action := copyLID1(7, cscds, segments), byte(0)
		if rapid.Bool().Draw(rt, "LID4") {
			list, action = copyLID4(7, cscds, segments), 1
		}
		x := th.start(n[0], copyCDB(action, list), list, 0).finish()
		if x.c.Status != Good {
			rt.Fatalf("status %02x, sense %+v", x.c.Status, x.c.Sense)
		}
		for i := range m {
			if !bytes.Equal(model[i], m[i].mu.bytes) {
				rt.Fatalf("medium %d is not what the model is", i)
			}
		}
		th.pool.Close()
	})
}

// TestCopyRefused: a list that is wrong is refused before anything is copied.
func TestCopyRefused(t *testing.T) {
	th, n, m := copyUnits(t, 1)
	m[0].mu.bytes[0] = 1
	cscds := [][]byte{naaCSCD(n[0].LU), naaCSCD(n[1].LU), naaCSCD(&LogicalUnit{config: LUConfig{BlockSize: 512}})}
	good := blocksSegment(0, 0, 1, 0, 8, 0)
	changed := func(d []byte, at int, to byte) []byte {
		d = bytes.Clone(d)
		d[at] = to
		return d
	}
	repeat := func(d []byte, n int) (all [][]byte) {
		for range n {
			all = append(all, d)
		}
		return all
	}
	for name, test := range map[string]struct {
		list []byte
		key  sense.Key
		asc  sense.ASC
	}{
		"header":            {make([]byte, 15), sense.IllegalRequest, sense.ASCParameterListLengthError},
		"truncated":         {copyLID1(1, cscds, [][]byte{good})[:139], sense.IllegalRequest, sense.ASCParameterListLengthError},
		"CSCD type":         {copyLID1(1, [][]byte{changed(cscds[0], 0, 0xe0)}, [][]byte{good}), sense.IllegalRequest, sense.ASCUnsupportedTargetDescriptor},
		"CSCD device type":  {copyLID1(1, [][]byte{changed(cscds[0], 1, 0x01)}, [][]byte{good}), sense.IllegalRequest, sense.ASCInvalidFieldInList},
		"designator length": {copyLID1(1, [][]byte{changed(cscds[0], 7, 21)}, [][]byte{good}), sense.IllegalRequest, sense.ASCInvalidFieldInList},
		"block length":      {copyLID1(1, [][]byte{changed(cscds[0], 30, 0x10)}, [][]byte{good}), sense.IllegalRequest, sense.ASCInvalidFieldInList},
		"CSCDs":             {copyLID1(1, repeat(cscds[0], thirdparty.MaxCSCDs+1), [][]byte{good}), sense.IllegalRequest, sense.ASCTooManyTargetDescriptors},
		"segment type":      {copyLID1(1, cscds, [][]byte{changed(good, 0, 0x03)}), sense.IllegalRequest, sense.ASCUnsupportedSegmentType},
		"segment length":    {copyLID1(1, cscds, [][]byte{changed(good, 3, 0x19)}), sense.IllegalRequest, sense.ASCInvalidFieldInList},
		"segments":          {copyLID1(1, cscds[:1], repeat(good, thirdparty.MaxSegments+1)), sense.IllegalRequest, sense.ASCTooManySegmentDescriptors},
		"list":              {copyLID1(1, repeat(cscds[0], thirdparty.MaxCSCDs+1), repeat(good, thirdparty.MaxSegments+1)), sense.IllegalRequest, sense.ASCParameterListLengthError},
		"inline data":       {changed(copyLID1(1, cscds, [][]byte{good}), 15, 1), sense.IllegalRequest, sense.ASCInvalidFieldInList},
		"index":             {copyLID1(1, cscds, [][]byte{good, blocksSegment(0, 3, 1, 0, 8, 0)}), sense.CopyAborted, sense.ASCUnreachableCopyTarget},
		"not there":         {copyLID1(1, cscds, [][]byte{good, blocksSegment(0, 2, 1, 0, 8, 0)}), sense.CopyAborted, sense.ASCCopyTargetNotReachable},
		"beyond the end":    {copyLID1(1, cscds, [][]byte{good, blocksSegment(0, 0, 2, 0, 6143, 0)}), sense.CopyAborted, sense.ASCNoAdditionalSense},
		"LBA":               {copyLID1(1, cscds, [][]byte{good, blocksSegment(0, 0, 2, 1<<63, 0, 0)}), sense.CopyAborted, sense.ASCNoAdditionalSense},
		"half a block":      {copyLID1(1, cscds, [][]byte{good, blocksSegment(0, 1, 1, 0, 0, 0)}), sense.CopyAborted, sense.ASCInexactSegment},
		"offset":            {copyLID1(1, cscds, [][]byte{good, offsetSegment(0, 0, 512, 0, 8, 1, 0)}), sense.CopyAborted, sense.ASCInexactSegment},
	} {
		x := th.start(n[0], copyCDB(0, test.list), test.list, 0).finish()
		if s := x.c.Sense; s == nil || s.Key != test.key || s.ASC != test.asc {
			t.Errorf("%s: status %02x, sense %+v", name, x.c.Status, s)
		} else if s.Key == sense.CopyAborted && s.Info != 1 {
			t.Errorf("%s: segment %d, expected 1", name, s.Info)
		}
	}
	for _, op := range m[0].ops() {
		if op.Kind == backstore.Write {
			t.Fatal("something was copied")
		}
	}
}

// TestCopyProtected: who may not write to the destination may not copy there.
func TestCopyProtected(t *testing.T) {
	th, n, _ := copyUnits(t, 1)
	n[1].ReadOnly.Store(true)
	cscds := [][]byte{naaCSCD(n[0].LU), naaCSCD(n[1].LU)}
	for dest, want := range []Status{Good, CheckCondition} {
		list := copyLID1(1, cscds, [][]byte{blocksSegment(1, uint16(dest), 1, 0, 0, 0)})
		if x := th.start(n[0], copyCDB(0, list), list, 0).finish(); x.c.Status != want {
			t.Errorf("destination %d: status %02x, sense %+v", dest, x.c.Status, x.c.Sense)
		}
	}
}

// TestCopyResults: what is known of a copy that went well and of one that did
// not, and that it is the initiator's own.
func TestCopyResults(t *testing.T) {
	th, n, m := copyUnits(t, 3)
	n[0].Initiator = "one"
	ask := func(action byte, id uint32) []byte {
		t.Helper()
		x := th.start(n[0], receiveCDB(action, id), nil, 1024).finish()
		if x.c.Status != Good {
			return nil
		}
		return x.in
	}
	if ask(0, 9) != nil || ask(4, 9) != nil || ask(5, 9) != nil {
		t.Error("a copy that there never was has results")
	}
	cscds := [][]byte{naaCSCD(n[0].LU), naaCSCD(n[1].LU)}
	list := copyLID1(9, cscds, [][]byte{blocksSegment(0, 1, 1024, 0, 0, 0)})
	th.start(n[0], copyCDB(0, list), list, 0).finish()
	if got, want := ask(0, 9), []byte{0, 0, 0, 8, 0x81, 0, 1, 0, 0, 8, 0, 0}; !bytes.Equal(got, want) {
		t.Errorf("COPY STATUS % x, expected % x", got, want)
	}
	m[1].fail = func(*backstore.Op) error { return errors.New("broken") }
	th.start(n[0], copyCDB(0, list), list, 0).finish()
	if got := ask(0, 9); len(got) != 12 || got[4] != 0x82 {
		t.Errorf("COPY STATUS % x of a copy that failed", got)
	}
	got := ask(4, 9)
	if len(got) < 64 || got[56] != byte(CheckCondition) || sense.Key(got[61]) != sense.MediumError {
		t.Errorf("FAILURE DETAILS % x", got)
	}
	if got := ask(5, 9); len(got) < 34 || got[5] != 0x02 || sense.Key(got[33]) != sense.MediumError {
		t.Errorf("COPY STATUS(LID4) % x", got)
	}
	n[0].Initiator = "two"
	if ask(0, 9) != nil {
		t.Error("an initiator sees the copies of another")
	}
	if got := ask(3, 0); len(got) != 47 || binary.BigEndian.Uint16(got[8:]) != thirdparty.MaxCSCDs || !bytes.Equal(got[44:], []byte{0x02, 0x0a, 0xe4}) {
		t.Errorf("OPERATING PARAMETERS % x", got)
	}
}

// TestCopyRecordsAreBounded: the oldest results are forgotten.
func TestCopyRecordsAreBounded(t *testing.T) {
	th, n, _ := copyUnits(t, 4)
	for id := range thirdparty.MaxRecords + 10 {
		list := copyLID4(uint32(id), [][]byte{naaCSCD(n[0].LU)}, nil)
		th.start(n[0], copyCDB(1, list), list, 0).finish()
	}
	for id, want := range map[uint32]Status{9: CheckCondition, 10: Good} {
		if x := th.start(n[0], receiveCDB(5, id), nil, 1024).finish(); x.c.Status != want {
			t.Errorf("copy %d: status %02x, expected %02x", id, x.c.Status, want)
		}
	}
}

// TestCopyInTheBackground: with IMMED the status comes before the copy, whose
// own comes by RECEIVE COPY STATUS.
func TestCopyInTheBackground(t *testing.T) {
	th, n, m := copyUnits(t, 6)
	th.defers = 100
	copy(m[0].mu.bytes, th.fresh(len(m[0].mu.bytes)))
	list := copyLID4(3, [][]byte{naaCSCD(n[0].LU), naaCSCD(n[1].LU)}, [][]byte{blocksSegment(0, 1, 4096, 0, 0, 0)})
	list[15] = 0x01
	x := th.start(n[0], copyCDB(1, list), list, 0)
	for x.ends == 0 {
		th.turn()
	}
	if status, _ := statusOfCopy(n[0], 3); x.c.Status != Good || status != thirdparty.InProgress {
		t.Errorf("status %02x; the copy has status %d", x.c.Status, status)
	}
	th.finishAll()
	if status, n := statusOfCopy(n[0], 3); status != thirdparty.Completed || n != 2<<20 {
		t.Errorf("status %d after %d bytes", status, n)
	}
	if !bytes.Equal(m[1].mu.bytes, m[0].mu.bytes[:2<<20]) {
		t.Error("not copied")
	}
}

// TestCopyAborted: nothing more is started, and the result says so.
func TestCopyAborted(t *testing.T) {
	th, n, m := copyUnits(t, 5)
	th.defers = 100
	list := copyLID1(1, [][]byte{naaCSCD(n[0].LU), naaCSCD(n[1].LU)}, [][]byte{blocksSegment(0, 1, 4096, 0, 0, 0)})
	x := th.start(n[0], copyCDB(0, list), list, 0)
	for range 3 {
		th.turn()
	}
	if x.c.Abort() {
		t.Fatal("nothing was under way")
	}
	x.finish()
	writes := 0
	for _, op := range m[1].ops() {
		if op.Kind == backstore.Write {
			writes++
		}
	}
	if status, _ := statusOfCopy(n[0], 1); status != thirdparty.Terminated || writes > MaxSegments {
		t.Errorf("status %d after %d writes", status, writes)
	}
}

// TestCopyFenced: a copy whose initiator loses the right to write, or to read,
// writes nothing more.
func TestCopyFenced(t *testing.T) {
	for _, unit := range []int{0, 1} {
		th, n, m := copyUnits(t, 7)
		th.defers = 100
		list := copyLID1(1, [][]byte{naaCSCD(n[0].LU), naaCSCD(n[1].LU)}, [][]byte{blocksSegment(0, 1, 4096, 0, 0, 0)})
		x := th.start(n[0], copyCDB(0, list), list, 0)
		writes := func() (count int) {
			for _, op := range m[1].ops() {
				if op.Kind == backstore.Write {
					count++
				}
			}
			return count
		}
		for writes() == 0 {
			th.turn()
		}
		n[unit].restricted.Store(uint32(restrictRead | restrictWrite))
		before := writes()
		x.finish()
		if want := copyAborted(sense.ASCThirdPartyDeviceFailure, 0); x.c.Status != CheckCondition || *x.c.Sense != want {
			t.Errorf("unit %d: status %02x, sense %+v, expected %+v", unit, x.c.Status, x.c.Sense, want)
		}
		if after := writes(); after-before > MaxSegments || after*SegmentSize >= 2<<20 {
			t.Errorf("unit %d: %d writes, %d of them afterwards", unit, after, after-before)
		}
	}
}

// TestCopyByAnActivePath: of the ways to a logical unit a copy takes one that is open.
func TestCopyByAnActivePath(t *testing.T) {
	th, n, m := copyUnits(t, 9)
	standby := &Nexus{LU: n[1].LU, TargetTag: 2}
	n[1].LU.Attach(standby)
	n[1].LU.SetAccess(map[uint16]PortAccess{2: {State: Standby}})
	n[1].clearAttention(sense.ASCAsymmetricAccessStateChanged)
	th.reach = []*Nexus{n[0], standby, n[1]}
	copy(m[0].mu.bytes, th.fresh(len(m[0].mu.bytes)))
	list := copyLID1(1, [][]byte{naaCSCD(n[0].LU), naaCSCD(n[1].LU)}, [][]byte{blocksSegment(0, 1, 4096, 0, 0, 0)})
	x := th.start(n[0], copyCDB(0, list), list, 0).finish()
	if x.c.Status != Good || !bytes.Equal(m[1].mu.bytes, m[0].mu.bytes[:2<<20]) {
		t.Errorf("status %02x, %+v", x.c.Status, x.c.Sense)
	}
	n[1].LU.SetAccess(map[uint16]PortAccess{0: {State: Standby}})
	x = th.start(n[0], copyCDB(0, list), list, 0).finish()
	if want := copyAborted(sense.ASCThirdPartyDeviceFailure, 0); x.c.Sense == nil || *x.c.Sense != want {
		t.Errorf("without an active path: %+v", x.c.Sense)
	}
}

// TestCopyFencedWithoutItsSession: who is fenced off while a copy of his goes on
// writes nothing more, also when the session is gone by which he had access.
func TestCopyFencedWithoutItsSession(t *testing.T) {
	th, n, m := copyUnits(t, 8)
	th.defers = 100
	lu, rival := n[1].LU, &Nexus{LU: n[1].LU, Initiator: "rival"}
	lu.Attach(rival)
	list := copyLID4(3, [][]byte{naaCSCD(n[0].LU), naaCSCD(lu)}, [][]byte{blocksSegment(0, 1, 4096, 0, 0, 0)})
	list[15] = 0x01
	th.start(n[0], copyCDB(1, list), list, 0)
	written := func() (count int) {
		for _, op := range m[1].ops() {
			if op.Kind == backstore.Write {
				count++
			}
		}
		return count
	}
	for written() == 0 {
		th.turn()
	}
	lu.Detach(n[1])
	for _, r := range []reservation.Request{
		{Action: reservation.RegisterAndIgnoreExistingKey, From: rival.Identity(), ServiceKey: 1},
		{Action: reservation.Reserve, From: rival.Identity(), Key: 1, Type: reservation.WriteExclusive},
	} {
		change, refusal := lu.reservations.Load().Apply(&r)
		if refusal != nil {
			t.Fatal(refusal)
		}
		lu.publish(&change)
	}
	before := written()
	th.finishAll()
	if after := written(); after-before > MaxSegments || after*SegmentSize >= 2<<20 {
		t.Errorf("%d writes, %d of them after a reservation of another", after, after-before)
	}
	if status, _ := statusOfCopy(n[0], 3); status != thirdparty.Failed {
		t.Errorf("found status %d of the copy, expected %d", status, thirdparty.Failed)
	}
}

// TestPreemptAndAbortAwaitsCopies: once PREEMPT AND ABORT is answered, no copy writes by
// the nexus that it fenced off, whoever carries it out.
func TestPreemptAndAbortAwaitsCopies(t *testing.T) {
	for seed := range uint64(60) {
		th, n, m := copyUnits(t, seed)
		th.defers = 100
		lu, rival := n[1].LU, &Nexus{LU: n[1].LU, Initiator: "rival"}
		n[1].Initiator = "copier"
		lu.Attach(rival)
		for _, r := range []reservation.Request{
			{Action: reservation.RegisterAndIgnoreExistingKey, From: rival.Identity(), ServiceKey: 1},
			{Action: reservation.RegisterAndIgnoreExistingKey, From: n[1].Identity(), ServiceKey: 2},
			{Action: reservation.Reserve, From: n[1].Identity(), Key: 2, Type: reservation.WriteExclusiveRegistrantsOnly},
		} {
			change, refusal := lu.reservations.Load().Apply(&r)
			if refusal != nil {
				t.Fatal(refusal)
			}
			lu.publish(&change)
		}
		rival.takeAttention()
		copy(m[0].mu.bytes, th.fresh(len(m[0].mu.bytes)))
		list := copyLID4(3, [][]byte{naaCSCD(n[0].LU), naaCSCD(lu)}, [][]byte{blocksSegment(0, 1, 4096, 0, 0, 0)})
		list[15] = byte(seed % 2) // in the background, or not
		th.start(n[0], copyCDB(1, list), list, 0)
		for range 4 + seed%20 {
			th.turn()
		}
		parameters := keys(1, 2, 0)
		x := th.start(rival, outCDB(reservation.PreemptAndAbort, reservation.WriteExclusiveRegistrantsOnly, parameters), parameters, 0)
		for x.ends == 0 {
			if !x.turn() && !x.woken() {
				t.Fatalf("seed %d: no answer", seed)
			}
		}
		if x.c.Status != Good {
			t.Fatalf("seed %d: status %02x, sense %+v", seed, x.c.Status, x.c.Sense)
		}
		then := bytes.Clone(m[1].mu.bytes)
		th.finishAll()
		if !bytes.Equal(then, m[1].mu.bytes) {
			t.Errorf("seed %d: a copy has written after the answer", seed)
		}
		if n := lu.copying.Load(); n != 0 {
			t.Errorf("seed %d: %d moves under way", seed, n)
		}
	}
}

// FuzzCopyList: no list makes the copy manager leave the media or panic.
func FuzzCopyList(f *testing.F) {
	_, n, _ := copyUnits(f, 1)
	cscds := [][]byte{naaCSCD(n[0].LU), naaCSCD(n[1].LU)}
	segments := [][]byte{blocksSegment(0, 1, 8, 0, 0, 0), offsetSegment(1, 0, 4096, 0, 8, 0, 512)}
	f.Add(byte(0), copyLID1(1, cscds, segments))
	f.Add(byte(1), copyLID4(1, cscds, segments))
	f.Fuzz(func(t *testing.T, action byte, list []byte) {
		if len(list) > 4096 {
			return
		}
		th, n, _ := copyUnits(t, 1)
		x := th.start(n[0], copyCDB(action%2, list), list, 0).finish()
		if x.c.Status != Good && x.c.Sense == nil {
			t.Errorf("status %02x without sense data", x.c.Status)
		}
	})
}

// TestCopyOperationAbort ends copies at every step, in the foreground and in the
// background: nothing is copied after its answer.
func TestCopyOperationAbort(t *testing.T) {
	abort := func(id uint32) []byte {
		cdb := make([]byte, 16)
		cdb[0], cdb[1] = 0x83, 0x1c
		binary.BigEndian.PutUint32(cdb[2:], id)
		return cdb
	}
	terminated := 0
	for step := 0; step < 40; step += 4 {
		for _, immediate := range []byte{0, 0x01} {
			th, n, m := copyUnits(t, uint64(step))
			th.defers, th.starve, th.dear = 100, 20, 50
			copy(m[0].mu.bytes, th.fresh(len(m[0].mu.bytes)))
			list := copyLID4(7, [][]byte{naaCSCD(n[0].LU), naaCSCD(n[1].LU)},
				[][]byte{blocksSegment(0, 1, 2048, 0, 0, 0), blocksSegment(0, 1, 2048, 2048, 256, 0)})
			list[15] = immediate
			x := th.start(n[0], copyCDB(0x01, list), list, 0)
			for range step {
				th.turn()
			}
			if n[0].LU.copies.Find(n[0].asker(), 7) == nil {
				th.finishAll()
				continue // its parameter list is on its way
			}
			a := th.start(n[0], abort(7), nil, 0)
			for a.ends == 0 && (th.turn() || th.woken()) {
			}
			if a.c.Status != Good {
				t.Fatalf("step %d: %02x, %+v", step, a.c.Status, a.c.Sense)
			}
			written := len(m[1].ops())
			th.finishAll()
			if len(m[1].ops()) != written {
				t.Errorf("step %d: the copy went on", step)
			}
			status := th.start(n[0], receiveCDB(0x05, 7), nil, 1024).finish().in[5]
			switch {
			case thirdparty.Status(status) == thirdparty.Terminated:
				terminated++
				if immediate == 0 && (x.c.Sense == nil || x.c.Sense.Key != sense.CopyAborted) {
					t.Errorf("step %d: the copy ended with %02x, %+v", step, x.c.Status, x.c.Sense)
				}
			case thirdparty.Status(status) != thirdparty.Completed:
				t.Errorf("step %d: status %02x", step, status)
			}
			if a := th.start(n[0], abort(8), nil, 0); a.c.Status != CheckCondition {
				t.Error("an identifier that nobody uses was taken")
			}
		}
	}
	if terminated < 4 {
		t.Errorf("only %d copies were terminated", terminated)
	}
}

// TestResizeUnderCopy: a copy finds that its source or destination has become
// shorter, and fails; nothing is read or written behind the end.
func TestResizeUnderCopy(t *testing.T) {
	for _, short := range []int{0, 1} {
		for step := 0; step < 24; step += 6 {
			th, n, m := copyUnits(t, uint64(step))
			th.defers = 100
			list := copyLID4(7, [][]byte{naaCSCD(n[0].LU), naaCSCD(n[1].LU)}, [][]byte{blocksSegment(0, 1, 4096, 0, 0, 0)})
			x := th.start(n[0], copyCDB(0x01, list), list, 0)
			for range step {
				th.turn()
			}
			const left = 1 << 20
			m[short].fail = func(op *backstore.Op) error {
				if op.Off+op.Len > left {
					return backstore.ErrOutOfRange
				}
				return nil
			}
			n[short].LU.update(func(s *State) { s.Blocks = left >> n[short].LU.blockShift })
			for x.ends == 0 && th.turn() {
			}
			th.finishAll()
			if x.c.Status == Good {
				continue // it had ended, or all that it needed was under way
			}
			if x.c.Sense == nil || x.c.Sense.Key != sense.CopyAborted && x.c.Sense.ASC != sense.ASCLBAOutOfRange {
				t.Errorf("unit %d, step %d: %02x, %+v", short, step, x.c.Status, x.c.Sense)
			}
		}
	}
}
