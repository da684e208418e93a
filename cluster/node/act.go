package node

import (
	"context"
	"errors"
	"time"

	"lunar/cluster/ownership"
)

// step asks a volume's machine, and does what it wants.
func (n *Node) step(v *volume, now time.Time) {
	var todo []ownership.Action
	before := v.machine.State()
	store, since, _ := v.Silent()
	v.machine.Silent(store, since)
	v.machine.Refused(v.Refused)
	todo, v.next = v.machine.Step(&n.observer.View, now)
	for _, a := range todo {
		if a.Kind < ownership.Serve {
			n.begin(v, a)
		} else {
			n.answer(v, a, now)
		}
	}
	n.compare(v)
	if s := v.machine.State(); s != before {
		n.config.Logger.Debug("a volume's ownership goes on", "volume", v.name, "state", string(s))
	}
	if len(todo) > 0 && n.config.Changed != nil {
		n.config.Changed()
	}
}

// compare logs, once, that a volume is not configured as where it was open.
func (n *Node) compare(v *volume) {
	unlike := v.machine.Unlike()
	if r := n.observer.Owners()[v.name]; unlike && !v.unlike {
		n.config.Logger.Error("a volume is another disk here than on its last owner, and is not served: image and block-size have to be the same on all nodes",
			"volume", v.name, "owner", r.Node, "image", r.Image, "block-size", r.BlockSize)
	}
	v.unlike = unlike
}

// answer does what takes no time.
func (n *Node) answer(v *volume, a ownership.Action, now time.Time) {
	switch a.Kind {
	case ownership.Serve:
		if waited := now.Sub(v.gone); !v.gone.IsZero() {
			n.config.Logger.Info("this node owns a volume", "volume", v.name, "epoch", a.Epoch, "after", waited)
		}
		v.gone, v.trouble = time.Time{}, ""
		v.Serve(a.Epoch)
	case ownership.Hold:
		if v.gone.IsZero() {
			v.gone = now
		}
		v.Hold(a.Record)
	case ownership.Standby:
		v.gone, v.trouble = time.Time{}, ""
		v.Standby(a.Record)
	case ownership.Trust:
		v.Trust(a.Until)
	}
}

// begin does what takes time, on a goroutine of its own.
func (n *Node) begin(v *volume, a ownership.Action) {
	n.rest.Go(func() {
		ctx, cancel := context.WithTimeout(n.ctx, n.config.Hold)
		o := n.act(ctx, v, a)
		cancel()
		n.post(func() {
			n.troubled(v, a, o)
			v.machine.Ended(o, time.Now())
			v.news = true
		})
	})
}

func (n *Node) act(ctx context.Context, v *volume, a ownership.Action) (o ownership.Outcome) {
	switch a.Kind {
	case ownership.Connect:
		o.Address, o.Err = v.Connect(ctx, a.Instances)
	case ownership.Commit:
		o.Revision, o.Err = n.config.State.Commit(ctx, a.Conditions, a.Changes)
	case ownership.Fence:
		o.Err = v.Fence(ctx, a.Instances)
	case ownership.Open:
		o.Disk, o.Err = v.Open(ctx, Claim{Epoch: a.Epoch, Instance: a.Claimed(), Fenced: a.Instances})
		o.Late = errors.Is(o.Err, ErrLate)
	case ownership.Close:
		o.Err = v.Close(ctx)
	}
	return o
}

// doing names actions in messages.
var doing = map[ownership.Kind]string{
	ownership.Connect: "connect to Ceph", ownership.Commit: "change the owner's record", ownership.Fence: "fence earlier owners",
	ownership.Open: "open it", ownership.Close: "close it",
}

// troubled logs what has failed, once as long as nothing else does.
func (n *Node) troubled(v *volume, a ownership.Action, o ownership.Outcome) {
	log := n.config.Logger.With("volume", v.name, "epoch", a.Epoch)
	switch {
	case o.Err != nil && o.Err.Error() != v.trouble:
		v.trouble = o.Err.Error()
		log.Warn("a step of a volume's ownership has failed", "step", doing[a.Kind], "error", o.Err)
	case o.Err == nil && a.Kind == ownership.Fence:
		log.Info("earlier owners of a volume are fenced", "instances", a.Instances)
	case o.Err == nil && a.Kind == ownership.Close:
		log.Info("a volume was closed for its next owner")
	}
}
