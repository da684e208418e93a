package target_test

import (
	"bytes"
	"errors"
	"testing"

	"lunar/backstore/memstore"
	"lunar/internal/initiator"
)

// TestDeferredError: on the wire, to the session that wrote, and to the one that
// the same initiator port has later.
func TestDeferredError(t *testing.T) {
	store, err := memstore.New(memstore.Config{Size: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, rigOptions{store: store})
	other := initiator.Options{Initiator: "iqn.2026-01.lunar:other"}
	a, b := r.login(initiator.Options{}), r.login(other)
	expect := func(c *initiator.Conn, sense []byte) {
		t.Helper()
		res, err := c.Command(make([]byte, 6), 0, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if want := len(sense) > 0; want != (res.Status == 2) || !bytes.HasPrefix(res.Sense, sense) {
			t.Errorf("status %#x, sense %x, expected %x", res.Status, res.Sense, sense)
		}
	}
	deferred := []byte{0xf1, 0, 3, 0, 0, 0, 8, 10, 0, 0, 0, 0, 0x0c, 0}
	reset := []byte{0x70, 0, 6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x29, 0}
	fail := func() { r.lu.DeferredError(8*512, errors.New("medium error of the test")) }

	res, err := a.Command(cdbWrite16(0, 1), 0, pattern(512, 1), 0)
	mustGood(t, res, err)
	fail()
	expect(b, nil)
	expect(a, deferred)
	expect(a, nil)

	fail()
	if _, err := a.Logout(0); err != nil {
		t.Fatal(err)
	}
	a = r.dial(initiator.Options{Target: testTarget})
	expect(a, reset)
	expect(a, deferred)
	expect(a, nil)
	expect(b, nil)
}
