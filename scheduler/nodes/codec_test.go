package nodes

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"lunar/scheduler"
	"lunar/scheduler/pshift"
)

func count(t *rapid.T) int64 { return rapid.Int64Range(0, mostCount).Draw(t, "count") }

var anUse = rapid.Custom(func(t *rapid.T) Use {
	return Use{
		Entity: rapid.Int64Range(0, numbers-1).Draw(t, "entity"), Gone: rapid.Bool().Draw(t, "gone"), Backlogged: rapid.Bool().Draw(t, "backlogged"),
		Root: rapid.Bool().Draw(t, "root"), Offered: count(t), Served: count(t), Hits: count(t), Yielded: count(t), Queued: count(t),
	}
})

var aDevice = rapid.Custom(func(t *rapid.T) Device {
	return Device{
		Name: rapid.String().Draw(t, "name"), Shared: rapid.Bool().Draw(t, "shared"), Backlogged: rapid.Bool().Draw(t, "backlogged"),
		Number: count(t), Threads: count(t), Done: count(t), Capacity: count(t), Throttled: count(t), Residual: count(t),
		Uses: rapid.SliceOfN(anUse, 1, 5).Draw(t, "uses"),
	}
})

var anEntity = rapid.Custom(func(t *rapid.T) Entity {
	return Entity{
		Number: count(t), Key: rapid.String().Draw(t, "key"), Level: scheduler.Level(rapid.IntRange(0, 2).Draw(t, "level")),
		Reservation: count(t), Limit: rapid.SampledFrom([]int64{pshift.Unlimited, 1, math.MaxInt64 - 1}).Draw(t, "limit"),
	}
})

// TestMessages: what is read is what was written, and a message that is cut anywhere is refused.
func TestMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Report{Number: 1, Base: rapid.Uint64().Draw(t, "base"), Entities: rapid.SliceOfN(anEntity, 1, 3).Draw(t, "entities"), Devices: rapid.SliceOfN(aDevice, 1, 3).Draw(t, "devices")}
		var read Report
		same(t, r.Append(nil), IsReport, &r, &read, read.Parse)
		g := Grant{Term: 7, Report: 8}
		g.Left, g.Lasts, g.Nodes, g.Period = count(t), count(t), 3, true
		g.Parts = []scheduler.Part{{Number: count(t), Reserved: count(t), Share: 5}, {Number: count(t)}}
		g.Pools = []scheduler.PoolPart{{Device: "d", Capacity: count(t), Tokens: 3, Window: 9}}
		var given Grant
		same(t, g.Append(nil), IsGrant, &g, &given, given.Parse)
		a, asked := Ask{Term: rapid.Uint64().Draw(t, "term"), Base: 9}, Ask{}
		same(t, a.Append(nil), IsAsk, &a, &asked, asked.Parse)
		sums := Totals{Term: 7, Age: count(t), Entities: 2, Reserved: count(t), Limit: count(t), Served: count(t), Missed: 1, Nodes: []NodeTotals{{"n", count(t), 1, count(t)}, {Node: "m"}}, Silent: []string{"s"}}
		var told Totals
		same(t, sums.Append(nil), IsTotals, &sums, &told, told.Parse)
	})
}

func same(t *rapid.T, message []byte, want Kind, written, read any, parse func([]byte) error) {
	if k, err := KindOf(message); err != nil || k != want {
		t.Fatalf("found kind %d (%v), expected %d", k, err, want)
	}
	if err := parse(message); err != nil || !reflect.DeepEqual(written, read) {
		t.Fatalf("found %+v (%v), expected %+v", read, err, written)
	}
	for n := 2; n < len(message); n++ {
		if parse(message[:n]) == nil {
			t.Fatalf("%d of %d bytes are taken for a message", n, len(message))
		}
	}
	if parse(append(message, 0)) == nil {
		t.Fatal("a byte too many is taken for a part of a message")
	}
}

// TestOtherVersion: messages of another version are refused by their first byte.
func TestOtherVersion(t *testing.T) {
	for _, m := range [][]byte{nil, {1}, {version + 1, byte(IsAsk)}} {
		if k, err := KindOf(m); err == nil {
			t.Errorf("%x: found kind %d, expected an error", m, k)
		}
	}
}

// FuzzMessages: nothing that a node sends makes another one panic; what is understood is
// written again as the same.
func FuzzMessages(f *testing.F) {
	f.Add((&Ask{Term: 3, Base: 1}).Append(nil))
	f.Add((&Report{Number: 1, Entities: []Entity{{Number: 1, Key: "initiator a", Level: 1, Limit: 5}}, Devices: []Device{{Name: "d", Uses: []Use{{Entity: 1, Offered: 4, Served: 3, Root: true}}}}}).Append(nil))
	f.Add((&Grant{Term: 3, Report: 1, NodeGrant: scheduler.NodeGrant{Left: 5, Lasts: 4e8, Nodes: 2, Parts: []scheduler.Part{{Number: 1, Share: 5}}}}).Append(nil))
	f.Fuzz(func(t *testing.T, message []byte) {
		k, err := KindOf(message)
		if err != nil {
			return
		}
		switch k {
		case IsReport:
			var r, again Report
			if r.Parse(message) == nil {
				if err := again.Parse(r.Append(nil)); err != nil || !bytes.Equal(again.Append(nil), r.Append(nil)) {
					t.Fatalf("found %+v (%v), expected %+v", again, err, r)
				}
			}
			c := NewController(Config{Term: 1})
			for range 2 {
				_ = c.Hear("a", message, 0)
				c.Deal(1, []string{"a", "b"})
				if len(c.Granted()) > 0 {
					c.Grant("a", 2, nil)
				}
			}
		case IsGrant, IsAsk:
			n := Node{Shared: func(string) bool { return true }}
			_, _ = n.Answer((&Ask{Term: 3}).Append(nil), 0, func(*scheduler.GateReport) {})
			if k == IsAsk {
				_, _ = n.Answer(message, 0, func(*scheduler.GateReport) {})
			} else if g, err := n.Grant(message, 0); err == nil {
				l := newLocal(2)
				l.collect(10, 5)
				l.coord.Redistribute(l.now, l.grant)
				l.coord.Take(g, l.now)
				l.coord.Redistribute(l.now, nil)
			}
		}
	})
}
