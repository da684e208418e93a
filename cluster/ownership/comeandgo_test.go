package ownership

import (
	"fmt"
	"testing"
	"time"

	"lunar/cluster"
)

// TestComeAndGo: nothing is kept of volumes and nodes of which the state has nothing any more.
func TestComeAndGo(t *testing.T) {
	keys := cluster.KeysOf("c")
	o, at := NewObserver(keys, "n1"), cluster.Revision(0)
	if err := o.Begin(nil, at, time.Now()); err != nil {
		t.Fatal(err)
	}
	see := func(deleted bool, key string, value []byte) {
		t.Helper()
		at++
		if _, err := o.See(cluster.Event{Item: cluster.Item{Key: key, Value: value, Modified: at}, Deleted: deleted}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 10 {
		name := fmt.Sprint("x", round)
		for _, deleted := range []bool{false, true} {
			see(deleted, keys.Owner(name), Record{Node: "n1", Standing: Free}.Encode())
			see(deleted, keys.Move(name), Request{To: "n1"}.Encode())
			see(deleted, keys.Header(name), []byte("header"))
			see(deleted, keys.Node(name), Node{Incarnation: name}.Encode())
			see(deleted, keys.Pulse(name), []byte(name))
			see(deleted, keys.Drain(name), []byte("{}"))
			if n := len(o.told) + len(o.nodes) + len(o.pulses) + len(o.drains) + len(o.View.Nodes); !deleted && n != 5 {
				t.Fatalf("found %d, expected 5", n)
			}
		}
	}
	if n := len(o.told) + len(o.nodes) + len(o.pulses) + len(o.drains) + len(o.View.Nodes); n > 0 {
		t.Errorf("found %d volumes, %d nodes, %d pulses and %d drains, expected none", len(o.told), len(o.nodes), len(o.pulses), len(o.drains))
	}
}
