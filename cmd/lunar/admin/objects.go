package admin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lunar/conf"
	"lunar/conf/edit"
	"lunar/control"
	"lunar/internal/cli"
)

type exportCommand struct {
	asking `embed:""`
	Object []string `arg:"" optional:"" help:"Path of an object or a section, such as volumes.disk, targets or qos.rules.gold; repeatable. Default: everything."`
}

// Run prints the text that is running, or some objects of it, as a configuration file has
// them.
func (k exportCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		var running control.RunningConfig
		err := api.Get(ctx, control.ConfigPath, &running)
		text := []byte(running.Text)
		if err == nil && len(k.Object) > 0 {
			text, err = exported(text, k.Object)
		}
		if err == nil {
			_, err = c.Out.Write(text)
		}
		return err
	})
}

// exported are objects of a text, in a text of their own.
func exported(text []byte, objects []string) ([]byte, error) {
	all, err := edit.Parse(text)
	if err != nil {
		return nil, err
	}
	out := edit.Object{}
	for _, object := range objects {
		path := objectPath(all.Tree(), object)
		value, there := edit.Get(all.Tree(), path...)
		if !there {
			return nil, fmt.Errorf("found no %s in the running configuration", object)
		}
		if out, err = edit.Set(out, value, path...); err != nil {
			return nil, err
		}
	}
	none, err := edit.Parse(nil)
	if err == nil {
		none, err = none.Become(out)
	}
	if err != nil {
		return nil, err
	}
	return none.Text(), nil
}

// objectPath takes a path apart: names of objects may have dots.
func objectPath(tree edit.Object, path string) []string {
	section, rest, found := strings.Cut(path, ".")
	if !found {
		return []string{section}
	}
	steps := []string{section}
	if group, name, ok := strings.Cut(rest, "."); section == "qos" {
		if steps = append(steps, group); ok {
			steps = append(steps, name)
		}
		return steps
	}
	if before, after, ok := cutLast(rest, ".luns."); ok {
		if _, whole := edit.Get(tree, section, rest); !whole {
			return append(steps, before, "luns", after)
		}
	}
	return append(steps, rest)
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

type createFileCommand struct {
	asking             `embed:""`
	control.Allowances `embed:""`
	asynchronous       `embed:""`
	File               string `short:"f" required:"" type:"path" placeholder:"FILE" help:"File with the objects, as a configuration file has them (lunar export)."`
	Replace            bool   `help:"Objects of these names that there are become those of the file. Without it they are a reason to refuse all."`
	DryRun             bool   `short:"n" help:"Show the changes without making them. Exit status 3: one of them needs a permission."`
	Keep               string `enum:"file,running" default:"file" placeholder:"WHERE" help:"file: the objects are written to the configuration file as well. running: they last until the next start."`
}

// Run creates the objects of a file, all or none.
func (k createFileCommand) Run(ctx context.Context, c cli.Console) error {
	text, err := conf.ReadFile(k.File)
	if err != nil {
		return err
	}
	edits, err := k.edits(text)
	if err != nil {
		return fmt.Errorf("%s: %w", k.File, err)
	}
	return k.ask(func(api *control.Client) error {
		all := control.Changes{Edits: edits, Permissions: control.Permissions{DryRun: k.DryRun, Yes: k.Yes, AllowShrink: k.AllowShrink, Keep: k.Keep}}
		changed, finished, err := made(ctx, k.asynchronous, api, c,
			func() (control.Changed, error) { return api.Change(ctx, all) },
			func() (control.Job, error) { return api.StartChange(ctx, all) })
		if err != nil || !finished {
			return advisedBy(err, k.Allowances, k.command)
		}
		return concluded(c, k.File, &changed.Applied, k.Allowances, k.command)
	})
}

// edits are those that make the objects of a text.
func (k createFileCommand) edits(text []byte) (all []control.Edit, err error) {
	file, err := edit.Parse(text)
	if err != nil {
		return nil, err
	}
	add := func(value any, path ...string) {
		o, ok := value.(edit.Object)
		if !ok && value != nil {
			err = errors.Join(err, fmt.Errorf("%s: found no mapping, expected an object", conf.Key(path...)))
			return
		}
		e := control.Edit{Path: path, Set: control.Object(o)}
		if e.Set == nil {
			e.Set = control.Object{}
		}
		if !k.Replace {
			e.IfNoneMatch = "*"
		}
		all = append(all, e)
	}
	tree := file.Tree()
	for _, list := range [][]string{{"portal-groups"}, {"auth-groups"}, {"volumes"}, {"targets"}, {"qos", "groups"}, {"qos", "rules"}} {
		value, _ := edit.Get(tree, list...)
		objects := edit.Elements(list[len(list)-1], value)
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			add(objects[name], append(slices.Clone(list), name)...)
		}
	}
	for _, section := range []string{"server", "cache", "log", "discovery"} {
		if _, there := tree[section]; there {
			return nil, fmt.Errorf("%s: found a section of the server, expected objects with names: lunar apply takes a whole file", section)
		}
	}
	if len(all) == 0 && err == nil {
		err = errors.New("found no objects")
	}
	return all, err
}

func (k createFileCommand) command(with control.Allowances) string {
	args := []string{"--file", k.File}
	if k.Replace {
		args = append(args, "--replace")
	}
	return with.Command(k.StateDir, k.Socket, "create", args...)
}
