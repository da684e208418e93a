package node

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"lunar/cluster"
	"lunar/cluster/hearing"
	"lunar/cluster/ownership"
)

// Tell has other nodes know something else of this one than Config.About and Config.Unable. What
// it is unable to open it does not claim from then on; what is open stays so. After an error it
// is told when the node has its next lease.
func (n *Node) Tell(ctx context.Context, about json.RawMessage, unable map[string]string) error {
	n.self.Store(&ownership.Node{Incarnation: n.config.Incarnation, About: about, Unable: unable})
	var lease cluster.Lease
	if err := n.do(func() { lease = n.lease }); err != nil || lease == nil {
		return err
	}
	return n.store(ctx, n.record(), lease)
}

// Resized tells the size that a volume which this node owns has got, in bytes: the owner's
// record is to have it.
func (n *Node) Resized(name string, size int64) error {
	return n.do(func() {
		if v := n.volumes[name]; v != nil {
			v.machine.Resized(size)
			v.news = true
		}
	})
}

// Says is what this node is to say with each beat of its links (link.Config.Says).
func (n *Node) Says() []byte { return n.ears.Says(*n.says.Load()) }

// fresh is how long ago a store has to have answered for others to be told that it does.
const fresh = 3 * time.Second

// mostSaid is how many volumes and stores are named in a beat at most: it has a bound. Nodes that
// are not named the rest do as without links.
const mostSaid = 200

// say notes what is so of this node's volumes, for its next beat.
func (n *Node) say() {
	w := hearing.Word{Stores: []string{}, Until: n.observer.View.Until, Answered: n.answered}
	silent := map[string]bool{}
	for name, v := range n.volumes {
		if v.machine.Without() {
			w.Without = append(w.Without, name)
		}
		store, since, last := v.Silent()
		silent[store] = silent[store] || !since.IsZero() || time.Since(last) > fresh
	}
	for store, is := range silent {
		if store != "" && !is {
			w.Stores = append(w.Stores, store)
		}
	}
	slices.Sort(w.Without)
	slices.Sort(w.Stores)
	w.Without, w.Stores = w.Without[:min(len(w.Without), mostSaid)], w.Stores[:min(len(w.Stores), mostSaid)]
	n.says.Store(&w)
}

// Hear has it looked at what links say. It does not wait: link.Links.Watch may call it.
func (n *Node) Hear(string) {
	go n.post(func() { n.all = true })
}
