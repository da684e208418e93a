package target_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"lunar/internal/initiator"
	"lunar/target"
	"lunar/target/scsi"
	"lunar/target/scsi/sense"
)

// naaCSCD is an identification descriptor CSCD (SPC-4 clause 6.4.5.2) of a LUN, with
// the designator of its VPD page 83h that has an NAA.
func naaCSCD(t *testing.T, c *initiator.Conn, lun uint64) []byte {
	t.Helper()
	res, err := c.Command([]byte{0x12, 1, 0x83, 0x04, 0x00, 0}, lun, nil, 1024)
	mustGood(t, res, err)
	d := make([]byte, 32)
	d[0] = 0xe4
	for rest := res.In[4:]; len(rest) >= 4; rest = rest[4+rest[3]:] {
		if rest[1]&0x3f == 3 {
			copy(d[4:], rest[:4+rest[3]])
		}
	}
	return d
}

// extendedCopy copies blocks from the start of one unit to that of the other, by an
// EXTENDED COPY(LID1) without a list identifier.
func extendedCopy(t *testing.T, c *initiator.Conn, from, to []byte, blocks uint16) *initiator.Result {
	t.Helper()
	list := make([]byte, 16, 108)
	list[1], list[3], list[11] = 3<<3, 64, 28
	list = append(append(list, from...), to...)
	segment := make([]byte, 28)
	segment[0], segment[3], segment[7] = 0x02, 24, 1
	binary.BigEndian.PutUint16(segment[10:], blocks)
	list = append(list, segment...)
	cdb := make([]byte, 16)
	cdb[0], cdb[13] = 0x83, byte(len(list))
	res, err := c.Command(cdb, 0, list, 0)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestCopyToAnotherSession: an initiator may copy to what it reaches by another of
// its sessions, on another event thread, for as long as it may write there.
func TestCopyToAnotherSession(t *testing.T) {
	auth := group("tenants", "alice")
	r := newRig(t, rigOptions{rules: func(lus []*scsi.LogicalUnit) []target.AccessRule {
		return []target.AccessRule{{Auth: auth, LUNs: []target.LUNMapping{{LU: lus[0]}}}}
	}})
	elsewhere := r.unit("elsewhere", nil)
	show := func(readOnly bool) target.TargetConfig {
		return target.TargetConfig{Name: otherName, PortalGroups: []uint16{1}, Access: []target.AccessRule{
			{Auth: auth, LUNs: []target.LUNMapping{{LU: elsewhere, ReadOnly: readOnly}}}}}
	}
	if _, err := r.server.AddTarget(show(false)); err != nil {
		t.Fatal(err)
	}
	c, other := r.login(as("alice", initiator.Options{})), r.login(as("alice", initiator.Options{Target: otherName}))
	data := pattern(256<<10, 3)
	res, err := c.Command(cdbWrite16(0, 512), 0, data, 0)
	mustGood(t, res, err)
	from, to := naaCSCD(t, c, 0), naaCSCD(t, other, 0)
	change := func(readOnly bool) {
		if _, err := r.server.ChangeTarget(show(readOnly)); err != nil {
			t.Error(err)
		}
	}
	changed := make(chan struct{})
	go func() {
		for i := range 20 {
			change(i%2 == 0)
		}
		close(changed)
	}()
	for changing := true; changing; {
		select {
		case <-changed:
			changing = false
		default:
			extendedCopy(t, c, from, to, 512)
		}
	}
	change(true)
	if key, _, _ := extendedCopy(t, c, from, to, 512).SenseKey(); key != byte(sense.CopyAborted) {
		t.Errorf("found sense key %#x of a copy to what is write protected", key)
	}
	change(false)
	mustGood(t, extendedCopy(t, c, from, to, 512), nil)
	testUnitReady(t, other, 0) // that mode parameters have changed
	if res, err = other.Command(cdbRead16(0, 512), 0, nil, len(data)); err != nil || !bytes.Equal(res.In, data) {
		t.Errorf("found %v, %+v", err, res)
	}
}
