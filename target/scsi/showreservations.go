package scsi

import "lunar/target/scsi/reservation"

// Reservations returns the persistent reservations, and who holds RESERVE (zero:
// nobody).
func (lu *LogicalUnit) Reservations() (*reservation.State, reservation.Nexus) {
	lu.mu.Lock()
	defer lu.mu.Unlock()
	return lu.reservations.Load(), lu.mu.reserved
}

// ClearReservations ends all registrations, the persistent reservation and
// RESERVE, as an administrator does when nobody is left who could. It blocks
// until that is stable, and returns what there was. If there is an error,
// nothing was changed.
func (lu *LogicalUnit) ClearReservations() (*reservation.State, reservation.Nexus, error) {
	var before *reservation.State
	var reserved reservation.Nexus
	done := make(chan error, 1)
	lu.registrar.do(func() {
		before, reserved = lu.Reservations()
		change := before.Cleared()
		done <- lu.changeReservations(&change, Latest{}, func() {
			lu.dropReserve(lu.mu.reserved)
			lu.publish(&change)
		})
	})
	err := <-done
	return before, reserved, err
}
