package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

type eventsCommand struct {
	asking `embed:""`
	Follow bool     `short:"f" help:"Wait for more, until you interrupt it or the server ends."`
	Kind   []string `placeholder:"KIND" help:"Only events of these kinds, with commas between, such as login-refused,health."`
	After  string   `placeholder:"ID" help:"Only events after this one."`
	JSON   bool     `name:"json" help:"Print a line of JSON for each event, as the control API has it."`
}

// Run prints events.
func (k eventsCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		told := func(ctx context.Context) error {
			return api.Events(ctx, k.Kind, k.After, k.Follow, func(e control.Event) error {
				if k.JSON {
					return json.NewEncoder(c.Out).Encode(e)
				}
				return tellEvent(c.Out, &e)
			})
		}
		if !k.Follow {
			return told(ctx)
		}
		interrupted, err := following(ctx, c, told)
		if interrupted {
			return nil
		}
		return err
	})
}

func tellEvent(w io.Writer, e *control.Event) error {
	line := fmt.Sprintf("%s %s: %s", e.Time.Local().Format(time.DateTime), e.Kind, e.Text)
	for _, key := range slices.Sorted(maps.Keys(e.Fields)) {
		if value := e.Fields[key]; value != "" {
			line += fmt.Sprintf(" %s=%q", key, value)
		}
	}
	_, err := fmt.Fprintln(w, iscsiname.Printable(line))
	return err
}
