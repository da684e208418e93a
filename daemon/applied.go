package daemon

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"lunar/backstore"
	"lunar/backstore/evidence"
	"lunar/conf"
	"lunar/control"
	"lunar/daemon/medium"
	"lunar/daemon/state"
	"lunar/daemon/volumes"
	"lunar/internal/bytesize"
	"lunar/internal/cli"
	"lunar/internal/shell"
)

func appliedFile(stateDir string) state.File[applied] {
	return state.File[applied]{Marked: state.Marked{Kind: "applied", Dir: stateDir, Name: "applied.json"}}
}

// keepApplied notes what is in force, and warns if that cannot be done: a full disk
// does not stop the server. The caller holds the changes.
func (a *applier) keepApplied() (warnings []string) {
	if m := a.daemon.member; m != nil {
		m.keepJoint(a.dir)
	}
	cfg := a.daemon.config.Load()
	note := applied{File: a.serve.Config, Volumes: cfg.Volumes, Targets: cfg.Targets, PortalGroups: cfg.PortalGroups, Sizes: map[string]int64{}}
	for name, open := range a.daemon.assembly.Open {
		note.Sizes[name] = open.Slot.Info().Size
	}
	if err := appliedFile(a.dir).Save(&note); err != nil {
		const what = "the configuration that is in force could not be noted: the next start compares with an older one"
		a.log.Error(what, "err", err)
		return []string{fmt.Sprintf("%s: %v", what, err)}
	}
	return nil
}

// lastApplied is what was noted; nil: nothing.
func lastApplied(dir string) (*applied, error) {
	note := appliedFile(dir)
	last, err := note.Peek()
	if err != nil {
		return nil, fmt.Errorf("what was applied last: %w; put a copy back, or, if the configuration is right, %s", err, note.Without())
	}
	return last, nil
}

// known are the names of the volumes that are configured, or were when the server before
// ended.
func (c *compared) known(cfg *conf.Config) (names []string) {
	all := [][]conf.Volume{cfg.Volumes}
	if c.last != nil {
		all = append(all, c.last.Volumes)
	}
	for _, volumes := range all {
		for i := range volumes {
			names = append(names, volumes[i].Name)
		}
	}
	return names
}

// base is the configuration that a start is compared with: the one of the note, in
// which volumes are as they are to be that it does not know.
func (n *applied) base(cfg *conf.Config) *conf.Config {
	from := *cfg
	from.Volumes, from.Targets = slices.Clone(n.Volumes), n.Targets
	for _, v := range cfg.Volumes {
		if from.Volume(v.Name) == nil {
			from.Volumes = append(from.Volumes, v)
		}
	}
	if n.PortalGroups != nil {
		from.PortalGroups = n.PortalGroups
	}
	return &from
}

// offline are the facts of a server that does not run: how long the files of volumes are.
func offline(cfg *conf.Config) conf.Facts {
	f := conf.Facts{Stopped: true, Sizes: map[string]int64{}}
	for i := range cfg.Volumes {
		v := &cfg.Volumes[i]
		if info, err := os.Stat(v.Path); v.Path != "" && err == nil && info.Mode().IsRegular() {
			f.Sizes[v.Name] = info.Size()
		}
	}
	return f
}

// compare refuses a start that would destroy what the server before had, unless it is
// allowed, and cuts files that may be.
func (k Options) compare(cfg *conf.Config, dir string, member *membership, warn func(string)) (*compared, error) {
	out := &compared{member: member, allowed: conf.Allowed{Yes: k.Yes, Shrink: k.AllowShrink}, from: volumes.Source{Config: k.Config}, service: k.Service}
	last, err := lastApplied(dir)
	if err != nil {
		return nil, err
	}
	out.last = last
	if last == nil {
		last = &applied{}
	}
	impacts := conf.Impacts(last.base(cfg), cfg, offline(cfg))
	if k.Config == "" && last.File != "" {
		impacts = append([]conf.Impact{{Severity: conf.Destructive,
			What: fmt.Sprintf("it is the built-in one, and the server was last started with %s: all that it has would not be served", last.File)}}, impacts...)
	}
	judged := slices.DeleteFunc(slices.Clone(impacts), func(i conf.Impact) bool { return member.decided(i.Key) })
	if err := refusal("the configuration was not put into force, and nothing was changed", judged, out.allowed); err != nil {
		return nil, k.advised(err)
	}
	for i := range impacts {
		warn(impacts[i].String())
	}
	return out, k.cut(cfg, dir)
}

// advised adds the command that does it all the same.
func (k Options) advised(err error) error {
	var r *control.Refusal
	if !errors.As(err, &r) {
		return err
	}
	with, lines := k.Allowances, []string{r.What}
	for _, reason := range r.Reasons {
		with, _ = with.MoreFor(reason)
		lines = append(lines, reason.Text)
	}
	words := append([]string{"tgtd", "serve"}, shell.Flags([2]string{"--config", k.Config}, [2]string{"--state-dir", k.StateDir},
		[2]string{"--socket", k.Socket}, [2]string{"--listen", strings.Join(k.Listen, ",")})...)
	return &cli.ExitError{Status: cli.ExitDestructive, Err: errors.New(strings.Join(append(lines, "to do it all the same, once: "+shell.CommandLine(append(words, with.Flags()...)...)), "\n"))}
}

// cut shortens the files of volumes that may be.
func (k Options) cut(cfg *conf.Config, dir string) error {
	for _, name := range k.AllowShrink {
		v := cfg.Volume(name)
		if v == nil {
			return fmt.Errorf("--allow-shrink: found no volume %s in the configuration", name)
		}
		info, err := os.Stat(v.Path)
		if v.Type != conf.FileVolume || v.Size == 0 || err != nil || info.Size() <= int64(v.Size) {
			continue
		}
		if err := cutFile(v, dir); err != nil {
			return fmt.Errorf("volume %s: %w", name, err)
		}
	}
	return nil
}

// cutFile shortens the file of a volume, and before that what is recorded of it. It
// leaves alone what is not the volume's file, for which the start is refused, and what a
// server that did not end in order may have data for in the cache.
func cutFile(v *conf.Volume, dir string) error {
	seen, err := state.LookAt(dir, v)
	if err != nil {
		return err
	}
	if verdict, _ := evidence.Place(seen.Scene); verdict == evidence.Refuse {
		return nil
	}
	left, err := state.ReadSegmentNote(dir)
	if err != nil {
		return err
	}
	for _, path := range left.Volumes {
		if medium.Same(path, v.Path) {
			return errors.New("the last server did not end in order, and the cache may have data for it: start and stop once with its size of before, then cut it")
		}
	}
	store, err := backstore.OpenFile(backstore.FileConfig{Path: v.Path, BlockSize: v.BlockSize})
	if err != nil {
		return err
	}
	if r := seen.Record; r != nil && r.Size > int64(v.Size) {
		r.Size = int64(v.Size)
		err = state.RecordOf(dir, v.Name).Save(r)
	}
	if err == nil {
		err = backstore.Resize(store, int64(v.Size))
	}
	return errors.Join(err, store.Close())
}

// forgets refuses a configuration without a volume that the last one had, and of which
// the cache has data that its file or device does not have.
func (a *assembly) forgets(name string, bytes int64) error {
	if a.compared.last == nil || a.compared.allowed.Yes {
		return nil
	}
	last := conf.Config{Volumes: a.compared.last.Volumes}
	if last.Volume(name) == nil {
		return nil
	}
	return fmt.Errorf("volume %s: found %s of it in the cache that were acknowledged and are not in its file or device, and no cached volume %s in the configuration: configure it as it was; or start once with --yes, and the cache keeps them (lunar detach --discard loses them)", name, bytesize.Text(bytes), name)
}
