package offline

import (
	"context"
	"fmt"
	"slices"

	"lunar/backstore"
	"lunar/backstore/evidence"
	"lunar/conf"
	"lunar/control"
	"lunar/daemon/state"
)

// Refused is a volume that a start has refused.
type Refused struct {
	Config   string `short:"c" type:"path" placeholder:"FILE" help:"Configuration file of the server."`
	StateDir string `type:"path" placeholder:"DIR" help:"State directory of the server. Default: as for serve."`
	Socket   string `type:"path" placeholder:"PATH" help:"Control socket of the server, if it runs. Default: control.sock in the state directory."`
	Volume   string `arg:"" help:"Name of the volume."`
}

// Adopt notes that what is at the volume's path now is the volume.
func (k Refused) Adopt(ctx context.Context) (backstore.Found, error) {
	return k.say(ctx, evidence.Adopt)
}

// Forget notes that the volume begins with what is at its path now.
func (k Refused) Forget(ctx context.Context) (backstore.Found, error) {
	return k.say(ctx, evidence.Forget)
}

// say notes an intention for what is at the volume's path now.
func (k Refused) say(ctx context.Context, do evidence.Intention) (found backstore.Found, err error) {
	dir, err := conf.StateDir(k.StateDir)
	if err == nil && state.Unused(dir) {
		err = fmt.Errorf("state directory %s: no server has used it: --state-dir names the one of the server", dir)
	}
	if err == nil {
		err = state.Make(dir)
	}
	if err != nil {
		return found, err
	}
	socket := control.Find(dir, k.StateDir == "", k.Socket)
	held, err := state.Take(dir)
	if err != nil && !control.Runs(socket) { // one that runs is asked below, and leaves alone what it does not serve
		return found, err
	}
	defer held.Release()
	cfg, err := k.configuration(dir)
	if err != nil {
		return found, conf.Reported(err)
	}
	v := cfg.Volume(k.Volume)
	switch {
	case v == nil && k.Config == "":
		return found, fmt.Errorf("found no volume %s in the built-in configuration: -c names the file of the server", k.Volume)
	case v == nil:
		return found, fmt.Errorf("found no volume %s in the configuration", k.Volume)
	case v.Path == "":
		return found, fmt.Errorf("volume %s: found type %s, which keeps nothing", k.Volume, v.Type)
	case servedNow(ctx, socket, k.Volume):
		return found, fmt.Errorf("volume %s is being served: this is for one that a start, or lunar apply, has refused", k.Volume)
	}
	return state.Intend(dir, v, do)
}

// servedNow asks the server at a control socket, if one runs.
func servedNow(ctx context.Context, socket, volume string) bool {
	api, err := control.Dial(socket)
	if err != nil {
		return false
	}
	defer api.Close()
	status, err := api.Status(ctx)
	return err == nil && slices.ContainsFunc(status.Volumes, func(v control.Volume) bool { return v.Name == volume })
}

// configuration is the server's.
func (k Refused) configuration(dir string) (cfg *conf.Config, err error) {
	if k.Config != "" {
		return load(k.Config, dir)
	}
	if cfg, err = conf.Default(dir, nil); err == nil {
		cfg.InStateDir(dir)
	}
	return cfg, err
}

// load reads the configuration of a server that does not run, with what its cluster has.
func load(file, dir string) (cfg *conf.Config, err error) {
	f, err := conf.Open(file)
	if err != nil {
		return nil, err
	}
	joint, err := state.Joint(dir, f)
	if err != nil {
		return nil, err
	}
	if cfg, _, err = f.Parse(joint); err == nil {
		cfg.InStateDir(dir)
	}
	return cfg, err
}
