package main

import (
	"context"
	"fmt"
	"slices"

	"lunar/backstore"
	"lunar/backstore/evidence"
	"lunar/conf"
	"lunar/internal/control"
)

// intending is a command that says what the store is that a start has refused.
type intending struct {
	Config   string `short:"c" type:"path" placeholder:"FILE" help:"Configuration file of the server."`
	StateDir string `type:"path" placeholder:"DIR" help:"State directory of the server. Default: as for serve."`
	Socket   string `type:"path" placeholder:"PATH" help:"Control socket of the server, if it runs. Default: control.sock in the state directory."`
	Volume   string `arg:"" help:"Name of the volume."`
}

type adoptCommand struct {
	intending `embed:""`
}

// Run says that what is at the volume's path is the volume.
func (k adoptCommand) Run(ctx context.Context, c console) error {
	found, err := k.say(ctx, evidence.Adopt)
	if err == nil {
		_, err = fmt.Fprintf(c.out, "At the next start, what is kept of volume %s goes to what is there now (%s, %d bytes), and that is served.\n", k.Volume, found.Identity, found.Size)
	}
	return err
}

type forgetCommand struct {
	intending `embed:""`
}

// Run says that the volume begins with what is at its path.
func (k forgetCommand) Run(ctx context.Context, c console) error {
	found, err := k.say(ctx, evidence.Forget)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("what is there now (%s, %d bytes) is served as it is", found.Identity, found.Size)
	if found.Missing {
		what = "a file is made if it is still missing"
	}
	_, err = fmt.Fprintf(c.out, "At the next start, what is kept of volume %s is given up, and %s.\n", k.Volume, what)
	return err
}

// say notes an intention for what is at the volume's path now.
func (k intending) say(ctx context.Context, do evidence.Intention) (found backstore.Found, err error) {
	dir, err := pathOfStateDir(k.StateDir)
	if err == nil && newStateDir(dir) {
		err = fmt.Errorf("state directory %s: no server has used it: --state-dir names the one of the server", dir)
	}
	if err == nil {
		err = makeStateDir(dir)
	}
	if err != nil {
		return found, err
	}
	socket := controlSocket(k.Socket, dir)
	held, err := claimStateDir(dir)
	if err != nil && !serverRuns(socket) { // one that runs is asked below, and leaves alone what it does not serve
		return found, err
	}
	defer held.release()
	cfg, _, err := serveCommand{Config: k.Config}.load(dir)
	if err != nil {
		return found, reported(err)
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
		return found, fmt.Errorf("volume %s is being served: this is for one that a start, or tgtd apply, has refused", k.Volume)
	}
	return note(dir, v, do)
}

func note(dir string, v *conf.Volume, do evidence.Intention) (backstore.Found, error) {
	p, err := lookAt(dir, v)
	if err != nil {
		return p.Found, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	if p.Found.Missing && do == evidence.Adopt {
		return p.Found, fmt.Errorf("volume %s: %s is missing: put the file there first, or say tgtd forget, and it begins with a new one", v.Name, p.Path)
	}
	if p.record == nil {
		p.record = &storeRecord{}
	}
	p.record.Intention = &intention{Do: do, Path: p.Path, Found: p.Found}
	return p.Found, recordFile(dir, v.Name).save(p.record)
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
