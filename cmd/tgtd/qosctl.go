package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"lunar/conf"
	"lunar/internal/control"
)

type qosCommand struct {
	Show    qosShowCommand    `cmd:"" help:"Show rules, groups and capacity."`
	Set     qosSetCommand     `cmd:"" help:"Change a rule, or make one. What is not given stays. It lasts until the next start, unless it is written to the configuration file."`
	Delete  qosDeleteCommand  `cmd:"" help:"Take a rule out of force, until the next start."`
	Explain qosExplainCommand `cmd:"" help:"Tell which rules apply to an initiator, what it got and what held it back."`
}

type qosShowCommand struct {
	asking `embed:""`
	JSON   bool `name:"json" help:"Print what the control API answers."`
}

// Run prints what the token scheduler goes by.
func (k qosShowCommand) Run(ctx context.Context, c console) error {
	api, err := k.dial()
	if err != nil {
		return err
	}
	defer api.Close()
	if k.JSON {
		return printRaw(ctx, api, c, "/v1/qos")
	}
	q, err := api.QoS(ctx)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	renderQoS(&page, &q)
	_, err = c.out.Write(page.Bytes())
	return err
}

type qosExplainCommand struct {
	asking    `embed:""`
	Initiator string `arg:"" help:"iSCSI name of the initiator."`
	JSON      bool   `name:"json" help:"Print what the control API answers."`
}

// Run prints what the token scheduler does for an initiator.
func (k qosExplainCommand) Run(ctx context.Context, c console) error {
	api, err := k.dial()
	if err != nil {
		return err
	}
	defer api.Close()
	path := control.ExplainPath(k.Initiator)
	if k.JSON {
		return printRaw(ctx, api, c, path)
	}
	var x control.Explanation
	if err := api.Get(ctx, path, &x); err != nil {
		return err
	}
	if len(x.Flows) == 0 || !x.Flows[0].Open && !conf.ValidName(strings.ToLower(k.Initiator)) {
		return k.unknown(ctx, api)
	}
	var page bytes.Buffer
	renderExplanation(&page, k.Initiator, &x)
	_, err = c.out.Write(page.Bytes())
	return err
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
		return fmt.Errorf("%s; did you mean %s?", text, printable(name))
	}
	if len(names) == 0 {
		return fmt.Errorf("%s; nobody has a session", text)
	}
	return fmt.Errorf("%s; sessions have %s", text, printable(strings.Join(names[:min(len(names), 16)], ", ")))
}

type qosDeleteCommand struct {
	asking `embed:""`
	Name   string `arg:"" help:"Name of the rule."`
}

// Run deletes a rule.
func (k qosDeleteCommand) Run(ctx context.Context, c console) error {
	api, err := k.dial()
	if err != nil {
		return err
	}
	defer api.Close()
	q, err := api.DeleteRule(ctx, k.Name)
	if err != nil {
		return err
	}
	return tellChange(c, &q, k.Name+": deleted")
}

type qosSetCommand struct {
	asking      `embed:""`
	Name        string  `arg:"" help:"Name of the rule."`
	Initiators  listed  `placeholder:"PATTERN" help:"Initiators, each of which it is about: names, or globs with * and ?."`
	Group       *string `placeholder:"NAME" help:"Group, whose members it is about together, in place of initiators."`
	Target      *string `placeholder:"PATTERN" help:"Target that it is about; all: all of them."`
	LUN         *string `name:"lun" placeholder:"N" help:"Logical unit that it is about; all: all of them."`
	Reservation listed  `placeholder:"RATE" help:"What is promised: 5000 (IOPS), 20MiB (per second), both with a comma, or none."`
	Limit       listed  `placeholder:"RATE" help:"What is not exceeded, in the same terms."`
	Burst       listed  `placeholder:"AMOUNT" help:"What may pass above the limit at once after a pause: 1000 (commands), 8MiB, both, or none for 10 ms of the limit."`
	Weight      *int64  `placeholder:"N" help:"Share of what is left, 1 to 1000."`
	Class       *string `placeholder:"CLASS" help:"urgent, high, medium or low."`
}

// Run changes a rule.
func (k qosSetCommand) Run(ctx context.Context, c console) error {
	change, err := k.change()
	if err != nil {
		return err
	}
	api, err := k.dial()
	if err != nil {
		return err
	}
	defer api.Close()
	q, err := api.PatchRule(ctx, k.Name, change)
	if err != nil {
		return err
	}
	return tellChange(c, &q, k.Name+": in force")
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

// change is what the flags ask for.
func (k qosSetCommand) change() (control.RuleChange, error) {
	out := control.RuleChange{Initiators: k.Initiators, Group: k.Group, Target: k.Target, Weight: k.Weight, Class: k.Class}
	if k.Target != nil && *k.Target == everything {
		out.Target = new(string)
	}
	var errs [7]error
	if w := k.Weight; w != nil && (*w < 1 || *w > 1000) {
		errs[4] = fmt.Errorf("--weight: found %d, expected a whole number from 1 to 1000", *w)
	}
	if k.Target != nil && *k.Target == "" {
		errs[5] = fmt.Errorf("--target: found nothing, expected %s, or %s", conf.WantPattern, everything)
	}
	if k.Group != nil && *k.Group == "" {
		errs[6] = errors.New("--group: found nothing, expected the name of a group")
	}
	out.LUN, errs[0] = parseLUN(k.LUN)
	out.Reservation, errs[1] = parseRates("reservation", k.Reservation)
	out.Limit, errs[2] = parseRates("limit", k.Limit)
	out.Burst, errs[3] = parseRates("burst", k.Burst)
	return out, errors.Join(errs[:]...)
}

// The words of flags.
const (
	everything = "all"
	noRate     = "none"
)

// parseLUN reads a LUN; -1 is all, nil not given.
func parseLUN(text *string) (*int64, error) {
	if text == nil {
		return nil, nil
	}
	lun := int64(-1)
	if *text == everything {
		return &lun, nil
	}
	lun, err := strconv.ParseInt(*text, 10, 64)
	if err != nil || lun < 0 || lun > conf.MaxLUN {
		return nil, fmt.Errorf("--lun: found %q, expected %s or a whole number from 0 to %d", *text, everything, conf.MaxLUN)
	}
	return &lun, nil
}

// parseRates reads a number, a size, both or none; nil is not given.
func parseRates(flag string, texts listed) (*control.Rate, error) {
	if texts == nil {
		return nil, nil
	}
	out := &control.Rate{}
	for _, text := range texts {
		to, value := &out.IOPS, int64(0)
		n, err := strconv.ParseInt(text, 10, 64)
		if value = n; err != nil {
			size, sizeErr := conf.ParseSize(strings.TrimSuffix(text, "/s"))
			to, value, err = &out.Bytes, int64(size), sizeErr
		}
		switch {
		case text == noRate && len(texts) == 1:
			return out, nil
		case err != nil || value <= 0 || *to != 0:
			return nil, fmt.Errorf("--%s: found %q, expected a number such as 5000, a size such as 20MiB, both with a comma between, or %s", flag, strings.Join(texts, ","), noRate)
		}
		*to = value
	}
	return out, nil
}

// tellChange says what was changed and how long it lasts.
func tellChange(c console, q *control.QoS, what string) error {
	for _, text := range []string{q.Note, q.Capacity.Warning} {
		if text != "" {
			fmt.Fprintf(c.err, "warning: %s\n", printable(text))
		}
	}
	_, err := fmt.Fprintf(c.out, "%s\n%s\n", what, q.Lasting)
	return err
}
