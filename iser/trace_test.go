package iser_test

import (
	"bytes"
	"slices"
	"testing"

	"lunar/internal/initiator"
	"lunar/iser/isertest"
	"lunar/target/pdu"
)

// TestTrace: a trace has what is said over iSER, and neither the data that RDMA moves nor
// what asks for them: a write has its immediate data in the command, and the rest is fetched.
func TestTrace(t *testing.T) {
	w := newWorld(t, options{})
	c, _ := w.dial(t, initiator.Options{}, isertest.Options{Invalidate: true})
	if err := c.Ready(0); err != nil {
		t.Fatal(err)
	}
	tr, err := w.Trace(w.Sessions()[0].TSIH)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if transport := tr.Session().Transport; transport != "iser" {
		t.Errorf("found transport %q", transport)
	}
	data := pattern(64<<10, 1)
	if r, err := c.Command(write16(0, 128), 0, data, 0); err != nil || r.Status != 0 {
		t.Fatalf("found %+v, %v", r, err)
	}
	if r, err := c.Command(read16(0, 128), 0, nil, len(data)); err != nil || !bytes.Equal(r.In, data) {
		t.Fatalf("found %+v, %v", r, err)
	}
	if err := c.Ping([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Logout(0); err != nil {
		t.Fatal(err)
	}
	<-tr.Ended()
	var found []pdu.Opcode
	for p, _, missing, ok := tr.Next(); ok; p, _, missing, ok = tr.Next() {
		_, remote := p.Connection().Ends()
		if missing != 0 || remote.Addr().String() != "10.0.0.2" {
			t.Errorf("found %v, %d missing before", p, missing)
		}
		found = append(found, p.BHS.Opcode())
	}
	want := []pdu.Opcode{
		pdu.OpSCSICommand, pdu.OpSCSIResponse, pdu.OpSCSICommand, pdu.OpSCSIResponse,
		pdu.OpNOPOut, pdu.OpNOPIn, pdu.OpLogoutRequest, pdu.OpLogoutResponse,
	}
	if !slices.Equal(found, want) || tr.Missing() != 0 {
		t.Errorf("found %v, expected %v", found, want)
	}
}
