package scsi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"lunar/target/scsi/reservation"
	"lunar/target/scsi/sense"
)

// members are nexuses of one unit, h1 and so on, through port 1.
func members(t testing.TB, n int, config LUConfig) (*disk, []*Nexus) {
	t.Helper()
	config.Name, config.Logger = "v", testLogger(io.Discard)
	d := newDisk(t, diskInfo(), config)
	var list []*Nexus
	for i := range n {
		list = append(list, d.member(fmt.Sprint("iqn.h", i+1), 1))
	}
	return d, list
}

func (d *disk) member(name string, port uint16) *Nexus {
	n := &Nexus{
		LU: d.lu, Initiator: reservation.PortName(name, 1), Target: "iqn.t", TargetTag: port,
		Ports: func() []uint16 { return []uint16{1, 2} }, Map: func() []uint64 { return []uint64{0} },
	}
	d.lu.Attach(n)
	n.takeAttention()
	return n
}

func outCDB(action reservation.Action, kind reservation.Type, list []byte) []byte {
	cdb := []byte{0x5f, byte(action), byte(kind), 0, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(cdb[5:], uint32(len(list)))
	return cdb
}

func keys(key, serviceKey uint64, flags byte) []byte {
	list := binary.BigEndian.AppendUint64(nil, key)
	return append(binary.BigEndian.AppendUint64(list, serviceKey), 0, 0, 0, 0, flags, 0, 0, 0)
}

// out sends PERSISTENT RESERVE OUT.
func (d *disk) out(n *Nexus, action reservation.Action, kind reservation.Type, key, serviceKey uint64) reply {
	d.t.Helper()
	list := keys(key, serviceKey, 0)
	return d.runAs(n, outCDB(action, kind, list), list)
}

func (d *disk) in(n *Nexus, action byte) []byte {
	d.t.Helper()
	r := d.runAs(n, []byte{0x5e, action, 0, 0, 0, 0, 0, 0xff, 0xff, 0}, nil)
	if r.status != Good {
		d.t.Fatalf("PERSISTENT RESERVE IN %d: %+v", action, r)
	}
	return r.data
}

func (d *disk) expect(what string, r reply, status Status, sense *sense.Data) {
	d.t.Helper()
	if r.status != status || sense != nil && r.sense != *sense {
		d.t.Errorf("%s: status %02x, sense %+v; expected %02x, %+v", what, r.status, r.sense, status, sense)
	}
}

func attention(asc sense.ASC) *sense.Data { return &sense.Data{Key: sense.UnitAttention, ASC: asc} }

var (
	testReady = []byte{0, 0, 0, 0, 0, 0}
	readNone  = []byte{0x28, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	writeNone = []byte{0x2a, 0, 0, 0, 0, 0, 0, 0, 0, 0}
)

// TestPersistentReservation is a conversation as clusters have it: two members
// register, one reserves, a third is kept out, the other member takes over.
func TestPersistentReservation(t *testing.T) {
	d, n := members(t, 3, LUConfig{})
	a, b, outsider := n[0], n[1], n[2]
	d.expect("register a", d.out(a, reservation.Register, 0, 0, 0xa), Good, nil)
	d.expect("register b", d.out(b, reservation.RegisterAndIgnoreExistingKey, 0, 99, 0xb), Good, nil)
	d.expect("another key", d.out(b, reservation.Register, 0, 0xc, 0xb), ReservationConflict, nil)
	d.expect("no member", d.out(outsider, reservation.Reserve, 5, 0, 0), ReservationConflict, nil)
	d.expect("reserve", d.out(a, reservation.Reserve, 5, 0xa, 0), Good, nil)
	equal(t, d.in(outsider, 0), "00000002 00000010  000000000000000a 000000000000000b")
	equal(t, d.in(outsider, 1), "00000002 00000010  000000000000000a 00000000 00 05 0000")
	equal(t, d.in(outsider, 2), "0008 1c b0 ea01 0000")
	equal(t, d.in(b, 3), `00000002 00000068
		000000000000000a 00000000 01 05 00000000 0001 0000001c
		45 00 0018  69716e2e68312c692c3078303030303030303030303031 00
		000000000000000b 00000000 00 00 00000000 0001 0000001c
		45 00 0018  69716e2e68322c692c3078303030303030303030303031 00`)

	d.expect("read outside", d.runAs(outsider, readNone, nil), Good, nil)
	d.expect("write outside", d.runAs(outsider, writeNone, nil), ReservationConflict, nil)
	d.expect("start outside", d.runAs(outsider, []byte{0x1b, 0, 0, 0, 1, 0}, nil), Good, nil)
	d.expect("stop outside", d.runAs(outsider, []byte{0x1b, 0, 0, 0, 0, 0}, nil), ReservationConflict, nil)
	d.expect("write of a member", d.runAs(b, writeNone, nil), Good, nil)
	d.expect("release of another type", d.out(a, reservation.Release, 6, 0xa, 0), CheckCondition, sense.InvalidRelease)
	d.expect("type", d.out(a, reservation.Reserve, 2, 0xa, 0), CheckCondition, sense.InvalidFieldInCDB(2, 3))
	d.expect("scope", d.out(a, reservation.Reserve, 0x15, 0xa, 0), CheckCondition, sense.InvalidFieldInCDB(2, 7))
	d.expect("nothing", d.out(b, reservation.Preempt, 5, 0xb, 0), CheckCondition, sense.InvalidFieldInList(8, sense.NoBit))

	d.expect("preempt", d.out(b, reservation.Preempt, 6, 0xb, 0xa), Good, nil)
	equal(t, d.in(b, 1), "00000003 00000010  000000000000000b 00000000 00 06 0000")
	d.expect("the preempted one is told", d.runAs(a, writeNone, nil), CheckCondition, attention(sense.ASCRegistrationsPreempted))
	d.expect("and fenced", d.runAs(a, writeNone, nil), ReservationConflict, nil)
	d.expect("also reads", d.runAs(a, readNone, nil), ReservationConflict, nil)
	d.expect("TEST UNIT READY is not", d.runAs(a, testReady, nil), Good, nil)
	d.expect("MODE SENSE is", d.runAs(a, []byte{0x1a, 0, 0x3f, 0, 255, 0}, nil), ReservationConflict, nil)

	d.expect("register a again", d.out(a, reservation.Register, 0, 0, 0xa), Good, nil)
	d.expect("release", d.out(b, reservation.Release, 6, 0xb, 0), Good, nil)
	d.expect("members are told", d.runAs(a, testReady, nil), CheckCondition, attention(sense.ASCReservationsReleased))
	d.expect("clear", d.out(a, reservation.Clear, 0, 0xa, 0), Good, nil)
	d.expect("members are told", d.runAs(b, testReady, nil), CheckCondition, attention(sense.ASCReservationsPreempted))
	d.expect("outsiders are not", d.runAs(outsider, writeNone, nil), Good, nil)
	equal(t, d.in(b, 0), "00000005 00000000")
}

// TestReservationOutlivesNexus: it is not lost with the session, nor by a reset.
func TestReservationOutlivesNexus(t *testing.T) {
	d, n := members(t, 2, LUConfig{})
	d.out(n[0], reservation.Register, 0, 0, 1)
	d.out(n[0], reservation.Reserve, 1, 1, 0)
	d.lu.Detach(n[0])
	d.lu.ResetState()
	d.expect("write", d.runAs(n[1], writeNone, nil), ReservationConflict, nil)
	again := d.member("iqn.h1", 1)
	d.expect("write of the holder", d.runAs(again, writeNone, nil), Good, nil)
	other := d.member("iqn.h1", 2)
	d.expect("write through another port", d.runAs(other, writeNone, nil), ReservationConflict, nil)
}

// TestReserve: RESERVE of SPC-2 and how it goes with persistent reservations.
func TestReserve(t *testing.T) {
	reserve, release := []byte{0x16, 0, 0, 0, 0, 0}, []byte{0x17, 0, 0, 0, 0, 0}
	d, n := members(t, 2, LUConfig{})
	a, b := n[0], n[1]
	for range 2 {
		d.expect("reserve", d.runAs(a, reserve, nil), Good, nil)
	}
	d.expect("of another", d.runAs(b, []byte{0x56, 0, 0, 0, 0, 0, 0, 0, 0, 0}, nil), ReservationConflict, nil)
	d.expect("release of another", d.runAs(b, release, nil), Good, nil)
	d.expect("TEST UNIT READY", d.runAs(b, testReady, nil), ReservationConflict, nil)
	d.expect("INQUIRY", d.runAs(b, []byte{0x12, 0, 0, 0, 36, 0}, nil), Good, nil)
	d.expect("write", d.runAs(a, writeNone, nil), Good, nil)
	d.expect("register", d.out(a, reservation.Register, 0, 0, 1), ReservationConflict, nil)
	d.expect("read keys", d.runAs(a, []byte{0x5e, 0, 0, 0, 0, 0, 0, 0, 8, 0}, nil), ReservationConflict, nil)
	d.expect("release", d.runAs(a, []byte{0x57, 0, 0, 0, 0, 0, 0, 0, 0, 0}, nil), Good, nil)
	d.expect("reserve of the other", d.runAs(b, reserve, nil), Good, nil)
	d.lu.ResetState()
	d.expect("after a reset", d.runAs(a, reserve, nil), Good, nil)
	d.lu.Detach(a)
	d.expect("after nexus loss", d.runAs(b, writeNone, nil), Good, nil)
	d.lu.Attach(a)
	d.runAs(a, testReady, nil)

	d.out(a, reservation.Register, 0, 0, 1)
	d.expect("with a registration", d.runAs(a, reserve, nil), ReservationConflict, nil)
	d.out(a, reservation.Reserve, 5, 1, 0)
	d.expect("of the holder", d.runAs(a, reserve, nil), Good, nil)
	d.expect("release of the holder", d.runAs(a, release, nil), Good, nil)
	d.expect("release of another", d.runAs(b, release, nil), ReservationConflict, nil)
	d.out(b, reservation.Register, 0, 0, 2)
	d.expect("of a member", d.runAs(b, reserve, nil), Good, nil)
	d.expect("which reserved nothing", d.runAs(a, writeNone, nil), Good, nil)
}

// TestReadOnlyMappingReservesNothing: who may not write may not keep others from
// writing.
func TestReadOnlyMappingReservesNothing(t *testing.T) {
	d, n := members(t, 1, LUConfig{ExplicitAccess: true})
	n[0].ReadOnly.Store(true)
	d.expect("register", d.out(n[0], reservation.Register, 0, 0, 1), CheckCondition, sense.WriteProtected)
	d.expect("reserve", d.runAs(n[0], []byte{0x16, 0, 0, 0, 0, 0}, nil), CheckCondition, sense.WriteProtected)
	list := []byte{0, 0, 0, 0, 2, 0, 0, 1}
	d.expect("set target port groups", d.runAs(n[0], append([]byte{0xa4, 0x0a, 0, 0, 0, 0, 0, 0, 0, 8}, 0, 0), list), CheckCondition, sense.WriteProtected)
}

// TestSaveReservations: what is to survive is saved before it counts, and what
// cannot be saved changes nothing.
func TestSaveReservations(t *testing.T) {
	var fail error
	var files []string
	var d *disk
	var n []*Nexus
	save := func(s *reservation.State) error {
		if fail != nil {
			return fail
		}
		text, err := s.Marshal()
		if err != nil {
			return err
		}
		if d.lu.reservations.Load() == s {
			t.Error("it is in force before it is saved")
		}
		files = append(files, string(text))
		return nil
	}
	d, n = members(t, 1, LUConfig{SaveReservations: save})
	list := keys(0, 5, 1)
	d.expect("register", d.runAs(n[0], outCDB(reservation.Register, 0, list), list), Good, nil)
	d.expect("reserve", d.out(n[0], reservation.Reserve, 7, 5, 0), Good, nil)
	equal(t, d.in(n[0], 2), "0008 1d b1 ea01 0000")
	fail = errors.New("disk full")
	d.expect("clear", d.out(n[0], reservation.Clear, 0, 5, 0), CheckCondition, sense.InternalTargetFailure)
	equal(t, d.in(n[0], 0), "00000001 00000008 0000000000000005")
	fail = nil

	after, err := reservation.Unmarshal([]byte(files[len(files)-1]))
	if err != nil {
		t.Fatal(err)
	}
	restarted, m := members(t, 2, LUConfig{SaveReservations: save, Reservations: after})
	equal(t, restarted.in(m[1], 1), "00000000 00000010  0000000000000000 00000000 00 07 0000")
	restarted.expect("write of a stranger", restarted.runAs(m[1], writeNone, nil), ReservationConflict, nil)
	restarted.expect("write", restarted.runAs(m[0], writeNone, nil), Good, nil)
	d = restarted
	list = keys(5, 6, 0)
	d.expect("without APTPL", d.runAs(m[0], outCDB(reservation.Register, 0, list), list), Good, nil)
	if len(files) != 3 || strings.Contains(files[2], `"6"`) {
		t.Errorf("found %q, expected a third file without the registration", files)
	}
	if after, err := reservation.Unmarshal([]byte(files[2])); err != nil || len(after.Registrations()) != 0 || after.Persist() {
		t.Errorf("%+v, %v: expected nothing to persist", after, err)
	}
}

// TestPreemptAndAbort: the status comes when the tasks of the preempted nexus
// have ended; who ends the command itself does not wait for it.
func TestPreemptAndAbort(t *testing.T) {
	d, n := members(t, 2, LUConfig{})
	asked := make(chan func(), 1)
	n[1].EndTasks = func(_ *Command, done func()) { asked <- done }
	d.out(n[0], reservation.Register, 0, 0, 1)
	d.out(n[1], reservation.Register, 0, 0, 2)
	ended := make(chan reply)
	go func() { ended <- d.out(n[0], reservation.PreemptAndAbort, 1, 1, 2) }()
	done := <-asked
	d.expect("the preempted one", d.out(n[1], reservation.Register, 0, 2, 0), CheckCondition, attention(sense.ASCRegistrationsPreempted))
	select {
	case r := <-ended:
		t.Errorf("it ended before the tasks: %+v", r)
	default:
	}
	done()
	d.expect("preempt and abort", <-ended, Good, nil)
}

// TestRegistrarContainsPanics: a panic is one of the command, on its thread, and
// the next command is served.
func TestRegistrarContainsPanics(t *testing.T) {
	var d *disk
	d, n := members(t, 1, LUConfig{SaveReservations: func(*reservation.State) error { panic("broken") }})
	func() {
		defer func() {
			if p := recover(); p != "broken" {
				t.Errorf("recovered %v", p)
			}
		}()
		list := keys(0, 5, 1)
		d.runAs(n[0], outCDB(reservation.Register, 0, list), list)
	}()
	d.expect("the next", d.out(n[0], reservation.Register, 0, 0, 5), Good, nil)
}

// TestReservationsFromManyThreads is for the race detector: while members fight,
// every command ends and the restrictions are those of the last state.
func TestReservationsFromManyThreads(t *testing.T) {
	d, n := members(t, 4, LUConfig{})
	var wg sync.WaitGroup
	for i, nexus := range n {
		key := uint64(i + 1)
		wg.Go(func() {
			for step := range 100 {
				d.out(nexus, reservation.RegisterAndIgnoreExistingKey, 0, 0, key)
				d.out(nexus, reservation.Reserve, 1, key, 0)
				d.out(nexus, reservation.PreemptAndAbort, 3, key, uint64(step%4+1))
				d.runAs(nexus, writeNone, nil)
				d.runAs(nexus, []byte{0x16, 0, 0, 0, 0, 0}, nil)
				d.runAs(nexus, []byte{0x17, 0, 0, 0, 0, 0}, nil)
				d.runAs(nexus, []byte{0x5e, 3, 0, 0, 0, 0, 0, 0xff, 0xff, 0}, nil)
				if step%10 == 0 {
					d.lu.SetAccess(map[uint16]PortAccess{1: {State: AccessState(step / 10 % 2)}})
				}
			}
		})
	}
	wg.Wait()
	s := d.lu.reservations.Load()
	for _, nexus := range n {
		want := s.Rights(nexus.Identity())
		if got := restrictions(nexus.restricted.Load()); got&restrictWrite == 0 != (want&reservation.Write != 0) || got&restrictRead == 0 != (want&reservation.Read != 0) {
			t.Errorf("%s: restrictions %b, rights %b", nexus.Initiator, got, want)
		}
	}
}

// TestTargetPortGroups: REPORT and SET TARGET PORT GROUPS, what runs in which
// state, and who is told.
func TestTargetPortGroups(t *testing.T) {
	d, n := members(t, 1, LUConfig{ExplicitAccess: true})
	d.lu.SetAccess(map[uint16]PortAccess{1: {Preferred: true}, 2: {State: Standby}})
	a, b := n[0], d.member("iqn.h1", 2)
	report := []byte{0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}
	d.expect("the initial states", d.runAs(a, testReady, nil), CheckCondition, attention(sense.ASCAsymmetricAccessStateChanged))
	equal(t, d.runAs(b, report, nil).data, `00000018
		80 cf 0001 00 00 00 01  0000 0001
		02 cf 0002 00 02 00 01  0000 0002`)
	extended := slices.Clone(report)
	extended[1] |= 0x20
	equal(t, d.runAs(a, extended, nil).data[:12], "0000001c 10 00 0000 80 cf 0001")
	extended[1] |= 0x40
	d.expect("format", d.runAs(a, extended, nil), CheckCondition, sense.InvalidFieldInCDB(1, 7))

	d.expect("TEST UNIT READY in standby", d.runAs(b, testReady, nil), CheckCondition, sense.InStandby)
	d.expect("READ in standby", d.runAs(b, readNone, nil), CheckCondition, sense.InStandby)
	d.expect("MODE SENSE in standby", d.runAs(b, []byte{0x1a, 0, 0x3f, 0, 255, 0}, nil), Good, nil)
	d.expect("READ CAPACITY(10) in standby", d.runAs(b, []byte{0x25, 9: 0}, nil), Good, nil)
	d.expect("READ CAPACITY(16) in standby", d.runAs(b, []byte{0x9e, 0x10, 13: 32, 15: 0}, nil), Good, nil)
	d.expect("register in standby", d.out(b, reservation.Register, 0, 0, 1), Good, nil)

	set := func(descriptors ...byte) reply {
		list := append(make([]byte, 4), descriptors...)
		return d.runAs(a, []byte{0xa4, 0x0a, 0, 0, 0, 0, 0, 0, 0, byte(len(list)), 0, 0}, list)
	}
	d.expect("set", set(0, 0, 0, 2, 1, 0, 0, 1), Good, nil)
	d.expect("others are told", d.runAs(b, readNone, nil), CheckCondition, attention(sense.ASCAsymmetricAccessStateChanged))
	d.expect("READ", d.runAs(b, readNone, nil), Good, nil)
	equal(t, d.runAs(a, report, nil).data, `00000018
		81 cf 0001 00 01 00 01  0000 0001
		00 cf 0002 00 01 00 01  0000 0002`)
	d.expect("an unknown group", set(0, 0, 0, 3), CheckCondition, sense.InvalidFieldInList(6, sense.NoBit))
	d.expect("an unknown state", set(0, 0, 0, 1, 0xf, 0, 0, 2), CheckCondition, sense.InvalidFieldInList(8, 3))
	d.expect("half a descriptor", set(0, 0), CheckCondition, sense.ParameterListLengthError)
	d.expect("no descriptor", set(), Good, nil)

	implicit, m := members(t, 1, LUConfig{})
	implicit.expect("set where it is not offered", implicit.runAs(m[0], []byte{0xa4, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, nil), CheckCondition, sense.InvalidOpcode)
	for state, sense := range map[AccessState]*sense.Data{Unavailable: sense.InUnavailable, Offline: sense.InOffline, Transitioning: sense.InTransition} {
		d.lu.SetAccess(map[uint16]PortAccess{2: {State: state}})
		d.runAs(b, []byte{0x03, 0, 0, 0, 18, 0}, nil) // its attention
		d.expect("MODE SENSE", d.runAs(b, []byte{0x1a, 0, 0x3f, 0, 255, 0}, nil), CheckCondition, sense)
		d.expect("INQUIRY", d.runAs(b, []byte{0x12, 0, 0, 0, 36, 0}, nil), Good, nil)
		if r := d.runAs(b, report, nil); r.status != Good || r.data[16]&0x0f != byte(state) {
			t.Errorf("%v: %+v", state, r)
		}
	}
}

// TestConflictTable holds the table's rows against SPC-4 table 65, SBC-3 table
// 13 and SPC-2 table 10: what a write exclusive (w) and exclusive access (x)
// reservation of another and RESERVE (r) of another keep away.
func TestConflictTable(t *testing.T) {
	want := map[string]string{
		"INQUIRY": "", "REPORT LUNS": "", "REQUEST SENSE": "", "RELEASE(6)": "", "RELEASE(10)": "",
		"TEST UNIT READY": "r", "LOG SENSE": "r", "PREVENT ALLOW MEDIUM REMOVAL": "r", "REPORT TIMESTAMP": "r", "READ CAPACITY(10)": "r", "READ CAPACITY(16)": "r", "START STOP UNIT": "r",
		"REPORT TARGET PORT GROUPS": "r", "RESERVE(6)": "r", "RESERVE(10)": "r",
		"READ BUFFER(10)": "xr", "READ DEFECT DATA(10)": "xr", "READ DEFECT DATA(12)": "xr",
		"MODE SENSE(6)": "xr", "MODE SENSE(10)": "xr", "REPORT SUPPORTED OPERATION CODES": "xr",
		"REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS": "xr", "GET LBA STATUS": "xr",
		"READ(6)": "xr", "READ(10)": "xr", "READ(12)": "xr", "READ(16)": "xr", "PRE-FETCH(10)": "xr", "PRE-FETCH(16)": "xr",
		"VERIFY(10)": "xr", "VERIFY(12)": "xr", "VERIFY(16)": "xr",
	}
	for _, row := range commands {
		got := ""
		for _, b := range []struct {
			bar  restrictions
			name string
		}{{restrictWrite, "w"}, {restrictRead, "x"}, {restrictReserved | restrictLegacy, "r"}} {
			if row.restricted&b.bar != 0 {
				got += b.name
			}
		}
		expected, listed := want[row.Name]
		switch {
		case strings.HasPrefix(row.Name, "PERSISTENT RESERVE"):
			expected = "r"
		case !listed:
			expected = "wxr"
		}
		if got != expected && (listed || row.Access == AccessWrite) {
			t.Errorf("%s conflicts with %q, expected %q", row.Name, got, expected)
		}
	}
}
