package isertest

import (
	"io"
	"net/netip"
	"testing"

	"lunar/iser/verbs/fake"
)

// What is posted behind the end of a connection may never come back by itself, as with
// some devices: nobody waits for it.
func TestReceivesBehindTheEnd(t *testing.T) {
	portal := netip.MustParseAddrPort("10.0.0.1:3260")
	f := fake.New(t, fake.Options{})
	f.Host("target", false, fake.DeviceOptions{Name: "rxe0", Addr: portal.Addr(), Caps: fake.DefaultCaps()})
	client := f.Host("initiator", true, fake.DeviceOptions{Name: "rxe1", Addr: netip.MustParseAddr("10.0.0.2"), Caps: fake.DefaultCaps()})
	for range 16 { // each of them comes back or not
		w := newWire(client, Options{Portal: portal})
		if err := w.open(client); err != nil {
			t.Fatal(err)
		}
		w.receive(fullBuffer)
		w.fail(io.ErrClosedPipe)
		w.receive(fullBuffer)
		if w.turn() {
			t.Errorf("%d receives are waited for", len(w.posted))
		}
		if err := w.destroy(); err != nil {
			t.Fatal(err)
		}
	}
}
