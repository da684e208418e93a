package main

import (
	"lunar/backstore"
	"lunar/conf"
)

// owners are configured volumes, by the stores that are recorded of them.
type owners map[ownerKey][]owner

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

// recordedOwners are the volumes that have a record. One that cannot be read is told of when
// its volume is placed.
func recordedOwners(volumes []conf.Volume, stateDir string) owners {
	all := owners{}
	for i := range volumes {
		name := volumes[i].Name
		if r, err := recordFile(stateDir, name).peek(); err == nil && r != nil && r.Path != "" {
			key := keyOfOwner(r.Identity)
			all[key] = append(all[key], owner{name, r.Identity})
		}
	}
	return all
}

// of names a volume other than the given one that has a store on record; empty: there is none.
func (all owners) of(id backstore.Identity, not string) string {
	for _, o := range all[keyOfOwner(id)] {
		if o.volume != not && o.store.Same(id) {
			return o.volume
		}
	}
	return ""
}
