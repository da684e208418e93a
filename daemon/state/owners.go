package state

import (
	"lunar/backstore"
	"lunar/conf"
)

// Owners are configured volumes, by the stores that are recorded of them.
type Owners map[ownerKey][]owner

// ownerKey is the same for identities that may be the same.
type ownerKey struct {
	inode  uint64
	device string
}

type owner struct {
	volume string
	store  backstore.Identity
}

func keyOfOwner(id backstore.Identity) ownerKey { return ownerKey{id.Inode, id.Device} }

// RecordedOwners are the volumes that have a record. One that cannot be read is told of when
// its volume is placed.
func RecordedOwners(volumes []conf.Volume, stateDir string) Owners {
	all := Owners{}
	for i := range volumes {
		name := volumes[i].Name
		if r, err := RecordOf(stateDir, name).Peek(); err == nil && r != nil && r.Path != "" {
			key := keyOfOwner(r.Identity)
			all[key] = append(all[key], owner{name, r.Identity})
		}
	}
	return all
}

// Of names a volume other than the given one that has a store on record; empty: there is none.
func (all Owners) Of(id backstore.Identity, not string) string {
	for _, o := range all[keyOfOwner(id)] {
		if o.volume != not && o.store.Same(id) {
			return o.volume
		}
	}
	return ""
}
