package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"lunar/conf"
	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

type qosCommand struct {
	List    qosListCommand    `cmd:"" help:"List the rules."`
	Show    qosShowCommand    `cmd:"" help:"Show rules, groups and capacity."`
	Create  qosCreateCommand  `cmd:"" help:"Make a rule that is not there yet, in the running server and the configuration file."`
	Set     qosSetCommand     `cmd:"" help:"Change or create a rule. Omitted settings stay as they are. The change lasts until the next start; lunar save keeps it."`
	Delete  qosDeleteCommand  `cmd:"" help:"Suspend a rule until the next start, or remove it."`
	Group   qosGroupCommand   `cmd:"" help:"List, show, create, change and delete the groups of initiators that rules are about."`
	Explain qosExplainCommand `cmd:"" help:"Explain which rules apply to an initiator, what it received and what limited it."`
}

type qosShowCommand struct {
	asking  `embed:""`
	output  `embed:""`
	Cluster bool `help:"Show what is promised over all nodes of the cluster, and what each node has of it, in place of this node's rules."`
}

// Run prints what the token scheduler goes by.
func (k qosShowCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		if k.Cluster {
			return printed(ctx, &k.output, api, c, control.ClusterPromisesPath, func(w io.Writer, p *control.ClusterPromises) error {
				renderClusterPromises(w, p)
				return nil
			})
		}
		return printed(ctx, &k.output, api, c, control.QosPath, func(w io.Writer, q *control.QoS) error {
			var page bytes.Buffer
			renderQoS(&page, q)
			_, err := w.Write(page.Bytes())
			return err
		})
	})
}

type qosListCommand struct {
	asking    `embed:""`
	selection `embed:""`
}

var rulesListed = rowsOf[control.QoS, ruleRow]{
	rows: ruleRows,
	document: func(_ *control.QoS, rows []ruleRow) any {
		out := []*control.Rule{}
		for _, r := range rows {
			out = append(out, r.Rule)
		}
		return map[string]any{"rules": out}
	},
	table: ruleTable,
}

// Run lists rules.
func (k qosListCommand) Run(ctx context.Context, c cli.Console) error {
	form, err := k.form()
	if err != nil {
		return err
	}
	return k.ask(func(api *control.Client) error {
		q, err := api.QoS(ctx)
		if err != nil {
			return err
		}
		return rulesListed.print(c.Out, form, &q, k.options())
	})
}

type qosExplainCommand struct {
	asking    `embed:""`
	output    `embed:""`
	Initiator string `arg:"" help:"iSCSI name of the initiator."`
}

// Run prints what the token scheduler does for an initiator.
func (k qosExplainCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		return printed(ctx, &k.output, api, c, control.ExplainPath(k.Initiator), func(w io.Writer, x *control.Explanation) error {
			if len(x.Flows) == 0 || !x.Flows[0].Open && !conf.ValidName(strings.ToLower(k.Initiator)) {
				return k.unknown(ctx, api)
			}
			var page bytes.Buffer
			renderExplanation(&page, k.Initiator, x)
			if x.Flows[0].Open {
				renderAnswers(ctx, &page, api, k.Initiator)
			}
			_, err := w.Write(page.Bytes())
			return err
		})
	})
}

// renderAnswers prints what the overview says about an initiator: nothing if the server is
// an older one, which has none.
func renderAnswers(ctx context.Context, w io.Writer, api *control.Client, initiator string) {
	o, err := api.Overview(ctx)
	if err != nil {
		return
	}
	for i := range o.Answers {
		if a := &o.Answers[i]; slices.Contains(a.Initiators, initiator) {
			fmt.Fprintf(w, "\n%s\n%s\n", iscsiname.Printable(a.What), iscsiname.Printable(a.Help))
		}
	}
}

// unknown is the error for a name that is no initiator's, with those that it may
// have been meant to be.
func (k qosExplainCommand) unknown(ctx context.Context, api *control.Client) error {
	status, err := api.Status(ctx)
	if err != nil {
		return err
	}
	var names []string
	for i := range status.Sessions {
		names = append(names, status.Sessions[i].Initiator)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	text := fmt.Sprintf("found no session of %q and no target that it may use", k.Initiator)
	if name, ok := conf.Similar(k.Initiator, names); ok {
		return fmt.Errorf("%s; did you mean %s?", text, iscsiname.Printable(name))
	}
	if len(names) == 0 {
		return fmt.Errorf("%s; nobody has a session", text)
	}
	return fmt.Errorf("%s; sessions have %s", text, iscsiname.Printable(strings.Join(names[:min(len(names), 16)], ", ")))
}

type qosDeleteCommand struct {
	asking `embed:""`
	Name   string `arg:"" help:"Name of the rule."`
	Keep   string `enum:"file,running" default:"running" placeholder:"WHERE" help:"running: the rule is suspended until the next start. file: it is removed from the configuration file as well."`
}

// Run deletes a rule.
func (k qosDeleteCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		if k.Keep == control.KeepFile {
			return k.remove(ctx, api, c)
		}
		q, err := api.DeleteRule(ctx, k.Name)
		if err != nil {
			return err
		}
		return tellChange(c, &q, k.Name+": deleted")
	})
}

type qosSetCommand struct {
	asking    `embed:""`
	Name      string `arg:"" help:"Name of the rule."`
	ruleFlags `embed:""`
}

// ruleFlags are the settings of a rule.
type ruleFlags struct {
	Initiators  listed  `placeholder:"PATTERN" help:"Initiators to which the rule applies, each by itself: names, or globs with * and ?."`
	Group       *string `placeholder:"NAME" help:"Group to which the rule applies as a whole, in place of initiators."`
	Target      *string `placeholder:"PATTERN" help:"Target to which the rule applies, or all."`
	LUN         *string `name:"lun" placeholder:"N" help:"Logical unit to which the rule applies, or all."`
	Reservation listed  `placeholder:"RATE" help:"Reservation: 5000 (IOPS), 20MiB (per second), both with a comma, or none."`
	Limit       listed  `placeholder:"RATE" help:"Limit, in the same form."`
	Burst       listed  `placeholder:"AMOUNT" help:"Amount that may exceed the limit at once after a pause: 1000 (commands), 8MiB, both, or none for 10 ms of the limit."`
	Weight      *string `placeholder:"N" help:"Share of the remaining throughput, 1 to 1000."`
	Class       *string `placeholder:"CLASS" help:"urgent, high, medium or low."`
	GroupNumber *bool   `name:"group-number" negatable:"" help:"Let commands name another class by their GROUP NUMBER (qos.network.group-numbers)."`
}

// Run changes a rule.
func (k qosSetCommand) Run(ctx context.Context, c cli.Console) error {
	change, err := k.Change()
	if err != nil {
		return err
	}
	return k.ask(func(api *control.Client) error {
		q, err := api.PatchRule(ctx, k.Name, change)
		if err != nil {
			return err
		}
		return tellChange(c, &q, k.Name+": in force")
	})
}

// listed is a flag with values between commas, which may be repeated. None of them
// may be empty: a script's variable that is not set is no wish to lift a limit.
type listed []string

// Decode implements kong.MapperValue.
func (l *listed) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("value", &text); err != nil {
		return err
	}
	values := strings.Split(text, ",")
	if slices.Contains(values, "") {
		return fmt.Errorf("found %q, expected values with commas between", text)
	}
	*l = append(*l, values...)
	return nil
}

// Change is what the flags ask for, in the spellings of the configuration.
func (k ruleFlags) Change() (control.RuleChange, error) {
	out := control.RuleChange{Initiators: k.Initiators, Group: k.Group, Class: k.Class, GroupNumber: k.GroupNumber}
	var errs [8]error
	if k.Group != nil && *k.Group == "" {
		errs[0] = errors.New("--group: found nothing, expected the name of a group")
	}
	out.Target, errs[1] = read("target", k.Target, conf.ParseRuleTarget, conf.WantRuleTarget)
	out.LUN, errs[2] = read("lun", k.LUN, conf.ParseRuleLUN, conf.WantRuleLUN)
	out.Weight, errs[3] = read("weight", k.Weight, conf.ParseWeight, conf.WantWeight)
	_, errs[7] = read("class", k.Class, conf.ParseClass, conf.WantClass)
	out.Reservation, errs[4] = readRates("reservation", k.Reservation)
	out.Limit, errs[5] = readRates("limit", k.Limit)
	out.Burst, errs[6] = readRates("burst", k.Burst)
	return out, errors.Join(errs[:]...)
}

// read reads the text of a flag as a configuration does; nil is not given.
func read[T any](flag string, text *string, parse func(string) (T, bool), expected string) (*T, error) {
	if text == nil {
		return nil, nil
	}
	value, ok := parse(*text)
	if !ok {
		return nil, fmt.Errorf("--%s: found %q, expected %s", flag, *text, expected)
	}
	return &value, nil
}

// readRates reads what a flag has between commas.
func readRates(flag string, values listed) (*control.Rate, error) {
	if values == nil {
		return nil, nil
	}
	text := strings.Join(values, ",")
	rate, err := read(flag, &text, conf.ParseRates, conf.WantRates)
	return (*control.Rate)(rate), err
}

// tellChange says what was changed and how long it lasts.
func tellChange(c cli.Console, q *control.QoS, what string) error {
	for _, text := range []string{q.Note, q.Capacity.Warning} {
		if text != "" {
			fmt.Fprintf(c.Err, "warning: %s\n", iscsiname.Printable(text))
		}
	}
	_, err := fmt.Fprintf(c.Out, "%s\n%s\n", what, q.Lasting)
	return err
}
