package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"

	"lunar/cluster/member"
	"lunar/conf"
	"lunar/daemon/machine"
	"lunar/daemon/medium"
	"lunar/daemon/state"
	"lunar/internal/cli"
)

// CheckOptions are what the command line says of a check.
type CheckOptions struct {
	File     string `arg:"" help:"The configuration file." type:"path"`
	StateDir string `type:"path" placeholder:"DIR" help:"State directory of the server whose cache memory is checked. Default: as for serve."`
}

// Check prints warnings, a summary and the size of the cache on this machine;
// problems are the error. It opens the volumes' files and devices for reading. It
// makes, changes and locks nothing, and takes no memory.
func (k CheckOptions) Check(c cli.Console) error {
	f, err := conf.Open(k.File)
	if err != nil {
		return err
	}
	joint, err := k.joint(f)
	if err != nil {
		return err
	}
	cfg, warnings, err := f.Draft(joint)
	if err != nil {
		return conf.Reported(err)
	}
	for _, w := range warnings {
		fmt.Fprintf(c.Err, "warning: %s\n", w)
	}
	dir, err := conf.StateDir(k.StateDir)
	if err == nil {
		cfg.InStateDir(dir)
		err = errors.Join(medium.StoredTwice(cfg), state.Trust(dir), checkPaths(cfg, dir), checkApplied(dir), checkMember(cfg, dir))
	} else {
		err = medium.StoredTwice(cfg)
	}
	if err != nil {
		return err
	}
	topology, err := machine.TopologyFor(&cfg.Server, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	notes, err := checkCache(cfg, topology, k.StateDir)
	if err != nil {
		return err
	}
	imageNotes, err := checkImages(cfg)
	if err != nil {
		return err
	}
	qosNotes, err := checkQoS(cfg)
	if err != nil {
		return err
	}
	cryptNotes, err := checkEncryption(cfg, k.StateDir)
	if err != nil {
		return err
	}
	congestionNotes, err := checkCongestion("/", cfg.Server.Congestion)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.Out, "%s: ok: %s, %s, %s\n", k.File,
		cli.Counted(len(cfg.Targets), "target"), cli.Counted(len(cfg.Volumes), "volume"), cli.Counted(len(warnings), "warning"))
	for _, note := range slices.Concat(notes, imageNotes, qosNotes, checkISER(cfg), cryptNotes, congestionNotes, checkAddresses(cfg), checkCHAP(cfg), checkAccess(cfg, dir), checkPrivileges(cfg, "/"), doubtful(cfg), checkIdentities(cfg), checkOwners(cfg)) {
		fmt.Fprintf(c.Out, "note: %s: %s\n", k.File, note)
	}
	return err
}

// checkMember refuses the name of another node or cluster than the state directory is a member of, with which
// this server does not start. Before init or join there is none.
func checkMember(cfg *conf.Config, dir string) error {
	c := cfg.Cluster
	if c == nil || c.Etcd.Mode != conf.EmbeddedEtcd {
		return nil
	}
	err := member.Dir(filepath.Join(dir, "etcd")).Is(c.Named, c.Node)
	if errors.Is(err, member.ErrNoMember) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// checkApplied finds out whether this version can read what another one has noted, without
// which it does not start. Who may not look there is told nothing.
func checkApplied(dir string) error {
	_, err := lastApplied(dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

// joint is the cluster's configuration that was in force here last, for a file that is checked;
// nil: none. Who may not look there is told nothing.
func (k CheckOptions) joint(f *conf.File) (*conf.Joint, error) {
	dir, err := conf.StateDir(k.StateDir)
	if err != nil {
		return nil, nil // without a state directory nothing is known
	}
	joint, err := state.Joint(dir, f)
	if errors.Is(err, fs.ErrPermission) {
		err = nil
	}
	return joint, err
}
