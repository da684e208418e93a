package volumes

import (
	"errors"
	"fmt"
	"os"

	"lunar/backstore"
	"lunar/backstore/evidence"
	"lunar/cache/tier"
	"lunar/conf"
	"lunar/daemon/medium"
	"lunar/target/scsi"
)

// OpenVolume makes a logical unit of the volume, which is open from then on.
func (a *Set) OpenVolume(v *conf.Volume) (*scsi.LogicalUnit, error) {
	if v.Clustered() {
		lu, err := a.openShared(v)
		if err != nil {
			err = fmt.Errorf("volume %s: %w", v.Name, err)
		}
		return lu, err
	}
	seen, err := a.place(v)
	if err == nil && seen.Intention == evidence.Forget {
		err = a.forgetShield(v)
	}
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	failing, kept := &deferral{}, a.reservationFile(v)
	reserved, err := kept.Load()
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	layers, err := a.openLayers(v, seen, failing)
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	slot := backstore.NewSlot(layers.store)
	settings := SettingsOf(a.Conf, v)
	config := scsi.LUConfig{
		Name: v.Name, Store: slot, Device: medium.DeviceOf(v), BlockSize: v.BlockSize,
		Vendor: v.Vendor, Product: v.Product, Revision: v.Revision,
		Serial: SerialOf(v, a.Identity), NAA: a.naaOf(v), Designators: designatorsOf(v),
		WriteThrough: settings.WriteThrough, ReadOnly: settings.ReadOnly, Logger: a.Log,
		Access: ConfiguredAccess(a.Conf), ExplicitAccess: settings.ExplicitAccess, GroupNumbers: settings.GroupNumbers,
		Reservations: reserved, SaveReservations: keeping(a.Health, v.Name, "reservations", kept.save),
		PhysicalBlock: settings.PhysicalBlock, Removable: v.Removable,
		SanitizeRate: settings.SanitizeRate, SoftThreshold: settings.SoftThreshold,
		Refusals: a.Refusals,
	}
	err = a.remember(v, &config)
	var lu *scsi.LogicalUnit
	if err == nil {
		lu, err = scsi.NewLogicalUnit(config)
	}
	if err != nil {
		return nil, errors.Join(err, layers.store.Close())
	}
	failing.bind(lu)
	a.Open[v.Name] = &Volume{layers: layers, Unit: lu, Slot: slot}
	a.Health.Serves(v.Name, slot)
	return lu, nil
}

// openLayers opens what holds a volume's bytes, with all that is around it. seen is what
// was found at its path; of a volume that is opened anew, nothing. failing hears what the
// cache could not write.
func (a *Set) openLayers(v *conf.Volume, seen sighting, failing *deferral) (l layers, err error) {
	l.store, err = a.openBase(v, seen)
	base, inCache := l.store, backstore.Store(nil)
	if err == nil && v.Path != "" {
		l.file, _ = os.Stat(v.Path) // without, it is not opened anew
	}
	if err == nil {
		err = a.encipher(v, seen, &l)
	}
	if err == nil {
		l.store, err = a.cached(v, l.store, seen, failing)
		if errors.Is(err, tier.ErrChanged) {
			err = a.advise(v, fmt.Errorf("%s: %w", v.Path, err))
		}
	}
	if err == nil {
		if l.Cached, _ = l.store.(tier.Changeable); l.Cached != nil {
			inCache = l.store
		}
		l.store, err = a.shielded(v, l.store)
	}
	if err == nil {
		if x, ok := base.(*excessStore); ok {
			x.Serve()
		}
		a.Health.opened(v.Name, base, inCache)
	} else if a.Cache != nil {
		a.Cache.Dismiss(a.volumeID(v))
	}
	return l, err
}

// openBase opens what is below the layers.
func (a *Set) openBase(v *conf.Volume, seen sighting) (backstore.Store, error) {
	switch v.Type {
	case conf.MirrorVolume:
		return a.mirror(v)
	case conf.RBDVolume:
		return a.image(v)
	}
	if err := notImage(v); err != nil {
		return nil, err
	}
	intents, err := a.intents(v, seen)
	if err != nil {
		return nil, err
	}
	store, err := medium.Open(v, intents, a.Log, a.meeting(v, seen))
	if err = a.advise(v, err); err != nil {
		return nil, err
	}
	return a.excess(v, store)
}
