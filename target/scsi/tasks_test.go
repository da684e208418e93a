package scsi

import (
	"slices"
	"testing"
	"time"

	"lunar/target/scsi/sense"
	"lunar/target/scsi/taskset"
)

// naca is the CDB with NACA set.
func naca(cdb []byte) []byte {
	var whole CDB
	cdb = slices.Clone(cdb)
	copy(whole[:], cdb)
	cdb[controlByte(&whole)] |= nacaBit
	return cdb
}

// TestNormalACA: who may write may ask for ACA conditions; the others are told
// that they may not.
func TestNormalACA(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	inquiry, usage := []byte{0x12, 0, 0, 0, 36, 0}, []byte{0xa3, 0x0c, 1, 0x12, 0, 0, 0, 0, 0, 64, 0, 0}
	for _, readOnly := range []bool{false, true} {
		d.nexus.ReadOnly.Store(readOnly)
		if got := d.good(inquiry, nil)[3]&inquiryNormACA == 0; got != readOnly {
			t.Errorf("read-only %v: NORMACA is missing: %v", readOnly, got)
		}
		if got := d.good(usage, nil)[4+5]&nacaBit == 0; got != readOnly {
			t.Errorf("read-only %v: NACA is missing in the usage data: %v", readOnly, got)
		}
	}
	d.refused(naca(inquiry), nil, sense.InvalidFieldInCDB(5, 2))
	d.nexus.ReadOnly.Store(false)
	d.good(naca(inquiry), nil)
	d.good(testReady, nil) // and there is no ACA condition of commands that succeed
}

// TestACACondition: a command with NACA that fails keeps all others out until
// the condition is cleared, by whatever clears it.
func TestACACondition(t *testing.T) {
	beyond := naca(cdb16(0x88, 0, 1<<40, 1))
	for name, clear := range map[string]func(*disk, *Nexus){
		"CLEAR ACA": func(_ *disk, n *Nexus) { n.LU.ClearACA(n) },
		"reset":     func(_ *disk, n *Nexus) { n.LU.ResetState() },
		"loss of the nexus": func(_ *disk, n *Nexus) {
			n.LU.Detach(n)
			n.LU.Attach(n)
			n.takeAttention()
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, n := members(t, 2, LUConfig{})
			d.expect("beyond the end", d.runAs(n[0], beyond, nil), CheckCondition, sense.LBAOutOfRange)
			d.expect("own", d.runAs(n[0], testReady, nil), ACAActive, nil)
			d.expect("other", d.runAs(n[1], testReady, nil), Busy, nil)
			d.expect("other with NACA", d.runAs(n[1], naca(testReady), nil), ACAActive, nil)
			n[0].LU.ClearACA(n[1])
			d.expect("cleared by another", d.runAs(n[0], testReady, nil), ACAActive, nil)
			clear(d, n[0])
			d.expect("own, after", d.runAs(n[0], testReady, nil), Good, nil)
			d.expect("other, after", d.runAs(n[1], testReady, nil), Good, nil)
			if n[0].LU.tasks.watched.Load() {
				t.Error("the task set is still watched")
			}
		})
	}
}

// TestUnknownCommandsMakeACAConditions: the CONTROL byte has its place by the
// operation code's group.
func TestUnknownCommandsMakeACAConditions(t *testing.T) {
	d := newDisk(t, diskInfo(), LUConfig{Name: "v"})
	d.refused([]byte{0x1f, 0, 0, 0, 0, nacaBit}, nil, sense.InvalidOpcode)
	d.expect("after it", d.run(testReady, nil), ACAActive, nil)
	d.lu.ClearACA(d.nexus)
	d.good(testReady, nil)
}

// TestClasses: what the classes of some commands are, and where their extents
// are taken from.
func TestClasses(t *testing.T) {
	for _, tt := range []struct {
		cdb    []byte
		class  taskset.Class
		extent taskset.Extent
	}{
		{testReady, taskset.Free, taskset.Whole},
		{[]byte{0x1a, 0, 0x3f, 0, 4, 0}, taskset.Query, taskset.Whole},
		{[]byte{0x15, 0x10, 0, 0, 4, 0}, taskset.Alter, taskset.Whole},
		{cdb6(0x08, 5, 0), taskset.Read, taskset.Extent{First: 5, Count: 256}},
		{cdb10(0x2a, 0, 7, 3), taskset.Write, taskset.Extent{First: 7, Count: 3}},
		{cdb16(0x88, 0, 1<<33, 9), taskset.Read, taskset.Extent{First: 1 << 33, Count: 9}},
		{[]byte{0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0}, taskset.Write, taskset.Whole},
		{cdb16(0x91, 0, 4, 4), taskset.Alter, taskset.Whole},
		{outCDB(5, 0, nil), taskset.Free, taskset.Whole},
	} {
		c := &Command{}
		copy(c.CDB[:], tt.cdb)
		row, _ := lookup(&c.CDB)
		if row.class != tt.class || c.extent() != tt.extent {
			t.Errorf("%s: class %d, extent %v, expected %d, %v", row.Name, row.class, c.extent(), tt.class, tt.extent)
		}
		if preempts := row.preempts(); preempts != (row.Name == "PERSISTENT RESERVE OUT, PREEMPT AND ABORT") {
			t.Errorf("%s preempts: %v", row.Name, preempts)
		}
	}
}

// TestAbortBehindBarrier aborts commands after every number of events while an
// ORDERED command is among them: nothing is left of any in the task set.
func TestAbortBehindBarrier(t *testing.T) {
	m := newMedium(4 * mib)
	n := newUnit(t, m, LUConfig{})
	th := slow(t, m, 1)
	n.AwaitTasks = func(_ func(*Command) bool, done func()) { th.later(done) }
	data := make([]byte, 8*512)
	for step := range 40 {
		var all []*exchange
		for i, attribute := range []TaskAttribute{Simple, Ordered, Simple, HeadOfQueue, Ordered, Simple} {
			x := &exchange{thread: th, out: data, c: &Command{Attribute: attribute}}
			x.begin(n, cdb16(0x8a, 0, uint64(100*i), 8), 0)
			all = append(all, x)
		}
		for range step {
			th.turn()
		}
		if x := all[step%len(all)]; x.ends == 0 && x.c.Abort() {
			x.ends++
		}
		deadline := time.Now().Add(time.Minute)
		for _, x := range all {
			for th.turn() || x.ends == 0 && time.Now().Before(deadline) {
			}
			if x.ends != 1 {
				t.Fatalf("step %d: a command ended %d times", step, x.ends)
			}
		}
		if n.LU.tasks.watched.Load() {
			t.Fatalf("step %d: the task set is still watched", step)
		}
	}
}
