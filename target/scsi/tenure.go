package scsi

import "lunar/target/scsi/reservation"

// Succeed has the logical unit be served by this server from now on, with what earlier ones
// have left; nil: nothing. Settle comes after it.
func (lu *LogicalUnit) Succeed(left *Heritage) {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	lu.changeTenure(true, left)
	for n := range lu.mu.nexuses {
		lu.remind(n)
	}
	if left != nil && left.Sanitizing != nil {
		lu.config.Logger.Warn("a sanitize operation was not finished by the volume's last owner: the volume is of no use until SANITIZE succeeds", "volume", lu.Name())
	}
}

// Resign ends what Succeed began, and forgets what the next server knows better.
func (lu *LogicalUnit) Resign() {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	if lu.mu.serves {
		lu.changeTenure(false, nil)
	}
}

// Serves reports whether this server is the one that serves the logical unit.
func (lu *LogicalUnit) Serves() bool {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	return lu.mu.serves || !lu.config.Shared
}

// Tenure numbers the times in which this server serves a logical unit that several present; 0: it
// does not now.
func (lu *LogicalUnit) Tenure() uint64 {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	if !lu.mu.serves {
		return 0
	}
	return lu.mu.tenure
}

// changeTenure puts a heritage into force. The caller holds mu.
func (lu *LogicalUnit) changeTenure(serves bool, left *Heritage) {
	if left == nil {
		left = &Heritage{Reservations: new(reservation.State)}
	}
	lu.mu.serves = serves
	lu.mu.tenure++
	lu.mu.reserved, lu.mu.owed, lu.mu.told = left.Reserved, left.Owed, nil
	lu.mu.latest, lu.mu.doubt = left.Latest, true
	lu.reservations.Store(left.Reservations)
	lu.identifying.Store(&left.Identifying)
	before := lu.state.Load()
	s := *lu.defaultState(before)
	if m := left.Modes; m != nil {
		s.WriteCache = s.WriteCache && m.WriteCache
		s.SoftProtect, s.DescriptorSense, s.OwnTags = m.SoftProtect, m.DescriptorSense, m.OwnTags
	}
	s.Blocks, s.Sanitize = before.Blocks, interrupted(left.Sanitizing)
	lu.state.Store(&s)
	lu.recognize()
	lu.restrictAll()
}
