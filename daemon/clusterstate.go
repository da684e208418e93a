package daemon

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"lunar/cluster"
	"lunar/cluster/etcd"
	"lunar/cluster/member"
	"lunar/conf"
)

// openState reaches what the nodes of a cluster know together; tests have something of their
// own.
var openState = func(c *conf.Cluster, stateDir string, _ *slog.Logger) (cluster.State, error) {
	e := &c.Etcd
	if e.Mode == conf.EmbeddedEtcd {
		return member.Dir(filepath.Join(stateDir, "etcd")).Open(c.Named, c.Node, os.Stderr)
	}
	o := etcd.Options{Members: e.Endpoints}
	if e.CA != "" || e.Certificate != "" {
		var err error
		if o.TLS, err = etcd.Credentials(e.CA, e.Certificate, e.Key); err != nil {
			return nil, fmt.Errorf("etcd over TLS: %w", err)
		}
	}
	return etcd.Open(o)
}
