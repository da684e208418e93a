package scsi

import (
	"encoding/binary"
	"sync/atomic"

	"lunar/backstore"
	"lunar/internal/refusals"
	"lunar/target/scsi/reservation"
	"lunar/target/scsi/sense"
)

// maxReservationList bounds the parameter list of PERSISTENT RESERVE OUT in
// bytes: more TransportIDs than that are more registrations than there may be.
const maxReservationList = SegmentSize

// reservationList is the length of that parameter list.
func reservationList(cdb *CDB) uint32 {
	return min(binary.BigEndian.Uint32(cdb[5:]), maxReservationList+1)
}

// persistentReserveOut is PERSISTENT RESERVE OUT (SPC-4 clause 6.16).
func persistentReserveOut(c *Command) {
	r := &reservation.Request{
		Action: reservation.Action(c.row.ServiceAction), From: c.Nexus.Identity(), Holder: c.Nexus.holder(),
		Scope: c.CDB[2] >> 4, Type: reservation.Type(c.CDB[2] & 0x0f),
	}
	lu := c.Nexus.LU
	if refusal := r.Parse(c.List(), lu.surroundings(c.Nexus)); refusal != nil {
		lu.refused(refusal)(c)
		return
	}
	c.register(func() outcome { return lu.applyRequest(c, r) })
}

// surroundings is what requests of n may name.
func (lu *LogicalUnit) surroundings(n *Nexus) *reservation.Surroundings {
	around := &reservation.Surroundings{Ports: n.ports(), MayPersist: lu.mayPersist()}
	lu.mu.Lock()
	defer lu.mu.Unlock()
	for other := range lu.mu.nexuses {
		around.Initiators = append(around.Initiators, other.Initiator)
	}
	return around
}

// mayPersist reports whether reservations can outlive a loss of power.
func (lu *LogicalUnit) mayPersist() bool {
	return lu.config.SaveReservations != nil || lu.config.SaveHeritage != nil
}

// applyRequest is the registrar's part of a request. What the logical unit is to
// know after a loss of power is stable before anyone can see it.
func (lu *LogicalUnit) applyRequest(c *Command, r *reservation.Request) outcome {
	if lu.reservedByRESERVE() {
		return conflict
	}
	if lu.repeated(r) {
		return (*Command).Good
	}
	before := lu.reservations.Load()
	change, refusal := before.Apply(r)
	if refusal != nil {
		return lu.refused(refusal)
	}
	if change.Next == before {
		return (*Command).Good
	}
	var preempted []*Nexus
	err := lu.changeReservations(&change, latestOf(r), func() { preempted = lu.publish(&change) })
	if err != nil {
		return lu.unsaved("reservations cannot be saved: they stay as they were", err)
	}
	c.auditReservation(r, before, &change)
	for _, n := range preempted {
		lu.ClearACA(n)
	}
	if len(change.Abort) == 0 {
		return (*Command).Good
	}
	c.awaiting.Store(true)
	endTasks(c, preempted)
	return nil
}

// changeReservations makes a change stable before publish, which has mu, puts it into force. by is who
// has asked for it.
func (lu *LogicalUnit) changeReservations(change *reservation.Change, by Latest, publish func()) error {
	own := func() error {
		if lu.reservations.Load().Persist() || change.Next.Persist() {
			return lu.config.SaveReservations(change.Next)
		}
		return nil
	}
	owed := make([]Owed, len(change.Notices))
	for i, notice := range change.Notices {
		owed[i] = Owed{notice.Nexus, eventASC[notice.Event]}
	}
	return lu.lasting(own, func(h *Heritage) {
		h.Reservations, h.Latest, h.Owed = change.Next, by, owe(h.Owed, owed...)
	}, func() {
		lu.mu.latest, lu.mu.doubt = by, false
		if lu.config.SaveHeritage != nil {
			lu.mu.owed = owe(lu.mu.owed, owed...)
		}
		publish()
	})
}

// audited names the service actions that take something from others.
var audited = map[reservation.Action]string{
	reservation.Clear: "CLEAR", reservation.Preempt: "PREEMPT", reservation.PreemptAndAbort: "PREEMPT AND ABORT",
}

// auditReservation logs who has taken registrations and reservations from whom.
func (c *Command) auditReservation(r *reservation.Request, before *reservation.State, change *reservation.Change) {
	what, ok := audited[r.Action]
	if !ok || c.Nexus.Audit == nil {
		return
	}
	c.Nexus.Audit("persistent reservation", "volume", c.Nexus.LU.Name(), "action", what,
		"registrations", len(change.Next.Registrations()), "before", len(before.Registrations()), "told", len(change.Notices))
}

// publish puts a change into force for all commands that come from now on, and
// tells who has to be told. It returns the nexuses whose tasks are to end. The caller
// holds mu.
func (lu *LogicalUnit) publish(change *reservation.Change) []*Nexus {
	lu.reservations.Store(change.Next)
	lu.recognize()
	lu.restrictAll()
	var preempted []*Nexus
	for n := range lu.mu.nexuses {
		it := n.Identity()
		for _, notice := range change.Notices {
			if notice.Nexus == it {
				n.Attention(eventASC[notice.Event])
			}
		}
		for _, gone := range change.Abort {
			if gone == it {
				preempted = append(preempted, n)
			}
		}
	}
	return preempted
}

var eventASC = [...]sense.ASC{
	reservation.ReservationsPreempted:  sense.ASCReservationsPreempted,
	reservation.ReservationsReleased:   sense.ASCReservationsReleased,
	reservation.RegistrationsPreempted: sense.ASCRegistrationsPreempted,
}

// endTasks ends the tasks of the nexuses but c, and then c with GOOD: nothing
// more is done for those that are gone (SPC-4 clause 5.13.11.5).
func endTasks(c *Command, of []*Nexus) {
	var left atomic.Int32
	left.Store(int32(len(of)) + 1)
	done := func() {
		if left.Add(-1) == 0 {
			c.conclude((*Command).awaitParts)
		}
	}
	defer done()
	for _, n := range of {
		if n.EndTasks == nil {
			done()
			continue
		}
		n.EndTasks(c, done)
	}
}

// awaitParts ends the command when what copies are writing has been written.
// Copies on behalf of those that are gone may be tasks of other nexuses, or of none
// any more: their later parts see that they must not, as soon as they hold their
// extents.
func (c *Command) awaitParts() {
	lu := c.Nexus.LU
	if lu.copying.Load() == 0 {
		c.Good()
		return
	}
	s := c.carrier()
	s.lock.cover(exclusive, 0, lu.byteOff(lu.state.Load().Blocks))
	s.op.Off, s.op.Len, s.op.Data = 0, 0, nil
	c.step = (*Command).partsEnded
	s.launch(backstore.Read)
}

func (c *Command) partsEnded() {
	if c.at(c.head).state == done {
		c.Good()
	}
}

// Awaiting reports that the command waits for the end of tasks of other nexuses
// and does nothing else: who ends it must not wait for that in turn. A PREEMPT AND
// ABORT that the registrar still has is waited for: its reservations are saved and
// published whether it is aborted or not.
func (c *Command) Awaiting() bool { return c.awaiting.Load() }

// refused says how a command ends whose request is refused.
func (lu *LogicalUnit) refused(r *reservation.Refusal) outcome {
	switch r.Reason {
	case reservation.Conflict:
		return conflict
	case reservation.InvalidCDB:
		return failure(sense.InvalidFieldInCDB(r.Field, r.Bit))
	case reservation.InvalidList:
		return failure(sense.InvalidFieldInList(r.Field, r.Bit))
	case reservation.InvalidRelease:
		return failure(sense.InvalidRelease)
	case reservation.TooMany:
		lu.config.Refusals.Add(refusals.Registrations)
		return failure(sense.InsufficientRegistrationResources)
	}
	return failure(sense.ParameterListLengthError)
}
