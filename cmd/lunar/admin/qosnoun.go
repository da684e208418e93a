package admin

import (
	"context"
	"errors"
	"strings"

	"lunar/cmd/lunar/listing"
	"lunar/control"
	"lunar/internal/cli"
)

type qosGroupCommand struct {
	List                         qosGroupListCommand `cmd:"" help:"List the groups."`
	objectCommand[ruleGroupName] `embed:""`
}

type qosGroupListCommand struct {
	asking    `embed:""`
	selection `embed:""`
}

var ruleGroupsListed = objectsListed(listing.Table[control.ObjectResource]{
	{Name: "group", Of: func(o *control.ObjectResource) any { return o.Name }},
	{Name: "initiators", Of: func(o *control.ObjectResource) any { return keyOf(o, "initiators") }},
})

// Run lists groups of initiators.
func (k qosGroupListCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		return list(ctx, &k.selection, api, c, control.RuleGroupsPath, ruleGroupsListed)
	})
}

type qosCreateCommand struct {
	changing  `embed:""`
	Name      string `arg:"" help:"Name of the rule."`
	ruleFlags `embed:""`
}

// Run makes a rule, in the words of the flags, which are those of the configuration.
func (k qosCreateCommand) Run(ctx context.Context, c cli.Console) error {
	if _, err := k.Change(); err != nil {
		return err
	}
	rule := control.Object{}
	for key, text := range map[string]*string{"group": k.Group, "target": k.Target, "lun": k.LUN, "weight": k.Weight, "class": k.Class} {
		if text != nil {
			rule[key] = *text
		}
	}
	for key, values := range map[string]listed{"reservation": k.Reservation, "limit": k.Limit, "burst": k.Burst} {
		if values != nil {
			rule[key] = strings.Join(values, ", ")
		}
	}
	if k.GroupNumber != nil {
		rule["group-number"] = *k.GroupNumber
	}
	if k.Initiators != nil {
		rule["initiators"] = []string(k.Initiators)
	}
	if len(rule) == 0 {
		return usage(errors.New("found no settings of the rule, expected some, such as --initiators and --limit"))
	}
	return k.change(c, func(api *control.Client) (control.Changed, error) {
		return api.Change(ctx, control.Changes{Edits: []control.Edit{{Path: ruleAt(k.Name), Set: rule, IfNoneMatch: "*"}}, Permissions: k.permissions()})
	})
}

// ruleAt is where the configuration has a rule.
func ruleAt(name string) []string { return []string{"qos", "rules", name} }

// remove removes a rule from the running server and the file.
func (k qosDeleteCommand) remove(ctx context.Context, api *control.Client, c cli.Console) error {
	done, err := api.Change(ctx, control.Changes{Edits: []control.Edit{{Path: ruleAt(k.Name), Remove: true}}})
	if err == nil {
		tellChanged(c, &done)
	}
	return err
}
