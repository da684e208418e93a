package target

import (
	"log/slog"
	"sync/atomic"

	"lunar/internal/evloop"
	"lunar/internal/loglimit"
	"lunar/internal/refusals"
	"lunar/internal/waits"
	"lunar/target/scsi"
)

// node is what sessions ask of the target node that they are of, which is the Server:
// the seam between what belongs to event threads and what control goroutines do. All of
// it may be called on any thread, and none of it waits.
type node interface {
	// inForce are the settings of now, other than those that a session logged in with.
	inForce() *Settings
	// logger is the server's log, lines the one for what peers bring about.
	logger() *slog.Logger
	lines() *loglimit.Journal
	// refuse counts a refusal.
	refuse(refusals.Reason)
	// retention is the count of bytes that lost connections keep.
	retention() *atomic.Int64

	// sender is the loop of one of a NUMA node's event threads, nil if it has none.
	sender(node, choice int) *evloop.Loop
	// homeOf is the event thread for a session that mostly uses a logical unit: now, if
	// that is of the unit's group.
	homeOf(lu *scsi.LogicalUnit, from origin, now *thread) *thread

	// sessionEnded follows the end of a session, seesLess that LUNs have gone from its
	// view, what of them was counted.
	sessionEnded(*Session)
	seesLess(n *Session, next *view, gone []*lun)
	// sessions are all that there are, sharing those that see one of the units.
	sessions() []*Session
	sharing(self *Session, units []*scsi.LogicalUnit) []*Session
	// closeSessions ends the sessions of a target, endCopies the copies that use units.
	closeSessions(t *Target, why error)
	endCopies(units []*scsi.LogicalUnit, w *waits.Waiter)
	// endRemote ends the tasks of units that other servers have relayed.
	endRemote(units []*scsi.LogicalUnit, w *waits.Waiter)
	// use keeps a logical unit from being closed until release. It is false when that
	// has begun.
	use(*scsi.LogicalUnit) bool
	release([]*scsi.LogicalUnit)

	// elsewhere are the portal groups of other servers that lead to a target.
	elsewhere(target string) []Elsewhere

	// directoryChanges counts what answers to SendTargets depend on; ask has one made.
	directoryChanges() uint64
	ask(n *Session, value string, then func(told))
}
