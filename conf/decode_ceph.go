package conf

import (
	"regexp"
	"strings"
)

// What a cluster has unless it says otherwise.
const (
	defaultCephConfig = "/etc/ceph/ceph.conf"
	defaultCephUser   = "lunar"
)

const wantImage = "pool/image or pool/namespace/image, such as rbd/db"

// imageName leaves out what Ceph has a meaning for: snapshots behind @.
var imageName = regexp.MustCompile(`^[^/@\s]{1,127}/([^/@\s]{1,127}/)?[^/@\s]{1,95}$`)

var cephUserName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// cephUser accepts a name without "client.". The value of one that does not fit may be a
// key that stands at the wrong place, and is not told.
func cephUser(to *string) setter {
	return func(d *decoder, n node) {
		name, ok := n.scalar()
		if !ok || !cephUserName.MatchString(name) || strings.HasPrefix(name, "client.") {
			d.fail(n.path, "something else", `the name of a user of the cluster without "client.", such as lunar`)
			return
		}
		*to = name
	}
}

func (d *decoder) ceph(n node, c *Config) {
	d.named(n, naming{objectName.MatchString, wantObjectName, aMappingOrNothing}, func(name string, n node) {
		k := CephCluster{Name: name, Config: defaultCephConfig, User: defaultCephUser}
		d.mapping(n, fields{
			"config":       absolutePath(&k.Config),
			"user":         cephUser(&k.User),
			"keyring-file": absolutePath(&k.KeyringFile),
		})
		c.Ceph = append(c.Ceph, k)
	})
}

// validateCeph looks up the clusters of volumes, and refuses an image that two have.
func (d *decoder) validateCeph(c *Config, clusters *names) {
	images := map[string]map[string]string{} // of each cluster
	for i := range c.Volumes {
		v := &c.Volumes[i]
		if v.Type != RBDVolume {
			continue
		}
		path := "volumes." + v.Name
		clusters.check(d, path+".ceph", v.Ceph)
		if images[v.Ceph] == nil {
			images[v.Ceph] = map[string]string{}
		}
		if v.Image != "" {
			d.once(images[v.Ceph], path+".image", v.Image, v.Name)
		}
	}
}
