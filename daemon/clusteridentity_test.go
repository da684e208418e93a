package daemon

import (
	"bytes"
	"strings"
	"testing"

	"lunar/cluster"
	"lunar/internal/cli"
	"lunar/internal/eventually"
)

// TestIdentityOfNewState: a state that was made anew gets the identity that nodes know, and a
// node that has another one than the state says so.
func TestIdentityOfNewState(t *testing.T) {
	l := newLab(t, "")
	state, key := l.network.State("test"), cluster.KeysOf("lab").Identity()
	value := func() []byte {
		items, _, err := state.Get(t.Context(), key)
		if err != nil || len(items) != 1 {
			return nil
		}
		return items[0].Value
	}
	change := func(c cluster.Change) {
		c.Key = key
		if _, err := state.Commit(t.Context(), nil, []cluster.Change{c}); err != nil {
			t.Fatal(err)
		}
	}
	before := value()
	change(cluster.Change{Delete: true})
	l.nodes["n2"].stop()
	l.restart("n2")
	eventually.Holds(t, "the state has the identity again", func() bool { return before != nil && bytes.Equal(value(), before) })
	change(cluster.Change{Value: []byte(`{"version":1,"identity":"other"}`)})
	l.nodes["n3"].stop()
	l.restart("n3")
	eventually.Holds(t, "the node with another one says so", func() bool {
		return strings.Contains(l.nodes["n3"].log.String(), "other serial numbers than on other nodes")
	})
	for _, node := range []string{"n1", "n3"} {
		eventually.Holds(t, "all nodes say so", func() bool {
			said := l.lunar(node, cli.ExitOK, "cluster", "status")
			return strings.Contains(said, "Disks of node n3 have OTHER SERIAL NUMBERS") && strings.Count(said, "OTHER") == 1
		})
	}
}
