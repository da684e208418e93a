package scsi

import (
	"errors"

	"lunar/target/scsi/reservation"
	"lunar/target/scsi/sense"
)

// heritage is what the logical unit would leave now. The caller holds mu.
func (lu *LogicalUnit) heritage() *Heritage {
	s := lu.state.Load()
	return &Heritage{
		Reservations: lu.reservations.Load(), Latest: lu.mu.latest, Reserved: lu.mu.reserved, Owed: lu.mu.owed,
		Identifying: *lu.identifying.Load(), Modes: &s.Values, Sanitizing: s.Sanitize.note(),
	}
}

// lasting makes a change of what outlives the server, or a loss of power: it is stable
// before anyone can see it. Of a logical unit that is this server's alone, own makes it
// stable (nil: it needs not be); of another one, what change makes of the heritage is saved.
// take then puts the change into force, and has mu. After an error nothing has changed here.
// The registrar alone calls it.
func (lu *LogicalUnit) lasting(own func() error, change func(*Heritage), take func()) error {
	if lu.config.SaveHeritage == nil {
		if own != nil {
			if err := own(); err != nil {
				return err
			}
		}
		lu.mu.Lock()
		defer lu.mu.Unlock()
		take()
		return nil
	}
	lu.mu.Lock()
	next, tenure, serves := lu.heritage(), lu.mu.tenure, lu.mu.serves
	lu.mu.Unlock()
	if !serves {
		return ErrElsewhere
	}
	change(next)
	if err := lu.config.SaveHeritage(next); err != nil {
		return err
	}
	lu.mu.Lock()
	defer lu.mu.Unlock()
	if lu.mu.tenure != tenure {
		return ErrElsewhere // whoever serves now has read it
	}
	take()
	return nil
}

// unsaved says how a command ends whose change could not be made stable.
func (lu *LogicalUnit) unsaved(message string, err error) outcome {
	switch {
	case errors.Is(err, ErrBusy):
		return func(c *Command) { c.FailStatus(Busy) }
	case errors.Is(err, ErrElsewhere):
		return failure(sense.InTransition)
	case errors.Is(err, ErrTooLarge):
		return lu.refused(&reservation.Refusal{Reason: reservation.TooMany})
	}
	lu.config.Logger.Error(message, "volume", lu.Name(), "err", err)
	return failure(sense.InternalTargetFailure)
}

// resave has the registrar save what has changed without being saved first: what ends with a
// nexus or a reset needs not outlive the server, but must not come back with the next one
// for ever. If that fails, the next change does it.
func (lu *LogicalUnit) resave() {
	if lu.config.SaveHeritage == nil {
		return
	}
	lu.registrar.do(func() { _ = lu.lasting(nil, func(*Heritage) {}, func() {}) })
}
