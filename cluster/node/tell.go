package node

import (
	"context"
	"encoding/json"

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

// say notes what is so of this node's volumes, for its next beat.
func (n *Node) say() {
	var without []string
	stores := hearing.Stores{}
	for name, v := range n.volumes {
		if v.machine.Without() {
			without = append(without, name)
		}
		stores.Note(v.Silent())
	}
	w := hearing.NewWord(without, stores)
	w.Until, w.Answered = n.observer.View.Until, n.answered
	n.says.Store(&w)
}

// Hear has it looked at what links say. It does not wait: link.Links.Watch may call it.
func (n *Node) Hear(string) {
	go n.post(func() { n.all = true })
}
