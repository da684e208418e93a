package daemon

import (
	"cmp"
	"fmt"
	"slices"

	"lunar/control"
	"lunar/target/scsi"
	"lunar/target/scsi/reservation"
)

// Reservations implements server.Source.
func (s *source) Reservations() control.Reservations {
	out := control.Reservations{Volumes: []control.VolumeReservations{}}
	for _, lu := range s.daemon.LogicalUnits() {
		state, reserved := lu.Reservations()
		one := reservationsOf(lu, state, reserved)
		if shared := s.daemon.SharedOf(lu.Name()); shared != nil {
			one.Node, one.Elsewhere = shared.Owner(), !lu.Serves()
		}
		out.Volumes = append(out.Volumes, one)
	}
	slices.SortFunc(out.Volumes, func(a, b control.VolumeReservations) int { return cmp.Compare(a.Volume, b.Volume) })
	return out
}

func reservationsOf(lu *scsi.LogicalUnit, s *reservation.State, reserved reservation.Nexus) control.VolumeReservations {
	out := control.VolumeReservations{
		Volume: lu.Name(), Type: s.Type().String(), Generation: s.Generation(), Persistent: s.Persist(),
		Registrations: []control.Registration{}, Reserve: reserved.Initiator,
	}
	for _, r := range s.Registrations() {
		out.Registrations = append(out.Registrations, control.Registration{
			Initiator: r.Initiator, Target: r.Target, Group: int(r.Port), Key: fmt.Sprintf("0x%016x", r.Key), Holder: s.Holds(r.Nexus),
		})
	}
	return out
}

// ClearReservations implements server.Source.
func (s *source) ClearReservations(volume string) (control.VolumeReservations, error) {
	units := s.daemon.LogicalUnits()
	i := slices.IndexFunc(units, func(lu *scsi.LogicalUnit) bool { return lu.Name() == volume })
	if i < 0 {
		return control.VolumeReservations{}, &control.Refusal{
			What: "nothing was changed", Reasons: []control.Reason{{Text: fmt.Sprintf("found no volume %q, expected one of the configuration", volume)}},
		}
	}
	if shared := s.daemon.SharedOf(volume); shared != nil && !units[i].Serves() {
		return control.VolumeReservations{}, &control.Refusal{
			What: "nothing was changed", State: true, Reasons: []control.Reason{{Text: elsewhere(volume, shared.Owner())}},
		}
	}
	before, reserved, err := units[i].ClearReservations()
	if err != nil {
		return control.VolumeReservations{}, fmt.Errorf("the reservations of volume %s stay: %w", volume, err)
	}
	was := reservationsOf(units[i], before, reserved)
	s.changes.log.Warn("an administrator has cleared the reservations of a volume: hosts that were fenced off may write again",
		"volume", volume, "type", was.Type, "registrations", len(was.Registrations), "reserve", was.Reserve)
	return was, nil
}

// elsewhere says where the reservations of a volume are known.
func elsewhere(volume, owner string) string {
	if owner == "" {
		return fmt.Sprintf("it is not decided which node serves volume %s (lunar cluster status)", volume)
	}
	return fmt.Sprintf("found that node %s serves volume %s: ask that one (lunar reservations clear %s --yes)", owner, volume, volume)
}
