package daemon

import (
	"fmt"

	"lunar/conf"
	"lunar/daemon/volumes"
)

// checkIdentities tells of volumes that have a serial number of the configuration and no
// identifier: theirs has to be the same on all servers of a cluster, of whatever age, and
// is therefore the one that initiators like least.
func checkIdentities(cfg *conf.Config) (notes []string) {
	for i := range cfg.Volumes {
		v := &cfg.Volumes[i]
		if v.Serial != "" && v.NAA == "" && v.Designators == nil {
			notes = append(notes, fmt.Sprintf("%s: serial without naa: Linux' multipath names such a disk by vendor, product and serial; for a volume that no initiator knows yet, add naa: %q",
				conf.Key("volumes", v.Name), volumes.SuggestedNAA(v)))
		}
	}
	return notes
}

// checkOwners tells of images that no other node of the cluster takes over.
func checkOwners(cfg *conf.Config) (notes []string) {
	for i := range cfg.Volumes {
		if v := &cfg.Volumes[i]; cfg.Cluster != nil && v.Type == conf.RBDVolume && !v.Clustered() {
			notes = append(notes, fmt.Sprintf("%s: an image without owners: node %s alone serves it, and its hosts lose it with the node; owners: [...] names the nodes that may", conf.Key("volumes", v.Name), cfg.Cluster.Node))
		}
	}
	return notes
}
