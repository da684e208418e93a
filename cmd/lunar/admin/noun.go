package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"lunar/conf"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

// named is the arguments of a command that name an object of the configuration.
type named interface{ at() control.Where }

type volumeName struct {
	Volume string `arg:"" help:"Name of the volume."`
}

func (n volumeName) at() control.Where { return control.VolumeAt(n.Volume) }

type targetName struct {
	Target string `arg:"" help:"iSCSI name of the target."`
}

func (n targetName) at() control.Where { return control.TargetAt(n.Target) }

type lunName struct {
	Target string `arg:"" help:"iSCSI name of the target."`
	LUN    string `arg:"" name:"lun" help:"Logical unit number."`
}

func (n lunName) at() control.Where { return control.LUNAt(n.Target, n.LUN) }

type portalName struct {
	Group string `arg:"" help:"Name of the portal group."`
}

func (n portalName) at() control.Where { return control.PortalGroupAt(n.Group) }

type authGroupName struct {
	Group string `arg:"" help:"Name of the auth-group."`
}

func (n authGroupName) at() control.Where { return control.AuthGroupAt(n.Group) }

type userName struct {
	Group string `arg:"" help:"Name of the auth-group."`
	User  string `arg:"" help:"CHAP name of the user."`
}

func (n userName) at() control.Where { return control.UserAt(n.Group, n.User) }

type ruleGroupName struct {
	Group string `arg:"" help:"Name of the group of initiators."`
}

func (n ruleGroupName) at() control.Where { return control.RuleGroupAt(n.Group) }

// showCommand shows one object.
type showCommand[P named] struct {
	asking `embed:""`
	output `embed:""`
	Place  P `embed:""`
}

// Run prints configuration and state of the object, for people as YAML.
func (k showCommand[P]) Run(ctx context.Context, c cli.Console) error {
	form, err := k.form()
	if err != nil {
		return err
	}
	return k.ask(func(api *control.Client) error {
		raw, err := api.Raw(ctx, string(k.Place.at()))
		if err != nil {
			return err
		}
		if form == asTable {
			form = asYAML
		}
		return document(c.Out, form, raw)
	})
}

// changing is how an object is changed.
type changing struct {
	asking             `embed:""`
	control.Allowances `embed:""`
	DryRun             bool `short:"n" help:"Show the changes without making them."`
	Temporary          bool `help:"The change lasts until the next start: the configuration file stays as it is."`
}

func (k *changing) permissions() control.Permissions {
	p := control.Permissions{DryRun: k.DryRun, Yes: k.Yes, AllowShrink: k.AllowShrink}
	if k.Temporary {
		p.Keep = control.KeepRunning
	}
	return p
}

// keyed is the keys and values of an object.
type keyed struct {
	Keys []string `arg:"" optional:"" name:"key=value" help:"Keys of the configuration and their values, as docs/configuration.md has them: size=10GiB, cache.max=1GiB, luns='{0: disk}'. An empty value takes the key away."`
	File string   `short:"f" type:"path" placeholder:"FILE" help:"Read keys and values in YAML from this file, - is standard input; those of the command line go before them."`
}

type createCommand[P named] struct {
	changing `embed:""`
	Place    P `embed:""`
	keyed    `embed:""`
}

// Run makes an object that is not there yet.
func (k createCommand[P]) Run(ctx context.Context, c cli.Console) error {
	object, err := k.object()
	if err != nil {
		return err
	}
	return k.create(ctx, c, object)
}

func (k createCommand[P]) create(ctx context.Context, c cli.Console, object control.Object) error {
	return k.change(c, func(api *control.Client) (control.Changed, error) {
		return api.Put(ctx, k.Place.at(), object, k.permissions(), control.Condition{New: true})
	})
}

type setCommand[P named] struct {
	changing `embed:""`
	Place    P `embed:""`
	keyed    `embed:""`
}

// Run changes some keys of an object.
func (k setCommand[P]) Run(ctx context.Context, c cli.Console) error {
	object, err := k.object()
	if err != nil {
		return err
	}
	return k.set(ctx, c, object)
}

func (k setCommand[P]) set(ctx context.Context, c cli.Console, object control.Object) error {
	if len(object) == 0 {
		return usage(errors.New("nothing to change: give KEY=VALUE, or -f FILE"))
	}
	return k.change(c, func(api *control.Client) (control.Changed, error) {
		return api.Patch(ctx, k.Place.at(), object, k.permissions(), control.Condition{Match: "*"})
	})
}

type deleteCommand[P named] struct {
	changing `embed:""`
	Place    P `embed:""`
}

// Run removes an object.
func (k deleteCommand[P]) Run(ctx context.Context, c cli.Console) error {
	return k.change(c, func(api *control.Client) (control.Changed, error) {
		return api.Delete(ctx, k.Place.at(), k.permissions(), control.Condition{})
	})
}

// change makes a change and tells what has come of it, and who was hit.
func (k *changing) change(c cli.Console, do func(*control.Client) (control.Changed, error)) error {
	return k.ask(func(api *control.Client) error {
		done, err := do(api)
		if err != nil {
			return advised(err, control.Allowances{}, func(more control.Allowances) string { return ", add " + strings.Join(more.Flags(), " ") })
		}
		tellChanged(c, &done)
		if more, some := lacking(control.Allowances{}, &done.Applied); some {
			return destructive("it would be refused; to do it, add %s", strings.Join(more.Flags(), " "))
		}
		return nil
	})
}

// tellChanged prints what has come of a change of one object.
func tellChanged(c cli.Console, done *control.Changed) {
	tellWarnings(c, &done.Applied)
	if len(done.Changes) == 0 {
		fmt.Fprintln(c.Out, "nothing to change")
	}
	for _, change := range done.Changes {
		fmt.Fprintln(c.Out, iscsiname.Printable(change))
	}
	tellImpacts(c, done.Impacts)
	fmt.Fprintln(c.Out, done.Lasting)
}

// object is what the flags and the file say.
func (k *keyed) object() (control.Object, error) {
	out := control.Object{}
	if k.File != "" {
		text, err := k.text()
		if err != nil {
			return nil, err
		}
		raw, err := yaml.YAMLToJSON(text)
		if err == nil {
			err = json.Unmarshal(raw, &out)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: expected keys and values in YAML: %w", k.File, err)
		}
	}
	for _, pair := range k.Keys {
		key, text, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usage(fmt.Errorf("found %q, expected KEY=VALUE", pair))
		}
		value, err := valueOf(text)
		switch {
		case err != nil:
			return nil, usage(fmt.Errorf("%s: %w", key, err))
		case hasSecret(strings.Split(key, "."), value):
			return nil, usage(fmt.Errorf("%s: found a secret on the command line, where every user of this machine can read it, expected it in a file (-f FILE, --secret-from FILE, secret-file=PATH) or at a prompt", key))
		}
		if err := put(out, strings.Split(key, "."), value); err != nil {
			return nil, usage(fmt.Errorf("%s: %w", key, err))
		}
	}
	return out, nil
}

func (k *keyed) text() ([]byte, error) {
	if k.File == "-" || strings.HasSuffix(k.File, "/-") { // kong has made a path of it
		return io.ReadAll(io.LimitReader(os.Stdin, int64(conf.MaxFile)))
	}
	return conf.ReadFile(k.File)
}

// put sets a key, of a mapping below if its steps lead there.
func put(o map[string]any, steps []string, value any) error {
	if len(steps) == 1 {
		o[steps[0]] = value
		return nil
	}
	below, ok := o[steps[0]].(map[string]any)
	if !ok {
		if _, taken := o[steps[0]]; taken {
			return fmt.Errorf("found a value for %s, expected a mapping or none", steps[0])
		}
		below = map[string]any{}
		o[steps[0]] = below
	}
	return put(below, steps[1:], value)
}

// whole are numbers that mean the same in JSON as they are written.
var whole = regexp.MustCompile(`^(0|[1-9][0-9]{0,14})$`)

// valueOf reads a value of the command line: nothing takes a key away, brackets are YAML,
// and all else is as the configuration has it.
func valueOf(text string) (any, error) {
	switch {
	case text == "":
		return nil, nil
	case text == "true", text == "false":
		return text == "true", nil
	case whole.MatchString(text):
		return strconv.ParseInt(text, 10, 64)
	case text[0] != '{' && text[0] != '[':
		return text, nil
	}
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("expected YAML: %w", err)
	}
	var value any
	err = json.Unmarshal(raw, &value)
	return value, err
}
