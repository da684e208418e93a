package target

import (
	"lunar/backstore"
	"lunar/internal/evloop"
	"lunar/internal/waits"
	"lunar/scheduler"
	"lunar/target/scsi"
	"lunar/target/scsi/relay"
	"lunar/target/scsi/sense"
)

// remoteNexus is an I_T_L nexus whose session is at another server. But for what does not change
// it belongs to its event thread.
type remoteNexus struct {
	node   node
	all    *remotes // with this one
	peer   RelayPeer
	key    remoteKey
	nexus  *scsi.Nexus
	thread *thread
	holder holderKey
	flow   scheduler.Flow // as it is where the session is
	again  bool           // the other server has told of it before

	lane    backstore.Lane // nil: it is not open
	tasks   map[uint64]*remoteTask
	ending  []func() // follow its end; nil: it does not end
	over    bool
	follows follows
	quota
}

// is reports whether it is the nexus of a message by another number.
func (n *remoteNexus) is(m *relay.Begin, lu *scsi.LogicalUnit) bool {
	o := n.nexus
	return o.LU == lu && o.LUN == m.LUN && o.Initiator == m.Initiator && o.Target == m.Target && o.TargetTag == m.Tag
}

// queue is one of the gate for what is copied here.
func (n *remoteNexus) queue() *scheduler.Queue {
	g := n.thread.gate
	return g.Open(n.flow, n.thread.qos.devices.of(n.nexus.LU), g.loop.Now())
}

// post runs f on the nexus's thread, behind what has come for it before. With a nil nexus
// nothing happens.
func (n *remoteNexus) post(f func(n *remoteNexus)) {
	if n == nil {
		return
	}
	n.thread.loop.Post(evloop.Func(func() { f(n) }))
}

// open begins on the thread.
func (n *remoteNexus) open() {
	lane, err := n.thread.lane(n.nexus.LU)
	if err != nil {
		n.node.logger().Error("no way to a volume, of which another node relays commands", "volume", n.nexus.LU.Name(), "node", n.key.node, "error", err)
		n.over = true
		n.forget()
		return
	}
	n.lane = lane
	n.thread.quotas.open(&n.quota, n.holder)
	if n.again { // what was between is not known
		n.nexus.LU.Doubt(n.nexus)
		n.nexus.Attention(sense.ASCNexusLoss)
	}
	n.nexus.LU.Attach(n.nexus)
}

// forget makes it unknown.
func (n *remoteNexus) forget() {
	r := n.all
	r.mu.Lock()
	if r.all[n.key] == n {
		delete(r.all, n.key)
	}
	r.mu.Unlock()
	n.node.release([]*scsi.LogicalUnit{n.nexus.LU})
}

// drop ends the nexus with its tasks, and calls then when nothing of it is left.
func (n *remoteNexus) drop(then func()) {
	if n == nil {
		then()
		return
	}
	n.post(func(n *remoteNexus) {
		if n.over {
			then()
			return
		}
		n.ending = append(n.ending, then)
		n.abortAll(nil, func(t *remoteTask) bool {
			if t.outcome = relay.Cut; t.cmd.Held() { // it has not begun
				t.outcome = relay.NotHere
			}
			return true
		})
		n.endIfIdle()
	})
}

// endIfIdle ends a nexus that is to end and has no tasks left.
func (n *remoteNexus) endIfIdle() {
	if len(n.ending) == 0 || len(n.tasks) > 0 || n.over {
		return
	}
	n.over = true
	n.nexus.LU.Detach(n.nexus)
	n.thread.quotas.close(&n.quota, n.holder)
	n.forget()
	for _, then := range n.ending {
		then()
	}
	n.ending = nil
}

// cut ends all tasks, since the other server does not know what has become of them, and calls
// then.
func (n *remoteNexus) cut(then func()) {
	w := waits.New(then)
	n.post(func(n *remoteNexus) {
		n.nexus.LU.Doubt(n.nexus)
		n.abortAll(w, func(t *remoteTask) bool { t.outcome = relay.Cut; return true })
		w.Done()
	})
}

// abortAll ends the tasks that match, for whose ends w waits.
func (n *remoteNexus) abortAll(w *waits.Waiter, match func(*remoteTask) bool) {
	for _, t := range n.tasks { // tasks that end meanwhile leave the map
		if match(t) {
			w.Ends(&t.awaitedBy, t.cmd.Awaiting())
			t.abort()
		}
	}
}

// abortTask ends a task, and answers whether there is one: it may have ended, or not have come yet.
func (n *remoteNexus) abortTask(number uint64, answer func(...[]byte)) {
	if n == nil {
		answerOutcome(answer, relay.NoNexus)
		return
	}
	n.post(func(n *remoteNexus) {
		t := n.tasks[number]
		if t == nil {
			answerOutcome(answer, relay.NotHere)
			return
		}
		t.abort()
		answerOutcome(answer, relay.Done)
	})
}

// endTasks is scsi.Nexus.EndTasks.
func (n *remoteNexus) endTasks(except *scsi.Command, done func()) {
	w := waits.New(done)
	n.post(func(n *remoteNexus) {
		n.abortAll(w, func(t *remoteTask) bool { return &t.cmd != except })
		w.Done()
	})
}

// awaitTasks is scsi.Nexus.AwaitTasks.
func (n *remoteNexus) awaitTasks(match func(*scsi.Command) bool, done func()) {
	w := waits.New(done)
	n.post(func(n *remoteNexus) {
		for _, t := range n.tasks {
			if match(&t.cmd) {
				w.Awaits(&t.awaitedBy)
			}
		}
		w.Done()
	})
}

// audit logs what the initiator has changed for others.
func (n *remoteNexus) audit(what string, args ...any) {
	n.node.logger().Info(what, append([]any{"initiator", n.nexus.Initiator, "target", n.nexus.Target, "node", n.key.node}, args...)...)
}
