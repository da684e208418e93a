package daemon

import (
	"log/slog"

	"lunar/control"
)

// promiseWatch notices when reservations begin to be missed, and when they are met again.
type promiseWatch struct {
	before map[promiseKey]control.Promised
	missed map[promiseKey]bool
}

type promiseKey struct{ rule, name string }

// tell logs what has changed since it was called before.
func (w *promiseWatch) tell(log *slog.Logger, now []control.Promised) {
	before, missed := w.before, w.missed
	w.before, w.missed = map[promiseKey]control.Promised{}, map[promiseKey]bool{}
	for _, p := range now {
		k := promiseKey{p.Rule, p.Name}
		was, known := before[k]
		w.before[k], w.missed[k] = p, missed[k]
		attrs := []any{"rule", p.Rule, "of", p.Name, "reservation", p.Reservation, "periods_missed", p.Missed}
		switch {
		case !known:
		case p.Missed > was.Missed && !missed[k]:
			w.missed[k] = true
			log.Warn("a reservation is missed", attrs...)
		case p.Missed == was.Missed && p.Met > was.Met && missed[k]:
			w.missed[k] = false
			log.Info("a reservation is met again", attrs...)
		}
	}
}

// promised is how the reservations in force were kept; nothing without rules.
func (d *daemon) promised() []control.Promised {
	p := d.QoSPolicy()
	if p == nil || len(p.Rules()) == 0 {
		return nil
	}
	served := d.QoS("")
	return promises(p, &served)
}
