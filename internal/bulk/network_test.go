package bulk_test

import (
	"context"
	"net/netip"
	"testing"

	"lunar/internal/bulk"
	"lunar/internal/bulk/keyed"
	"lunar/internal/bulk/rdma"
	"lunar/internal/bulk/tcp"
	"lunar/iser/verbs/fake"
)

// network is what joins two sides of a test.
type network struct {
	name string
	// listen returns who takes senders in, and how one of them comes.
	listen func(testing.TB, keyed.Key) (door, func(testing.TB, keyed.Key) (bulk.SourceLink, error))
}

// door takes senders in.
type door struct {
	accept func(context.Context) (bulk.SinkLink, error)
	close  func() error
}

var networks = []network{
	{"tcp", func(t testing.TB, key keyed.Key) (door, func(testing.TB, keyed.Key) (bulk.SourceLink, error)) {
		l, err := tcp.Listen("127.0.0.1:0", key)
		if err != nil {
			t.Fatal(err)
		}
		accept := func(ctx context.Context) (bulk.SinkLink, error) { return l.Accept(ctx) }
		return door{accept, l.Close}, func(t testing.TB, key keyed.Key) (bulk.SourceLink, error) {
			return tcp.Dial(t.Context(), l.Address(), key)
		}
	}},
	{"rdma", func(t testing.TB, key keyed.Key) (door, func(testing.TB, keyed.Key) (bulk.SourceLink, error)) {
		fabric := fake.New(t, fake.Options{Seed: 1})
		from := fabric.Host("from", false, fake.DeviceOptions{Name: "rxe0", Addr: netip.MustParseAddr("10.0.0.1")})
		to := fabric.Host("to", false, fake.DeviceOptions{Name: "rxe1", Addr: netip.MustParseAddr("10.0.0.2")})
		at := netip.MustParseAddrPort("10.0.0.2:3262")
		l, err := rdma.Listen(to, at, key)
		if err != nil {
			t.Fatal(err)
		}
		accept := func(ctx context.Context) (bulk.SinkLink, error) { return l.Accept(ctx) }
		return door{accept, l.Close}, func(t testing.TB, key keyed.Key) (bulk.SourceLink, error) {
			return rdma.Dial(t.Context(), from, at, key)
		}
	}},
}

// overEach runs a test over all networks.
func overEach(t *testing.T, test func(*testing.T, network)) {
	for _, n := range networks {
		t.Run(n.name, func(t *testing.T) { test(t, n) })
	}
}
