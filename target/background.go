package target

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"lunar/internal/buf"
	"lunar/internal/evloop"
	"lunar/internal/places"
	"lunar/internal/refusals"
	"lunar/internal/waits"
	"lunar/scheduler"
	"lunar/target/scsi"
)

// maxBackgrounds bounds the commands of one event thread that go on without
// an initiator. Who has half of them gets no more.
const maxBackgrounds = 16

// background is a command that goes on when its initiator has got its status,
// or has gone. It has memory of its own, so that it takes nobody's budget.
type background struct {
	cmd     scsi.Command
	holder  string // see scsi.Nexus
	thread  *thread
	pool    *buf.Pool
	log     *slog.Logger
	timer   evloop.Timer
	ended   bool
	node    node
	used    []*scsi.LogicalUnit // that are not closed before it has ended
	flow    scheduler.Flow      // whose use of which LUN it is
	payment strayPayment

	awaitedBy waits.List
}

// Background implements scsi.Port.
func (t *task) Background(cmd *scsi.Command, start func(*scsi.Command)) bool {
	if cmd.Nexus.LU == nil || !t.use(cmd.Nexus.LU) {
		return false
	}
	if !t.conn.thread.background(t.conn.session.node, cmd, t.used, t.conn.session.flow(t.lun.number), start) {
		return false // the task releases what it uses
	}
	t.used = nil
	return true
}

// background begins one in place of cmd, which passes on the units that it uses.
func (th *thread) background(node node, cmd *scsi.Command, used []*scsi.LogicalUnit, flow scheduler.Flow, start func(*scsi.Command)) bool {
	if th.ending {
		return false
	}
	mine := 0
	for b := range th.backgrounds {
		if b.holder == cmd.Nexus.Holder {
			mine++
		}
	}
	if !places.Fair(mine, len(th.backgrounds), maxBackgrounds) {
		node.refuse(refusals.Backgrounds)
		return false
	}
	pool, err := th.backgroundPool()
	if err != nil {
		node.logger().Error("no memory for a command in the background", "error", err)
		return false
	}
	b := &background{holder: cmd.Nexus.Holder, thread: th, pool: pool, log: node.logger(), node: node, used: used, flow: flow}
	b.cmd.Nexus, b.cmd.Lane, b.cmd.Port, b.cmd.CDB, b.cmd.CDBLength = cmd.Nexus, cmd.Lane, b, cmd.CDB, cmd.CDBLength
	if th.backgrounds == nil {
		th.backgrounds = make(map[*background]struct{})
	}
	th.backgrounds[b] = struct{}{}
	b.cmd.Adopt(cmd, start)
	return true
}

// maxSparePools bounds the pools that wait for the next command in the background: to map
// and touch one takes the event thread as long as some hundred commands.
const maxSparePools = 4

// backgroundPool returns memory for a command in the background.
func (th *thread) backgroundPool() (*buf.Pool, error) {
	last := len(th.sparePools) - 1
	if last < 0 {
		return buf.NewPool(scsi.MaxSegments*scsi.SegmentSize, th.loop.Memory())
	}
	pool := th.sparePools[last]
	th.sparePools = th.sparePools[:last]
	return pool, nil
}

// keepPool takes the memory back.
func (th *thread) keepPool(pool *buf.Pool) error {
	if pool.InUse() > 0 || len(th.sparePools) >= maxSparePools || th.ending {
		return pool.Close()
	}
	th.sparePools = append(th.sparePools, pool)
	return nil
}

// closePools gives back what is spare.
func (th *thread) closePools() (err error) {
	for _, pool := range th.sparePools {
		err = errors.Join(err, pool.Close())
	}
	th.sparePools = nil
	return err
}

// endBackgrounds ends all commands in the background, and calls then when nothing
// of them is under way any more.
func (th *thread) endBackgrounds(then func()) {
	th.awaitEnd = append(th.awaitEnd, then)
	for b := range th.backgrounds {
		b.abort()
	}
	th.left()
}

// endCopies ends the copies in the background that use one of the logical units.
func (th *thread) endCopies(units []*scsi.LogicalUnit, w *waits.Waiter) {
	for b := range th.backgrounds {
		if b.cmd.Copies() && meet(b.used, units) {
			w.Awaits(&b.awaitedBy)
			b.abort()
		}
	}
}

func (b *background) abort() {
	b.thread.loop.Disarm(&b.timer)
	if b.cmd.Abort() {
		b.end()
	}
}

// left calls those who wait for the end of all commands in the background.
func (th *thread) left() {
	if len(th.backgrounds) > 0 {
		return
	}
	waiting := th.awaitEnd
	th.awaitEnd = nil
	for _, then := range waiting {
		then()
	}
}

func (b *background) end() {
	if b.ended {
		return
	}
	b.ended = true
	b.payment.end()
	b.thread.loop.Disarm(&b.timer)
	delete(b.thread.backgrounds, b)
	b.node.release(b.used)
	if err := b.thread.keepPool(b.pool); err != nil {
		b.log.Error("memory of a command in the background", "error", err)
	}
	b.left()
}

// left tells those who have waited for the command's end.
func (b *background) left() {
	awaitedBy := b.awaitedBy
	b.awaitedBy = nil
	awaitedBy.Ended()
	b.thread.left()
}

// Alloc implements scsi.Port. There is as much memory as a command can have
// under way.
func (b *background) Alloc(_ *scsi.Command, n int) *buf.Ref { return b.pool.Get(n) }

// Affords implements scsi.Port: nothing is lent to what is not sent.
func (*background) Affords(*scsi.Command, int) bool { return false }

// Charge implements scsi.Port.
func (*background) Charge(*scsi.Command, *buf.Ref) {}

// SendDataIn implements scsi.Port: nobody waits for data.
func (b *background) SendDataIn(_ *scsi.Command, _ uint32, ref *buf.Ref, _ []byte, last bool) {
	releaseRef(ref)
	if last {
		b.end()
	}
}

// ReceiveDataOut implements scsi.Port. Commands in the background have all
// their data when they begin.
func (b *background) ReceiveDataOut(*scsi.Command, uint32, []byte) {
	panic("target: a command in the background asks for Data-Out")
}

// Reach implements scsi.Port: what a copy uses was found before.
func (*background) Reach(*scsi.Command, func(*scsi.Nexus) bool) (scsi.CSCD, bool) {
	return scsi.CSCD{}, false
}

// Turn implements scsi.Port.
func (b *background) Turn(*scsi.Command) int64 { return int64(b.thread.loop.Part()) }

// Within implements scsi.Port.
func (b *background) Within(_ *scsi.Command, n int64, work scsi.Task) bool {
	return b.thread.moves.take(n, work)
}

// Again implements scsi.Port.
func (b *background) Again(_ *scsi.Command, work scsi.Task) { b.thread.loop.Again(work) }

// Background implements scsi.Port.
func (*background) Background(*scsi.Command, func(*scsi.Command)) bool { return false }

// Wake implements scsi.Port.
func (b *background) Wake(_ *scsi.Command, t scsi.Task) {
	b.thread.loop.Post(evloop.Func(func() { b.run(t) }))
}

// Later runs t after d.
func (b *background) Later(d time.Duration, t scsi.Task) {
	b.timer.Fire = func() { b.run(t) }
	b.thread.loop.Arm(&b.timer, d)
}

func (b *background) run(t scsi.Task) {
	defer b.Contain(&b.cmd)
	t.Run()
}

// Contain implements scsi.Port: what a panic leaves behind is not used again.
func (b *background) Contain(*scsi.Command) {
	if r := recover(); r != nil {
		b.log.Error("panic in a command in the background", "reason", fmt.Sprint(r), "stack", string(debug.Stack()))
		b.ended = true
		b.payment.end()
		b.cmd.Discard()
		delete(b.thread.backgrounds, b)
		b.node.release(b.used)
		b.left()
	}
}

// Complete implements scsi.Port.
func (b *background) Complete(*scsi.Command) { b.end() }
