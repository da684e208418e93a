package admin

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"lunar/control"
	"lunar/internal/cli"
	"lunar/internal/iscsiname"
)

type configCommand struct {
	asking `embed:""`
}

// Run prints the configuration that is running.
func (k configCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		text, err := api.Running(ctx)
		if err == nil {
			_, err = fmt.Fprint(c.Out, text)
		}
		return err
	})
}

type sessionsCommand struct {
	asking    `embed:""`
	selection `embed:""`
}

// sessionList is the answer of /v1/sessions.
type sessionList struct {
	Sessions []control.Session `json:"sessions"`
}

var sessionsListed = rowsOf[sessionList, sessionRow]{
	rows:     func(a *sessionList) []sessionRow { return sessionRows(a.Sessions) },
	document: func(_ *sessionList, rows []sessionRow) any { return sessionList{sessionsOf(rows)} },
	table:    sessionTable,
	below: func(w io.Writer, rows []sessionRow) {
		section(w, connectionTable, connectionRows(sessionsOf(rows)), "")
	},
}

// Run lists the sessions and their connections.
func (k sessionsCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		return list(ctx, &k.selection, api, c, "/v1/sessions", sessionsListed)
	})
}

type kickCommand struct {
	asking `embed:""`
	Who    string `arg:"" name:"initiator-or-session" help:"iSCSI name of an initiator, a glob for names, or a session's number (lunar sessions)."`
}

// Run asks initiators to log out.
func (k kickCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		request := control.Kick{Initiator: k.Who}
		if tsih, err := strconv.ParseUint(k.Who, 10, 16); err == nil {
			request = control.Kick{Session: int(tsih)}
		}
		n, err := api.Kick(ctx, request)
		if err == nil {
			_, err = fmt.Fprintf(c.Out, "Sessions asked to log out: %d; those that do not are disconnected. Initiators may log in again.\n", n)
		}
		return err
	})
}

type drainCommand struct {
	asking `embed:""`
	Portal string `arg:"" help:"Name of a portal group, or address:port of one portal."`
	To     string `placeholder:"HOST:PORT" help:"Redirect initiators to this address. Without it, they are told to try again later."`
	Off    bool   `help:"Let initiators in again."`
}

// Run keeps initiators away from a portal.
func (k drainCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		d, err := api.Drain(ctx, control.Drain{Portal: k.Portal, To: k.To, Off: k.Off})
		if err != nil {
			return err
		}
		if d.Sessions > 0 {
			fmt.Fprintf(c.Out, "Sessions asked to log out: %d; those that do not are disconnected.\n", d.Sessions)
		}
		for _, line := range d.Draining {
			fmt.Fprintln(c.Out, iscsiname.Printable(line))
		}
		if len(d.Draining) == 0 {
			fmt.Fprintln(c.Out, "Nothing is drained.")
		}
		return nil
	})
}

type resyncCommand struct {
	asking `embed:""`
	Volume string `arg:"" help:"Name of a volume of type mirror."`
}

// Run takes a mirror's member back.
func (k resyncCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		r, err := api.Resync(ctx, k.Volume)
		if err == nil {
			_, err = fmt.Fprintf(c.Out, "volume %s: member %s is back, %d regions are copied to it\n", k.Volume, r.Member, r.Regions)
		}
		return err
	})
}

type rescanCommand struct {
	asking `embed:""`
	Volume string `arg:"" help:"Name of a volume on a block device, or on a file without a configured size."`
}

// Run makes a volume as large as what it is on.
func (k rescanCommand) Run(ctx context.Context, c cli.Console) error {
	return k.ask(func(api *control.Client) error {
		r, err := api.Rescan(ctx, k.Volume)
		if err == nil {
			_, err = fmt.Fprintf(c.Out, "volume %s: %d bytes, was %d\n", k.Volume, r.Now, r.Before)
		}
		return err
	})
}
