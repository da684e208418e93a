package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"lunar/internal/initiator"
)

// reservationKey is what the load registers with every unit that is to be fenced.
const reservationKey = 0x65766964656e6365

// fence registers the load's initiator with a unit, to be kept over a loss of power
// (APTPL), and reserves it: write exclusive, registrants only.
func (l *load) fence(u *unit) error {
	const register, reserve, registrantsOnly = 0x06, 0x01, 0x05
	for _, c := range []struct{ action, scopeType byte }{{register, 0}, {reserve, registrantsOnly}} {
		parameters := make([]byte, 24)
		if c.action == register { // and ignore existing key
			binary.BigEndian.PutUint64(parameters[8:], reservationKey)
			parameters[20] = 1
		} else {
			binary.BigEndian.PutUint64(parameters, reservationKey)
		}
		r, err := l.conn.Command([]byte{0x5f, c.action, c.scopeType, 0, 0, 0, 0, 0, 24, 0}, u.lun, parameters, 0)
		if err != nil {
			return err
		}
		if r.Status != initiator.StatusGood {
			return fmt.Errorf("%s: PERSISTENT RESERVE OUT: status %#x, sense % x", u.name, r.Status, r.Sense)
		}
	}
	return nil
}

// witness says what initiators are told of the units apart from their data: who they
// are, who is registered and who has reserved them.
func (l *load) witness() (string, error) {
	questions := []struct {
		name string
		cdb  []byte
		skip int // bytes that may change
	}{
		{"serial number", []byte{0x12, 1, 0x80, 0, 255, 0}, 0},
		{"identification", []byte{0x12, 1, 0x83, 0, 255, 0}, 0},
		{"keys", []byte{0x5e, 0, 0, 0, 0, 0, 0, 0, 255, 0}, 4}, // PRGENERATION
		{"reservation", []byte{0x5e, 1, 0, 0, 0, 0, 0, 0, 255, 0}, 4},
	}
	var text strings.Builder
	for _, u := range l.units {
		for _, q := range questions {
			r, err := l.conn.Command(q.cdb, u.lun, nil, 255)
			if err != nil {
				return "", err
			}
			if r.Status != initiator.StatusGood {
				return "", fmt.Errorf("%s: %s: status %#x, sense % x", u.name, q.name, r.Status, r.Sense)
			}
			fmt.Fprintf(&text, "%s: %s: % x\n", u.name, q.name, r.In[min(q.skip, len(r.In)):])
		}
	}
	return text.String(), nil
}

// trespass writes nothing as another initiator, which a fenced unit must refuse.
func trespass(portal string, u *unit) error {
	conn, err := initiator.Dial(context.Background(), portal, initiator.Options{Target: targetName, Initiator: initiatorName + "-stranger"})
	if err != nil {
		return err
	}
	defer conn.Close()
	for range 8 { // unit attentions
		r, err := conn.Command(cdb(0x8a, 0, 0, 0), u.lun, nil, 0)
		if err != nil {
			return err
		}
		if r.Status == initiator.StatusReservationConflict {
			return nil
		}
		if key, _, _ := r.SenseKey(); r.Status == initiator.StatusGood || key != 6 {
			return fmt.Errorf("%s: a write of a stranger ended with status %#x, expected RESERVATION CONFLICT", u.name, r.Status)
		}
	}
	return fmt.Errorf("%s: unit attentions have no end", u.name)
}
