package target

import (
	"cmp"
	"slices"
	"sync"

	"lunar/scheduler"
	"lunar/target/scsi"
)

// devices are the backing devices of the logical units, as the scheduler knows
// them. Event threads ask for them when a session gets its LUNs.
type devices struct {
	mu     sync.Mutex
	byName map[string]*scheduler.Device
}

// of finds or makes the device that a logical unit is on.
func (d *devices) of(lu *scsi.LogicalUnit) *scheduler.Device {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byName == nil {
		d.byName = map[string]*scheduler.Device{}
	}
	found := d.byName[lu.Device()]
	if found == nil {
		found = &scheduler.Device{Name: lu.Device()}
		d.byName[found.Name] = found
	}
	return found
}

// forget drops a device that none of the logical units is on; nil if there is
// no such device, or one is.
func (d *devices) forget(name string, left func() []*scsi.LogicalUnit) *scheduler.Device {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.ContainsFunc(left(), func(lu *scsi.LogicalUnit) bool { return lu.Device() == name }) {
		return nil
	}
	found := d.byName[name]
	delete(d.byName, name)
	return found
}

// ofAll are the devices of logical units, each once, by name.
func (d *devices) ofAll(lus []*scsi.LogicalUnit) (all []*scheduler.Device) {
	for _, lu := range lus {
		if found := d.of(lu); !slices.Contains(all, found) {
			all = append(all, found)
		}
	}
	slices.SortFunc(all, func(a, b *scheduler.Device) int { return cmp.Compare(a.Name, b.Name) })
	return all
}
