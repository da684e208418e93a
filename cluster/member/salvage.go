package member

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"lunar/cluster"
	"lunar/cluster/etcd"
)

// salvageDir has a copy of a member's data, and salvageFile its etcd's configuration, while they are
// read.
const (
	salvageDir  = "salvage"
	salvageFile = "salvage.json"
)

// Salvage is Backup of what a member has in its directory, which does not run, and whose cluster has
// no majority any more. It is what the member knew: another one with a higher revision knew more.
// The directory's data are not changed: etcd reads a copy of them, as the only member, and nobody
// else reaches it. It fails with ErrRuns and ErrNoMember.
func (k *Keeper) Salvage(ctx context.Context, file string) (keys int, at cluster.Revision, err error) {
	s, err := k.Dir.Settings()
	if err != nil {
		return 0, 0, err
	}
	unlock, err := k.Dir.lock()
	if err != nil {
		return 0, 0, err
	}
	defer unlock()
	copied := k.Dir.path(salvageDir)
	tidy := func() error { return errors.Join(os.RemoveAll(copied), os.RemoveAll(k.Dir.path(salvageFile))) }
	if err := tidy(); err != nil { // of who was killed
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, tidy()) }()
	if err := os.Mkdir(copied, 0o700); err != nil {
		return 0, 0, err
	}
	if err := os.CopyFS(copied, os.DirFS(k.Dir.path(dataDir))); err != nil {
		return 0, 0, fmt.Errorf("copy the member's data: %w", err)
	}
	client, err := k.Dir.alone(s)
	if err != nil {
		return 0, 0, err
	}
	settings, err := k.Dir.TLS()
	if err != nil {
		return 0, 0, err
	}
	settings.ServerName = s.Node.Address // which its certificate is for
	state, err := etcd.Open(etcd.Options{Members: []string{client}, TLS: settings})
	if err != nil {
		return 0, 0, err
	}
	defer state.Close()
	return k.salvage(ctx, state, s.Cluster, file)
}

// alone writes the configuration of an etcd that has the copy for itself, at addresses of this
// machine, and returns where clients reach it.
func (d Dir) alone(s Settings) (client string, err error) {
	var at [2]string
	for i := range at {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", err
		}
		defer l.Close() // when both are known
		at[i] = (&url.URL{Scheme: "https", Host: l.Addr().String()}).String()
	}
	settings := d.etcdSettings(s)
	settings["data-dir"], settings["force-new-cluster"] = d.path(salvageDir), true
	settings["listen-peer-urls"], settings["listen-client-urls"], settings["advertise-client-urls"] = at[0], at[1], at[1]
	return at[1], d.writeJSON(salvageFile, settings)
}

// salvage runs that etcd, and waits until it answers.
func (k *Keeper) salvage(ctx context.Context, state *etcd.State, name, file string) (keys int, at cluster.Revision, err error) {
	ctx, end := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- k.runEtcd(ctx, salvageFile) }()
	defer func() {
		end()
		<-ended
	}()
	for {
		if keys, at, err = Backup(ctx, state, name, file); err == nil {
			return keys, at, nil
		}
		select {
		case was := <-ended:
			ended <- nil
			return 0, 0, fmt.Errorf("etcd has ended, and could not read the copy of the member's data (%w)", was)
		case <-ctx.Done():
			return 0, 0, errors.Join(ctx.Err(), err)
		case <-time.After(soonest):
		}
	}
}
