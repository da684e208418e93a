package tcp

import (
	"net"
	"testing"

	"lunar/internal/bulk/keyed"
)

// TestSilentStrangers: however many connections say nothing, from elsewhere or from where a sender
// is, the sender comes in with its data channels.
func TestSilentStrangers(t *testing.T) {
	key := keyed.NewKey()
	l, err := Listen("127.0.0.1:0", key)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, from := range []string{"127.0.0.2", "127.0.0.1"} {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		for range 100 {
			c, err := dialer.Dial("tcp", l.Address())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
		}
		source, err := Dial(t.Context(), l.Address(), key)
		if err != nil {
			t.Fatalf("beside connections from %s: %v", from, err)
		}
		sink, err := l.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		source.Close()
		sink.Close()
	}
}
