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
	api, err := k.dial()
	if err != nil {
		return err
	}
	defer api.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if k.Follow {
		stop, _, release := cli.OnSignal(ctx, "lunar", c.Err)
		defer release()
		go func() {
			<-stop
			cancel()
		}()
	}
	err = api.Events(ctx, k.Kind, k.After, k.Follow, func(e control.Event) error {
		if k.JSON {
			return json.NewEncoder(c.Out).Encode(e)
		}
		return tellEvent(c.Out, &e)
	})
	if ctx.Err() != nil {
		return nil // somebody has interrupted it
	}
	return err
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
