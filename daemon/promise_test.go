package daemon

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/eventually"
	"lunar/internal/initiator"
)

// promisedConfig has a limit, and a volume of each node besides.
var promisedConfig = strings.NewReplacer(
	"owners: [n1, n2, n3]CACHE}}", "owners: [n1, n2, n3]}, own: {type: ram, size: 1MiB}}",
	`{"iqn.2026-11.test:t": {luns: {0: db}}}`, `{"iqn.2026-11.test:t": {luns: {0: db}}, "iqn.2026-11.test:own": {luns: {0: own}}}`,
).Replace(nodeConfig) + `qos: {rules: [{name: held, initiators: ["*"], limit: 400}]}` + "\n"

// promises is what a node says of the promises over all nodes.
func (l *lab) promises(node string) (p control.ClusterPromises) {
	l.t.Helper()
	if err := json.Unmarshal([]byte(l.lunar(node, cli.ExitOK, "qos", "show", "--cluster", "--json")), &p); err != nil {
		l.t.Fatal(err)
	}
	return p
}

// read reads from a node's own volume until stop is closed, and counts.
func (l *lab) read(node string, count *atomic.Int64, stop <-chan struct{}) {
	c := dial(l.t, l.nodes[node].portal, initiator.Options{Target: "iqn.2026-11.test:own"})
	settle(l.t, c, 0)
	for {
		select {
		case <-stop:
			return
		default:
		}
		if r, err := c.Command(cdb10Of(0x28, 0), 0, nil, 512); err != nil || r.Status != 0 {
			l.t.Errorf("node %s: a read ended with %v (%v)", node, r, err)
			return
		}
		count.Add(1)
	}
}

// TestPromiseOverNodes: an initiator's limit holds over all nodes, also when the node dies that
// keeps it; every node tells what is promised, and who keeps it.
func TestPromiseOverNodes(t *testing.T) {
	l := newLabOf(t, promisedConfig)
	served := map[string]*atomic.Int64{}
	var load sync.WaitGroup
	stop := make(chan struct{})
	for name := range l.nodes {
		reads := new(atomic.Int64)
		served[name] = reads
		load.Go(func() { l.read(name, reads, stop) })
	}
	var p control.ClusterPromises
	eventually.Holds(t, "one node keeps the promise, which three have a part of", func() bool {
		p = l.promises("n1")
		return len(p.Nodes) == 3 && len(p.Promises) == 1 && len(p.Promises[0].Nodes) == 3 && p.Promises[0].Limit == 400 && p.Promises[0].Served > 0
	})
	held := func(nodes ...string) {
		t.Helper()
		sum := func() (n int64) {
			for _, name := range nodes {
				n += served[name].Load()
			}
			return n
		}
		was, began := sum(), time.Now()
		eventually.Holds(t, "400 commands are served", func() bool { return sum() >= was+400 })
		if most := 1.05*400*time.Since(began).Seconds() + 20; float64(sum()-was) > most {
			t.Errorf("found %d commands in %v, expected %.0f at most", sum()-was, time.Since(began), most)
		}
	}
	held("n1", "n2", "n3")
	if out := l.lunar("n2", cli.ExitOK, "qos", "show", "--cluster"); !strings.Contains(out, "controller  node "+p.Controller) || !strings.Contains(out, "% of limit") {
		t.Errorf("found %q, expected the controller and quotas", out)
	}
	l.wires.CutAll(p.Controller, true)
	l.network.Cut(p.Controller, true)
	others := slices.DeleteFunc([]string{"n1", "n2", "n3"}, func(name string) bool { return name == p.Controller })
	eventually.Holds(t, "another node keeps the promise", func() bool {
		var out, messages strings.Builder
		return run(t.Context(), []string{"qos", "show", "--cluster", "--state-dir", l.nodes[others[0]].dir}, cli.Console{Out: &out, Err: &messages}) == cli.ExitOK &&
			!strings.Contains(out.String(), "controller  node "+p.Controller)
	})
	held(others...)
	eventually.Holds(t, "the node that is cut off deals its own part alone", func() bool {
		alone := l.promises(p.Controller)
		return len(alone.Silent) == 2 && len(alone.Promises) == 1 && alone.Promises[0].Nodes[0].Limit < 0.34
	})
	l.wires.CutAll(p.Controller, false)
	l.network.Cut(p.Controller, false)
	eventually.Holds(t, "all nodes have a part again", func() bool {
		now := l.promises(others[0])
		return len(now.Nodes) == 3 && len(now.Promises) == 1 && len(now.Promises[0].Nodes) == 3
	})
	held("n1", "n2", "n3")
	close(stop)
	load.Wait()
}
